#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

bool bit_at(const std::uint8_t* bits, std::size_t i) { return bits[i / 8] >> (i % 8) & 1; }

class Convolution : public Layer {
   public:
    // `weight(filter, tap, channel)` gives one weight.
    template <typename Weight>
    Convolution(const Kernels& kernels, Budget& budget, const Shape& input, const Window& window, std::size_t filters,
                std::size_t groups, const float* bias, Weight weight)
        : kernels_(kernels),
          input_(input),
          window_(window),
          groups_(groups),
          group_channels_(input.channels / groups),
          group_filters_(filters / groups) {
        const std::size_t taps = window.down.kernel * window.across.kernel;
        budget.take((filters * taps * group_channels_ + filters) * sizeof(float));
        weights_.resize(filters * taps * group_channels_);
        for (std::size_t filter = 0; filter < filters; ++filter) {
            const std::size_t group = filter / group_filters_;
            for (std::size_t tap = 0; tap < taps; ++tap) {
                for (std::size_t channel = 0; channel < group_channels_; ++channel) {
                    weights_[((group * taps + tap) * group_channels_ + channel) * group_filters_ +
                             filter % group_filters_] = weight(filter, tap, channel);
                }
            }
        }
        bias_.assign(filters, 0);
        if (bias != nullptr) bias_.assign(bias, bias + filters);
    }

    // A part of the sums of a group's filters.
    std::size_t scratch_bytes() const override { return group_filters_ * sizeof(float); }

    void run(const std::vector<const void*>& inputs, void* output, void* scratch) const override {
        const auto* x = static_cast<const float*>(inputs[0]);
        auto* y = static_cast<float*>(output);
        const std::size_t filters = groups_ * group_filters_;
        for (std::size_t row = 0; row < window_.down.places; ++row) {
            for (std::size_t column = 0; column < window_.across.places; ++column) {
                for (std::size_t group = 0; group < groups_; ++group) {
                    run_place(x, row, column, group, static_cast<float*>(scratch), y + group * group_filters_);
                }
                y += filters;
            }
        }
    }

   private:
    // Products are summed up in parts of so many channels, and then the parts: long sums lose less to rounding so.
    static constexpr std::size_t kPart = 64;

    void run_place(const float* x, std::size_t row, std::size_t column, std::size_t group, float* part,
                   float* sums) const {
        const auto& [down, across] = window_;
        const std::size_t taps = down.kernel * across.kernel;
        const float* bias = bias_.data() + group * group_filters_;
        std::copy(bias, bias + group_filters_, sums);
        for (std::size_t i = down.first(row); i < down.end(row); ++i) {
            for (std::size_t j = across.first(column); j < across.end(column); ++j) {
                const std::size_t place = down.at(row, i) * input_.width + across.at(column, j);
                const float* channels = x + place * input_.channels + group * group_channels_;
                const std::size_t tap = i * across.kernel + j;
                const float* weights = weights_.data() + (group * taps + tap) * group_channels_ * group_filters_;
                for (std::size_t start = 0; start < group_channels_; start += kPart) {
                    const std::size_t end = std::min(start + kPart, group_channels_);
                    add_part(channels, weights, start, end, part, sums);
                }
            }
        }
    }

    void add_part(const float* channels, const float* weights, std::size_t start, std::size_t end, float* part,
                  float* sums) const {
        std::fill(part, part + group_filters_, 0.0f);
        bool is_blank = true;
        for (std::size_t channel = start; channel < end; ++channel) {
            if (channels[channel] == 0) continue;  // blank paper, and most of what a ReLU leaves
            kernels_.multiply_add(channels[channel], weights + channel * group_filters_, group_filters_, part);
            is_blank = false;
        }
        if (is_blank) return;
        for (std::size_t filter = 0; filter < group_filters_; ++filter) sums[filter] += part[filter];
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t groups_, group_channels_, group_filters_;
    std::vector<float> weights_;  // (groups, taps, channels of a group, filters of a group)
    std::vector<float> bias_;
};

}  // namespace

std::unique_ptr<Layer> make_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                        const Window& window, std::size_t filters, std::size_t groups,
                                        const float* weights, const float* bias) {
    const std::size_t channels = input.channels / groups;
    const std::size_t taps = window.down.kernel * window.across.kernel;
    return std::make_unique<Convolution>(kernels, budget, input, window, filters, groups, bias,
                                         [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                             return weights[(filter * taps + tap) * channels + channel];
                                         });
}

std::unique_ptr<Layer> make_one_bit_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                                const Window& window, std::size_t filters, std::size_t groups,
                                                const OneBitWeights& weights) {
    const std::size_t channels = input.channels / groups;
    const std::size_t taps = window.down.kernel * window.across.kernel;
    const std::size_t row = (taps * channels + 7) / 8;
    return std::make_unique<Convolution>(kernels, budget, input, window, filters, groups, weights.bias,
                                         [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                             const bool plus =
                                                 bit_at(weights.bits + filter * row, tap * channels + channel);
                                             const float value = plus ? weights.scale[filter] : -weights.scale[filter];
                                             return weights.middle == nullptr ? value : value + weights.middle[filter];
                                         });
}

}  // namespace dabnet
