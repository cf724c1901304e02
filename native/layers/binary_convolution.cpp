#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

class BinaryConvolution : public Layer {
   public:
    BinaryConvolution(const Kernels& kernels, Budget& budget, const Shape& input, const Window& window,
                      std::size_t filters, std::size_t groups, bool pad_with_ones, const OneBitWeights& weights,
                      const Followers& followers)
        : kernels_(kernels),
          input_(input),
          window_(window),
          filters_(filters),
          groups_(groups),
          pad_with_ones_(pad_with_ones),
          channels_(input.channels / groups),
          words_((channels_ + 63) / 64),
          taps_(window.down.kernel * window.across.kernel),
          finisher_(budget, filters, followers) {
        budget.take(filters * taps_ * words_ * sizeof(std::uint64_t) + 3 * filters * sizeof(float));
        bits_.resize(filters * taps_ * words_);
        const std::size_t row = (taps_ * channels_ + 7) / 8;
        for (std::size_t filter = 0; filter < filters; ++filter) {
            const std::uint8_t* bits = weights.bits + filter * row;
            std::uint64_t* words = bits_.data() + filter * taps_ * words_;
            for (std::size_t i = 0; i < taps_ * channels_; ++i) {
                const std::size_t tap = i / channels_, channel = i % channels_;
                const std::uint64_t bit = bits[i / 8] >> (i % 8) & 1;
                words[tap * words_ + channel / 64] |= bit << (channel % 64);
            }
        }
        scale_.assign(weights.scale, weights.scale + filters);
        if (weights.middle != nullptr) middle_.assign(weights.middle, weights.middle + filters);
        if (weights.bias != nullptr) bias_.assign(weights.bias, weights.bias + filters);
    }

    // What lies under the window, tap after tap, and the numbers of a place.
    std::size_t scratch_bytes() const override {
        return taps_ * words_ * sizeof(std::uint64_t) + (filters_ + 63) / 64 * 64 * sizeof(float);
    }

    std::size_t pieces() const override { return window_.down.places; }

    void run(const Job& job) const override {
        const auto* x = job.input<std::uint64_t>();
        auto* taps = static_cast<std::uint64_t*>(job.scratch);
        auto* values = reinterpret_cast<float*>(taps + taps_ * words_);
        const Finish finish = finisher_.finish(job);
        const std::size_t group_filters = filters_ / groups_;
        std::size_t place = job.from * window_.across.places;
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (std::size_t column = 0; column < window_.across.places; ++column, ++place) {
                for (std::size_t group = 0; group < groups_; ++group) {
                    const Seen seen = gather(x, row, column, group, taps);
                    for (std::size_t filter = group * group_filters; filter < (group + 1) * group_filters; ++filter) {
                        values[filter] = value(filter, seen, taps);
                    }
                }
                finish_place(kernels_, finish, place, values);
            }
        }
    }

   private:
    // The taps that count: a part of the window's rows and columns.
    struct Seen {
        std::size_t top, bottom, left, right;
        std::int64_t signs;  // how many
        std::int64_t sum;    // of them
    };

    Seen gather(const std::uint64_t* x, std::size_t row, std::size_t column, std::size_t group,
                std::uint64_t* taps) const {
        const auto& [down, across] = window_;
        const std::size_t top = down.first(row), bottom = down.end(row);
        const std::size_t left = across.first(column), right = across.end(column);
        if (pad_with_ones_) {
            for (std::size_t tap = 0; tap < taps_; ++tap) fill_with_ones(taps + tap * words_);
        }
        for (std::size_t i = top; i < bottom; ++i) {
            for (std::size_t j = left; j < right; ++j) {
                const std::size_t place = down.at(row, i) * input_.width + across.at(column, j);
                copy_group(x + place * input_.words(), group, taps + (i * across.kernel + j) * words_);
            }
        }
        Seen seen{top, bottom, left, right, 0, 0};
        if (pad_with_ones_) seen = {0, down.kernel, 0, across.kernel, 0, 0};
        std::uint64_t none[1] = {0};
        std::int64_t ones = 0;
        for (std::size_t i = seen.top; i < seen.bottom; ++i) {
            for (std::size_t word = (i * across.kernel + seen.left) * words_;
                 word < (i * across.kernel + seen.right) * words_; ++word) {
                ones += kernels_.count_differences(taps + word, none, 1);
            }
        }
        seen.signs = static_cast<std::int64_t>((seen.bottom - seen.top) * (seen.right - seen.left) * channels_);
        seen.sum = 2 * ones - seen.signs;
        return seen;
    }

    void fill_with_ones(std::uint64_t* tap) const {
        std::fill(tap, tap + words_, ~std::uint64_t{0});
        if (channels_ % 64 != 0) tap[words_ - 1] = (std::uint64_t{1} << (channels_ % 64)) - 1;
    }

    // The signs of one group of channels at a place, from the first bit on.
    void copy_group(const std::uint64_t* place, std::size_t group, std::uint64_t* tap) const {
        if (groups_ == 1) {
            std::copy(place, place + words_, tap);
            return;
        }
        std::fill(tap, tap + words_, std::uint64_t{0});
        for (std::size_t i = 0; i < channels_; ++i) {
            const std::size_t channel = group * channels_ + i;
            tap[i / 64] |= (place[channel / 64] >> (channel % 64) & 1) << (i % 64);
        }
    }

    float value(std::size_t filter, const Seen& seen, const std::uint64_t* taps) const {
        const std::uint64_t* bits = bits_.data() + filter * taps_ * words_;
        const std::size_t kernel = window_.across.kernel;
        std::int64_t differences = 0;
        if (seen.left == 0 && seen.right == kernel) {
            const std::size_t from = seen.top * kernel * words_;
            differences =
                kernels_.count_differences(taps + from, bits + from, (seen.bottom - seen.top) * kernel * words_);
        } else {
            for (std::size_t i = seen.top; i < seen.bottom; ++i) {
                const std::size_t from = (i * kernel + seen.left) * words_;
                differences += kernels_.count_differences(taps + from, bits + from, (seen.right - seen.left) * words_);
            }
        }
        float result = scale_[filter] * static_cast<float>(seen.signs - 2 * differences);
        if (!middle_.empty()) result = result + middle_[filter] * static_cast<float>(seen.sum);
        return bias_.empty() ? result : result + bias_[filter];
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t filters_, groups_;
    bool pad_with_ones_;
    std::size_t channels_, words_, taps_;  // of a group; of a tap; of a filter
    std::vector<std::uint64_t> bits_;      // (filters, taps, words)
    std::vector<float> scale_, middle_, bias_;
    Finisher finisher_;
};

}  // namespace

std::unique_ptr<Layer> make_binary_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                               const Window& window, std::size_t filters, std::size_t groups,
                                               bool pad_with_ones, const OneBitWeights& weights,
                                               const Followers& followers) {
    if (has_tables(kernels, input, window, groups)) {
        return make_table_convolution(kernels, budget, input, window, filters, pad_with_ones, weights, followers);
    }
    return std::make_unique<BinaryConvolution>(kernels, budget, input, window, filters, groups, pad_with_ones, weights,
                                               followers);
}

}  // namespace dabnet
