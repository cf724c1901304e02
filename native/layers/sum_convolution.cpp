#include <algorithm>

#include "blocks.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kPiece = 4;      // places
constexpr std::size_t kPatterns = 16;  // filters whose patterns stand together

// A convolution of real numbers with one-bit weights, by sums of three channels; kernels.h says how inputs and weights
// stand in memory.
class SumConvolution : public Layer {
   public:
    SumConvolution(const Kernels& kernels, Budget& budget, const Shape& input, const Window& window,
                   std::size_t filters, const OneBitWeights& weights, const Followers& followers)
        : kernels_(kernels),
          input_(input),
          window_(window),
          groups_((input.channels + 2) / 3),
          map_(window, 4 * groups_),
          work_{(filters + kBlock - 1) / kBlock, window.places(), kPiece},
          finisher_(budget, filters, followers) {
        budget.take(patterns_a_block() * work_.blocks + 3 * work_.blocks * kBlock * sizeof(float));
        budget.take(window.places() * sizeof(std::uint32_t));
        make_patterns(weights.bits, filters);
        scale_ = filled_up(weights.scale, filters);
        middle_ = filled_up(weights.middle, filters);
        bias_ = filled_up(weights.bias, filters);
        for (std::size_t row = 0; row < window.down.places; ++row) {
            for (std::size_t column = 0; column < window.across.places; ++column) {
                starts_.push_back(static_cast<std::uint32_t>(map_.start(window, row, column)));
            }
        }
    }

    std::size_t pieces() const override { return work_.pieces(); }

    // The map of sums, each place's sum, the sums of columns, and what a window sums to.
    std::size_t scratch_bytes() const override {
        return (map_.size() + map_.rows * map_.columns + map_.columns + window_.places()) * sizeof(float);
    }

    void run(const Job& job) const override {
        auto* map = static_cast<float*>(job.scratch);
        float* place_sums = map + map_.size();
        float* column_sums = place_sums + map_.rows * map_.columns;
        float* sums = column_sums + map_.columns;

        const auto [first, end] = work_.to_prepare(job);
        if (first < end) {
            const std::size_t first_row = first / window_.across.places;
            const std::size_t end_row = (end - 1) / window_.across.places + 1;
            each_row_seen(window_.down, first_row, end_row,
                          [&](std::size_t row) { make_row(job.input<float>(), row, map, place_sums); });
            for (std::size_t row = first_row; row < end_row && !middle_.empty(); ++row) {
                add_windows(window_, map_.columns, place_sums, row, column_sums, sums + row * window_.across.places);
            }
        }

        const Finish finish = finisher_.finish(job);
        SumJob sum{};
        sum.input = map;
        sum.starts = starts_.data();
        sum.runs = map_.runs.data();
        sum.run_count = map_.runs.size();
        sum.run_length = map_.run_length / 4;
        sum.scale = scale_.data();
        sum.middle = data_or_null(middle_);
        sum.bias = data_or_null(bias_);
        sum.sums = middle_.empty() ? nullptr : sums;
        sum.finish = &finish;
        work_.each(job.from, job.to, [&](std::size_t block, std::size_t from, std::size_t to) {
            sum.first_place = from;
            sum.places = to - from;
            sum.patterns = patterns_.data() + block * patterns_a_block();
            sum.first = block * kBlock;
            kernels_.add_sums(sum);
        });
    }

   private:
    std::size_t patterns_a_block() const { return window_.taps() * groups_ * kBlock; }

    // The first of 3 weights says whether the sum is subtracted; the others, whether they differ from it.
    void make_patterns(const std::uint8_t* bits, std::size_t filters) {
        patterns_.resize(work_.blocks * patterns_a_block());
        const std::size_t taps = window_.taps(), row = (taps * input_.channels + 7) / 8;
        for (std::size_t filter = 0; filter < filters; ++filter) {
            std::uint8_t* patterns =
                patterns_.data() + filter / kPatterns * taps * groups_ * kPatterns + filter % kPatterns;
            for (std::size_t tap = 0; tap < taps; ++tap) {
                for (std::size_t group = 0; group < groups_; ++group, patterns += kPatterns) {
                    const auto is_minus = [&](std::size_t i) {
                        const std::size_t channel = std::min(3 * group + i, input_.channels - 1);
                        const std::size_t bit = tap * input_.channels + channel;
                        return (bits[filter * row + bit / 8] >> (bit % 8) & 1) == 0 ? 1u : 0u;
                    };
                    const unsigned which = (is_minus(0) ^ is_minus(1)) | (is_minus(0) ^ is_minus(2)) << 1;
                    *patterns = static_cast<std::uint8_t>(is_minus(0) << 7 | which);
                }
            }
        }
    }

    // Makes the sums of a row of the padded map, and each place's sum.
    void make_row(const float* x, std::size_t row, float* map, float* place_sums) const {
        const auto& [down, across] = window_;
        const bool is_row_inside = row >= down.before && row - down.before < input_.height;
        for (std::size_t column = 0; column < map_.columns; ++column) {
            const std::size_t at = row * map_.columns + column;
            float* sums = map + at * map_.length;
            place_sums[at] = 0;
            if (is_row_inside && column >= across.before && column - across.before < input_.width) {
                const std::size_t place = (row - down.before) * input_.width + (column - across.before);
                kernels_.make_sums(x + place * input_.channels, input_.channels, sums);
                for (std::size_t group = 0; group < groups_ && !middle_.empty(); ++group) {
                    place_sums[at] += sums[4 * group];
                }
            } else {
                std::fill(sums, sums + map_.length, 0.0f);
            }
        }
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t groups_;  // of 3 channels
    PaddedMap map_;
    Blocks work_;
    std::vector<std::uint8_t> patterns_;
    std::vector<float> scale_, middle_, bias_;
    std::vector<std::uint32_t> starts_;
    Finisher finisher_;
};

}  // namespace

bool has_sums(const Shape& input, const Window& window, std::size_t groups) {
    return groups == 1 && window.down.extent() * window.across.extent() <= UINT32_MAX / (2 * input.channels + 8);
}

std::unique_ptr<Layer> make_sum_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                            const Window& window, std::size_t filters, const OneBitWeights& weights,
                                            const Followers& followers) {
    return std::make_unique<SumConvolution>(kernels, budget, input, window, filters, weights, followers);
}

}  // namespace dabnet
