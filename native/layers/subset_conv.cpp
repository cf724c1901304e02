#include <algorithm>
#include <cstring>

#include "bits.h"
#include "epilogue.h"
#include "layers.h"
#include "spread_map.h"

namespace dabnet {
namespace {

constexpr std::size_t kRow = 16;      // bytes of a table, for 4 channels
constexpr std::size_t kWideRow = 64;  // bytes of a wide table
constexpr std::size_t kPiece = 14;    // positions

// A convolution of whole numbers with one-bit weights, by tables; kernels.h says how inputs and weights stand in
// memory.
class SubsetConv : public Layer {
   public:
    static std::uint64_t bytes(const Kernels& kernels, const Convolution& of) {
        const std::uint64_t blocks = (of.filters + kBlock - 1) / kBlock, taps = of.window.taps();
        const std::uint64_t lines = is_wide(kernels) ? 4 * rows_of(kernels, of) : rows_of(kernels, of) / 2;
        return blocks * (taps * lines * sizeof(Line) + kBlock * (3 * sizeof(float) + sizeof(std::int32_t))) +
               taps * sizeof(std::size_t) + of.input.channels;
    }

    SubsetConv(const Kernels& kernels, const Convolution& of, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(of),
          map_(of.window, rows_of(kernels, of)),
          work_{(of.filters + kBlock - 1) / kBlock, static_cast<std::size_t>(of.window.positions()), kPiece},
          scale_(filled_up(of.scale, of.filters)),
          offset_(filled_up(of.offset, of.filters)),
          bias_(filled_up(of.bias, of.filters)),
          epilogue_(epilogue) {
        weights_.resize(work_.blocks * lines_per_block());
        is_wide(kernels) ? pack_wide(of.bits) : pack(of.bits);
        if (of.input.zero != 0) {
            find_shifts(of.bits);
            zeros_.assign(of.input.channels, of.input.zero);
        }
    }

    std::uint64_t pieces() const override { return work_.pieces(); }
    double work() const override {
        const double prepared = static_cast<double>(map_.rows) * static_cast<double>(map_.columns) *
                                static_cast<double>(planes() * map_.per_position + convolution_.window.height.kernel);
        return static_cast<double>(planes()) * convolution_.multiply_adds() + prepared;
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        SubsetConvJob subset{};
        subset.tables = scratch.tables;
        subset.plane = planes() == 2 ? plane_bytes() : 0;
        subset.has_halves = has_halves(convolution_);
        subset.starts = scratch.spread.starts;
        subset.runs = map_.runs.data();
        subset.run_count = map_.runs.size();
        subset.run_length = map_.run_length;
        subset.scale = scale_.data();
        subset.offset = data_or_null(offset_);
        subset.bias = data_or_null(bias_);
        subset.byte_sums = scratch.spread.sums;
        subset.filter_shifts = shifts_.empty() ? nullptr : shifts_.data();
        subset.sum_shift = static_cast<std::int32_t>(convolution_.taps() * convolution_.input.zero);
        subset.epilogue = &epilogue;
        // Products by the byte, as tables of 16 are looked up.
        const std::uint64_t unit_work = planes() * lines_per_block() * kBlock / (is_wide(kernels_) ? 2 : 1);
        const std::size_t at_once = (units_at_once(unit_work) + kPiece - 1) / kPiece * kPiece;
        const auto convolve = [&](std::size_t block, std::size_t from, std::size_t to) {
            if (job.is_stopped((to - from) * unit_work)) return false;
            subset.first_position = from;
            subset.positions = to - from;
            subset.weights = weights_[block * lines_per_block()].bytes;
            subset.first_filter = block * kBlock;
            kernels_.subset_conv(subset);
            return true;
        };
        const auto make_one = [&](std::size_t row, std::size_t at) {
            make_row(job.input<std::uint8_t>(), row, at, scratch);
        };
        const std::size_t row_length = map_.columns * map_.per_position * row_bytes();
        const auto move_rows = [&](std::size_t from, std::size_t count) {
            for (std::size_t plane = 0; plane < planes(); ++plane) {
                std::uint8_t* tables = scratch.tables + plane * plane_bytes();
                std::copy(tables + from * row_length, tables + (from + count) * row_length, tables);
            }
        };
        run_spread_out(job, work_, convolution_.window, map_, scratch.spread, planes() * row_length, at_once, make_one,
                       move_rows, convolve);
    }

   private:
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };

    struct Scratch {
        std::uint8_t* tables;
        SpreadScratch<std::int32_t> spread;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<std::uint8_t>(std::uint64_t{planes()} * plane_bytes()),
                {carver, convolution_.window, map_, true}};
    }

    static bool is_wide(const Kernels& kernels) { return kernels.make_wide_sums != nullptr; }
    static bool has_halves(const Convolution& of) { return of.input.type == ElementType::u8; }
    static std::size_t wide_channels(const Convolution& of) { return has_halves(of) ? 8 : 16; }
    static std::size_t rows_of(const Kernels& kernels, const Convolution& of) {
        if (is_wide(kernels)) return (of.input.channels + wide_channels(of) - 1) / wide_channels(of);
        return (of.input.channels + 7) / 8 * 2;
    }
    std::size_t row_bytes() const { return is_wide(kernels_) ? kWideRow : kRow; }
    std::size_t planes() const { return has_halves(convolution_) && !is_wide(kernels_) ? 2 : 1; }
    std::size_t plane_bytes() const { return map_.size() * row_bytes(); }
    std::size_t lines_per_block() const {
        const std::size_t rows = static_cast<std::size_t>(convolution_.window.taps()) * map_.per_position;
        return is_wide(kernels_) ? 4 * rows : rows / 2;
    }

    // Eight channels of a tap are a byte, in the file (if channels are whole bytes) as in a line.
    void pack(const std::uint8_t* bits) {
        const std::size_t channels = convolution_.input.channels,
                          taps = static_cast<std::size_t>(convolution_.window.taps());
        const std::size_t row = (taps * channels + 7) / 8, bytes = map_.per_position / 2;
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            const std::size_t half = filter % kBlock / 32, i = filter % 32;
            const std::size_t column = half * 32 + (i < 16 ? 2 * i : 2 * (i - 16) + 1);
            Line* lines = weights_.data() + filter / kBlock * lines_per_block();
            for (std::size_t at = 0; at < taps * bytes; ++at) {
                const std::size_t channel = at % bytes * 8;
                const std::size_t count = std::min<std::size_t>(channels - channel, 8);
                lines[at].bytes[column] =
                    static_cast<std::uint8_t>(bits_at(bits, at / bytes * channels + channel, count));
            }
        }
    }

    // A line has 16 filters' bytes for a row of tables, four of each.
    void pack_wide(const std::uint8_t* bits) {
        const std::size_t channels = convolution_.input.channels,
                          taps = static_cast<std::size_t>(convolution_.window.taps());
        const std::size_t row = (taps * channels + 7) / 8, tables_per_four = has_halves(convolution_) ? 2 : 1;
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            Line* lines = weights_.data() + filter / kBlock * lines_per_block() + filter % kBlock / 16;
            for (std::size_t at = 0; at < taps * map_.per_position; ++at, lines += 4) {
                const std::size_t first = at % map_.per_position * wide_channels(convolution_);
                for (std::size_t table = 0; table < 4; ++table) {
                    const std::size_t channel = first + 4 * (table / tables_per_four);
                    const std::size_t count = channel < channels ? std::min<std::size_t>(channels - channel, 4) : 0;
                    const std::size_t from = at / map_.per_position * channels + channel;
                    const unsigned pattern = count == 0 ? 0 : bits_at(bits, from, count);
                    lines->bytes[filter % 16 * 4 + table] = static_cast<std::uint8_t>(16 * table + pattern);
                }
            }
        }
    }

    // What `zero` adds to the dot product of bytes.
    void find_shifts(const std::uint8_t* bits) {
        const auto taps = static_cast<std::int32_t>(convolution_.taps());
        const std::size_t row = (convolution_.taps() + 7) / 8;
        shifts_.resize(work_.blocks * kBlock);
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            std::int32_t ones = 0;
            for (std::size_t i = 0; i < convolution_.taps(); ++i) ones += bits_at(bits, i, 1) != 0;
            shifts_[filter] = convolution_.input.zero * (2 * ones - taps);
        }
    }

    // Makes the tables of a row of the padded map, as number `at` in memory, and each position's sum.
    void make_row(const std::uint8_t* x, std::size_t row, std::size_t at, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::size_t left = map_.columns, right = map_.columns;  // the map's columns are between them
        if (row >= height.before && row - height.before < input.height) {
            left = std::min(width.before, map_.columns);
            right = std::min(width.before + input.width, map_.columns);
        }
        for (std::size_t column = 0; column < left; ++column) pad(at * map_.columns + column, scratch);
        if (left < right) {
            const std::uint8_t* bytes = x + (row - height.before) * input.width * input.channels;
            make_tables(bytes, right - left, at * map_.columns + left, scratch);
        }
        for (std::size_t column = right; column < map_.columns; ++column) pad(at * map_.columns + column, scratch);
    }

    // Of positions side by side, the first of which is number `at` in memory.
    void make_tables(const std::uint8_t* bytes, std::size_t positions, std::size_t at, const Scratch& scratch) const {
        std::uint8_t* lower = scratch.tables + at * map_.per_position * row_bytes();
        if (is_wide(kernels_)) {
            return kernels_.make_wide_sums(bytes, positions, convolution_.input.channels, has_halves(convolution_),
                                           lower, scratch.spread.position_sums + at);
        }
        kernels_.make_subset_sums(bytes, positions, convolution_.input.channels, lower,
                                  planes() == 2 ? lower + plane_bytes() : nullptr, scratch.spread.position_sums + at);
    }

    void pad(std::size_t at, const Scratch& scratch) const {
        if (convolution_.input.zero != 0) return make_tables(zeros_.data(), 1, at, scratch);
        for (std::size_t plane = 0; plane < planes(); ++plane) {
            std::memset(scratch.tables + plane * plane_bytes() + at * map_.per_position * row_bytes(), 0,
                        map_.per_position * row_bytes());
        }
        scratch.spread.position_sums[at] = 0;
    }

    const Kernels& kernels_;
    Convolution convolution_;  // its arrays are not looked at any more
    PaddedMap map_;            // in rows of tables
    Blocks work_;              // in positions
    std::vector<Line> weights_;
    std::vector<float> scale_, offset_, bias_;
    std::vector<std::int32_t> shifts_;
    std::vector<std::uint8_t> zeros_;  // a padded position, where its bytes are not 0
    EpilogueArrays epilogue_;
};

}  // namespace

bool has_subset_conv(const Kernels& kernels, const Convolution& convolution) {
    const std::size_t rows = (convolution.input.channels + 7) / 8 * 2;
    return kernels.subset_conv != nullptr && convolution.groups == 1 &&
           convolution.window.extent() <= UINT32_MAX / rows / kWideRow / 2;
}

std::unique_ptr<Layer> make_subset_conv(const Builder& builder, const Convolution& convolution,
                                        const Epilogue& epilogue) {
    if (!builder.budget.take(SubsetConv::bytes(builder.kernels, convolution))) return nullptr;
    return std::make_unique<SubsetConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
