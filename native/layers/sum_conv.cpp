#include <algorithm>

#include "bits.h"
#include "epilogue.h"
#include "layers.h"
#include "spread_map.h"

namespace dabnet {
namespace {

constexpr std::size_t kPiece = 4;      // positions
constexpr std::size_t kPatterns = 16;  // filters whose patterns lie together

// A convolution of real numbers with one-bit weights, by sums of triples of channels; SumConvJob in kernels.h says how
// inputs and weights lie in memory.
class SumConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        const std::uint64_t filters = (convolution.filters + kBlock - 1) / kBlock * kBlock;
        return convolution.window.taps() * count_triples(convolution) * filters + 3 * filters * sizeof(float) +
               convolution.window.taps() * sizeof(std::size_t);
    }

    SumConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(convolution),
          triples_(count_triples(convolution)),
          map_(convolution.window, kernels.sums_per_triple * triples_),
          work_{(convolution.filters + kBlock - 1) / kBlock, static_cast<std::size_t>(convolution.window.positions()),
                kPiece},
          patterns_(work_.blocks * patterns_per_block()),
          scale_(filled_up(convolution.scale, convolution.filters)),
          offset_(filled_up(convolution.offset, convolution.filters)),
          bias_(filled_up(convolution.bias, convolution.filters)),
          epilogue_(epilogue) {
        make_patterns(convolution.bits);
    }

    std::uint64_t pieces() const override { return work_.pieces(); }
    double work() const override {
        const auto& [height, width] = convolution_.window;
        const double summed = static_cast<double>(height.positions) * static_cast<double>(height.kernel + 1) *
                              static_cast<double>(map_.columns);
        return convolution_.multiply_adds() +
               static_cast<double>(convolution_.window.extent()) * static_cast<double>(map_.per_position) + summed;
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
        SumConvJob sum{};
        sum.input = scratch.map;
        sum.starts = scratch.spread.starts;
        sum.runs = map_.runs.data();
        sum.run_count = map_.runs.size();
        sum.run_length = map_.run_length / kernels_.sums_per_triple;
        sum.scale = scale_.data();
        sum.offset = data_or_null(offset_);
        sum.bias = data_or_null(bias_);
        sum.sums = offset_.empty() ? nullptr : scratch.spread.sums;
        sum.epilogue = &epilogue;
        const std::uint64_t unit_work = patterns_per_block();
        const std::size_t at_once = (units_at_once(unit_work) + kPiece - 1) / kPiece * kPiece;
        const auto make_one = [&](std::size_t row, std::size_t at) { make_row(job.input<float>(), row, at, scratch); };
        const std::size_t row_length = map_.columns * map_.per_position;
        const auto move_rows = [&](std::size_t from, std::size_t count) {
            std::copy(scratch.map + from * row_length, scratch.map + (from + count) * row_length, scratch.map);
        };
        const auto convolve = [&](std::size_t block, std::size_t from, std::size_t to) {
            if (job.is_stopped((to - from) * unit_work)) return false;
            sum.first_position = from;
            sum.positions = to - from;
            sum.patterns = patterns_.data() + block * patterns_per_block();
            sum.first_filter = block * kBlock;
            kernels_.sum_conv(sum);
            return true;
        };
        run_spread_out(job, work_, convolution_.window, map_, scratch.spread, row_length * sizeof(float), at_once,
                       make_one, move_rows, convolve);
    }

   private:
    struct Scratch {
        float* map;  // of sums
        SpreadScratch<float> spread;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<float>(map_.size()), {carver, convolution_.window, map_, !offset_.empty()}};
    }

    static std::size_t count_triples(const Convolution& convolution) { return (convolution.input.channels + 2) / 3; }
    std::size_t patterns_per_block() const {
        return static_cast<std::size_t>(convolution_.window.taps()) * triples_ * kBlock;
    }

    // The first of 3 weights says whether the sum is subtracted; the others, whether they differ from it. Channels that
    // are not there count as the last one.
    void make_patterns(const std::uint8_t* bits) {
        const std::size_t taps = static_cast<std::size_t>(convolution_.window.taps()),
                          channels = convolution_.input.channels;
        const std::size_t row = (taps * channels + 7) / 8;
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            std::uint8_t* patterns =
                patterns_.data() + filter / kPatterns * taps * triples_ * kPatterns + filter % kPatterns;
            for (std::size_t tap = 0; tap < taps; ++tap) {
                for (std::size_t channel = 0; channel < channels; channel += 3, patterns += kPatterns) {
                    const std::size_t count = std::min<std::size_t>(channels - channel, 3);
                    unsigned three = bits_at(bits, tap * channels + channel, count);
                    for (std::size_t i = count; i < 3; ++i) three |= (three >> (count - 1) & 1) << i;
                    const unsigned is_minus = ~three & 1;
                    const unsigned which = ((three ^ three >> 1) & 1) | ((three ^ three >> 2) & 1) << 1;
                    *patterns = static_cast<std::uint8_t>(is_minus << 7 | is_minus << 2 | which);
                }
            }
        }
    }

    // Makes the sums of a row of the padded map, as number `at` in memory, and each position's sum.
    void make_row(const float* x, std::size_t row, std::size_t at, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::size_t left = map_.columns, right = map_.columns;  // the map's columns are between them
        if (row >= height.before && row - height.before < input.height) {
            left = std::min(width.before, map_.columns);
            right = std::min(width.before + input.width, map_.columns);
        }
        float* line = scratch.map + at * map_.columns * map_.per_position;
        std::fill(line, line + left * map_.per_position, 0.0f);
        if (left < right) {
            const float* positions = x + (row - height.before) * input.width * input.channels;
            kernels_.make_sums(positions, right - left, input.channels, line + left * map_.per_position);
        }
        std::fill(line + right * map_.per_position, line + map_.columns * map_.per_position, 0.0f);
        if (offset_.empty()) return;
        float* position_sums = scratch.spread.position_sums + at * map_.columns;
        std::size_t column = 0;
        for (; column + 8 <= map_.columns; column += 8) add_triples<8>(line, column, position_sums);
        for (; column < map_.columns; ++column) add_triples<1>(line, column, position_sums);
    }

    // Sums what is first of each triple, x + y + z, of a few columns at a time: an addition has to wait for the one
    // before it.
    template <std::size_t Columns>
    void add_triples(const float* line, std::size_t column, float* position_sums) const {
        float sums[Columns] = {};
        for (std::size_t i = 0; i < map_.per_position; i += kernels_.sums_per_triple) {
            for (std::size_t j = 0; j < Columns; ++j) sums[j] += line[(column + j) * map_.per_position + i];
        }
        std::copy(sums, sums + Columns, position_sums + column);
    }

    const Kernels& kernels_;
    Convolution convolution_;  // but for its arrays, which are not kept
    std::size_t triples_;      // of 3 channels
    PaddedMap map_;
    Blocks work_;
    std::vector<std::uint8_t> patterns_;
    std::vector<float> scale_, offset_, bias_;
    EpilogueArrays epilogue_;
};

}  // namespace

bool has_sum_conv(const Convolution& convolution) {
    return convolution.groups == 1 && convolution.window.extent() <= UINT32_MAX / (3 * convolution.input.channels + 8);
}

std::unique_ptr<Layer> make_sum_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue) {
    if (!builder.budget.take(SumConv::bytes(convolution))) return nullptr;
    return std::make_unique<SumConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
