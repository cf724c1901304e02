#include <algorithm>

#include "../scratch.h"
#include "bits.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kSextet = 6;            // channels
constexpr std::uint16_t kPadding = 64 * 64;   // where the table's row of padding is
constexpr std::size_t kPiece = 8;             // positions
constexpr std::size_t kMostChannels = 32000;  // that a filter sees: dot products have 16 bits

// A convolution of signs by wide lookup tables; SextetConvJob in kernels.h says how inputs and weights lie in memory.
class SextetConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& of) {
        const std::uint64_t blocks = (of.filters + kBlock - 1) / kBlock, taps = of.window.taps();
        return blocks * kBlock * (taps * sextets_of(of) + 3 * sizeof(float)) +
               of.window.positions() * (sizeof(std::uint32_t) + sizeof(std::int16_t)) + taps * sizeof(std::size_t) +
               sextets_of(of) * sizeof(std::uint16_t);
    }

    SextetConv(const Kernels& kernels, const Convolution& of, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(of),
          map_(of.window, sextets_of(of)),
          work_{(of.filters + kBlock - 1) / kBlock, static_cast<std::size_t>(of.window.positions()), kPiece},
          scale_(filled_up(of.scale, of.filters)),
          offset_(filled_up(of.offset, of.filters)),
          bias_(filled_up(of.bias, of.filters)),
          epilogue_(epilogue) {
        pack(of.bits);
        find_positions();
        for (std::size_t channel = 0; channel < of.input.channels; channel += kSextet) {
            const std::size_t count = std::min(of.input.channels - channel, kSextet);
            const unsigned ones = 64 * ((1u << count) - 1);
            padding_.push_back(of.pads_with_ones ? static_cast<std::uint16_t>(ones) : kPadding);
        }
    }

    std::uint64_t pieces() const override { return work_.pieces(); }
    double work() const override {
        return convolution_.multiply_adds() +
               static_cast<double>(map_.rows) * static_cast<double>(map_.columns) *
                   static_cast<double>(map_.per_position + convolution_.window.height.kernel);
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        if (!prepare(job, scratch)) return;
        const Epilogue epilogue = epilogue_.bind(job);
        SextetConvJob conv{};
        conv.input = scratch.map;
        conv.starts = starts_.data();
        conv.runs = map_.runs.data();
        conv.run_count = map_.runs.size();
        conv.run_length = map_.run_length;
        conv.scale = scale_.data();
        conv.offset = data_or_null(offset_);
        conv.bias = data_or_null(bias_);
        conv.bases = bases_.data();
        conv.sums = offset_.empty() ? nullptr : scratch.sums;
        conv.epilogue = &epilogue;
        const std::uint64_t unit_work = lines_per_block() * kBlock / 2;  // products by the byte, two at a time
        const std::size_t at_once = (units_at_once(unit_work) + kPiece - 1) / kPiece * kPiece;
        work_.each(job.from, job.to, at_once, [&](std::size_t block, std::size_t from, std::size_t to) {
            if (job.is_stopped((to - from) * unit_work)) return false;
            conv.first_position = from;
            conv.positions = to - from;
            conv.weights = weights_[block * lines_per_block()].bytes;
            conv.first_filter = block * kBlock;
            kernels_.sextet_conv(conv);
            return true;
        });
    }

   private:
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };

    // The padded map, each position's sum of signs, the sums of columns, and what a window sums to.
    struct Scratch {
        std::uint16_t* map;
        std::int32_t *position_sums, *column_sums, *sums;
    };
    Scratch carve(Carver& carver) const {
        const std::uint64_t positions = std::uint64_t{map_.rows} * map_.columns;
        return {carver.take<std::uint16_t>(positions * map_.per_position), carver.take<std::int32_t>(positions),
                carver.take<std::int32_t>(map_.columns), carver.take<std::int32_t>(convolution_.window.positions())};
    }

    static std::size_t sextets_of(const Convolution& of) { return (of.input.channels + kSextet - 1) / kSextet; }
    std::size_t lines_per_block() const {
        return static_cast<std::size_t>(convolution_.window.taps()) * map_.per_position;
    }

    // A byte of a line has 6 channels of a tap.
    void pack(const std::uint8_t* bits) {
        const std::size_t channels = convolution_.input.channels,
                          taps = static_cast<std::size_t>(convolution_.window.taps());
        const std::size_t row = (taps * channels + 7) / 8;
        weights_.resize(work_.blocks * lines_per_block());
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            const std::size_t i = filter % kBlock, column = i < 32 ? 2 * i : 2 * (i - 32) + 1;
            Line* lines = weights_.data() + filter / kBlock * lines_per_block();
            for (std::size_t tap = 0; tap < taps; ++tap) {
                for (std::size_t channel = 0; channel < channels; channel += kSextet, ++lines) {
                    const std::size_t count = std::min(channels - channel, kSextet);
                    lines->bytes[column] = static_cast<std::uint8_t>(bits_at(bits, tap * channels + channel, count));
                }
            }
        }
    }

    // Where positions start, and their bases: dot products are base - 2 count. A padded sextet adds 3 to the count, so
    // 6 to the base, and nothing to the product.
    void find_positions() {
        const auto& [height, width] = convolution_.window;
        const std::size_t taps = static_cast<std::size_t>(convolution_.window.taps()),
                          channels = convolution_.input.channels;
        starts_.reserve(work_.units);
        bases_.reserve(work_.units);
        for (std::size_t row = 0; row < height.positions; ++row) {
            for (std::size_t column = 0; column < width.positions; ++column) {
                starts_.push_back(static_cast<std::uint32_t>(map_.start(convolution_.window, row, column)));
                std::size_t seen = taps;
                if (!convolution_.pads_with_ones) {
                    seen = (height.end(row) - height.first(row)) * (width.end(column) - width.first(column));
                }
                bases_.push_back(
                    static_cast<std::int16_t>(seen * channels + (taps - seen) * kSextet * map_.per_position));
            }
        }
    }

    // Gets the input of a job's positions ready, if that is not done; false if the run has to end.
    bool prepare(const Job& job, const Scratch& scratch) const {
        const auto [first, end] = work_.to_prepare(job);
        if (first >= end) return true;
        const auto& [height, width] = convolution_.window;
        const std::size_t first_row = first / width.positions, end_row = (end - 1) / width.positions + 1;
        const bool goes_on = each_row_seen(height, first_row, end_row, [&](std::size_t row) {
            if (job.is_stopped(map_.columns * map_.per_position / 8)) return false;
            make_row(job.input<std::uint64_t>(), row, scratch);
            return true;
        });
        if (!goes_on) return false;
        for (std::size_t row = first_row; row < end_row && !offset_.empty(); ++row) {
            if (job.is_stopped((height.kernel + 1) * map_.columns / 8)) return false;
            sum_windows(convolution_.window, map_.columns, scratch.position_sums, row, scratch.column_sums,
                        scratch.sums + row * width.positions);
        }
        return true;
    }

    // Makes a row of the padded map, and each position's sum.
    void make_row(const std::uint64_t* x, std::size_t row, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::size_t left = map_.columns, right = map_.columns;  // the map's columns are between them
        if (row >= height.before && row - height.before < input.height) {
            left = std::min(width.before, map_.columns);
            right = std::min(width.before + input.width, map_.columns);
        }
        std::uint16_t* line = scratch.map + row * map_.columns * map_.per_position;
        std::int32_t* sums = scratch.position_sums + row * map_.columns;
        for (std::size_t column = 0; column < left; ++column) pad(line, column, sums);
        if (left < right) {
            const std::uint64_t* words = x + (row - height.before) * input.width * input.words();
            for (std::size_t i = 0; i < right - left; ++i) {
                kernels_.spread_sextets(words + i * input.words(), input.channels,
                                        line + (left + i) * map_.per_position);
            }
            if (!offset_.empty()) kernels_.sum_signs(words, right - left, input.channels, sums + left);
        }
        for (std::size_t column = right; column < map_.columns; ++column) pad(line, column, sums);
    }

    void pad(std::uint16_t* line, std::size_t column, std::int32_t* sums) const {
        std::copy(padding_.begin(), padding_.end(), line + column * map_.per_position);
        sums[column] = convolution_.pads_with_ones ? static_cast<std::int32_t>(convolution_.input.channels) : 0;
    }

    const Kernels& kernels_;
    Convolution convolution_;  // its arrays are not looked at any more
    PaddedMap map_;            // in sextets
    Blocks work_;              // in positions
    std::vector<Line> weights_;
    std::vector<float> scale_, offset_, bias_;
    std::vector<std::uint32_t> starts_;
    std::vector<std::int16_t> bases_;
    std::vector<std::uint16_t> padding_;  // a padded position
    EpilogueArrays epilogue_;
};

}  // namespace

bool has_sextet_conv(const Kernels& kernels, const Convolution& convolution) {
    const std::size_t channels = (convolution.input.channels + kSextet - 1) / kSextet * kSextet;
    return kernels.sextet_conv != nullptr && convolution.groups == 1 &&
           convolution.window.taps() <= kMostChannels / channels &&
           convolution.window.extent() <= UINT32_MAX / channels;
}

std::unique_ptr<Layer> make_sextet_conv(const Builder& builder, const Convolution& convolution,
                                        const Epilogue& epilogue) {
    if (!builder.budget.take(SextetConv::bytes(convolution))) return nullptr;
    return std::make_unique<SextetConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
