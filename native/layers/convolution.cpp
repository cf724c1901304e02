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
                std::size_t groups, const float* bias, const Followers& followers, Weight weight)
        : kernels_(kernels),
          input_(input),
          window_(window),
          groups_(groups),
          group_channels_(input.channels / groups),
          group_filters_(filters / groups),
          finisher_(budget, filters, followers) {
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

    // The terms of a place, where their parts end, the sums of all filters, and where there is ink.
    std::size_t scratch_bytes() const override {
        return most_terms() * sizeof(Term) + most_parts() * sizeof(std::size_t) + sums_room() * sizeof(float) +
               input_.height * (input_.width + 1) * sizeof(std::uint32_t);
    }

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void* scratch) const override {
        const auto* x = static_cast<const float*>(inputs[0]);
        auto* terms = static_cast<Term*>(scratch);
        auto* ends = reinterpret_cast<std::size_t*>(terms + most_terms());
        auto* sums = reinterpret_cast<float*>(ends + most_parts());
        auto* ink = reinterpret_cast<std::uint32_t*>(sums + sums_room());
        find_ink(x, ink);
        const Finish finish = finisher_.job(inputs, outputs);
        std::size_t place = 0;
        for (std::size_t row = 0; row < window_.down.places; ++row) {
            for (std::size_t column = 0; column < window_.across.places; ++column, ++place) {
                for (std::size_t group = 0; group < groups_; ++group) {
                    const std::size_t parts = gather(x, ink, row, column, group, terms, ends);
                    const std::size_t first = group * group_filters_;
                    kernels_.add_up({terms, ends, parts, group_filters_, bias_.data() + first, sums + first});
                }
                finish_place(kernels_, finish, place, sums);
            }
        }
    }

   private:
    static constexpr std::size_t kPart = 64;  // weights of a filter whose products are one part of its sum

    std::size_t most_terms() const { return window_.down.kernel * window_.across.kernel * group_channels_; }
    std::size_t most_parts() const { return (most_terms() + kPart - 1) / kPart; }
    std::size_t sums_room() const { return (groups_ * group_filters_ + 63) / 64 * 64; }

    // Counts, for each place of a row, the places before it that are not blank: paper is, for the most part.
    void find_ink(const float* x, std::uint32_t* ink) const {
        for (std::size_t row = 0; row < input_.height; ++row) {
            std::uint32_t count = 0;
            for (std::size_t column = 0; column < input_.width; ++column, x += input_.channels) {
                *ink++ = count;
                count += std::any_of(x, x + input_.channels, [](float number) { return number != 0; });
            }
            *ink++ = count;
        }
    }

    // Collects what is not 0 under the window; a ReLU leaves much that is. Returns the number of parts.
    std::size_t gather(const float* x, const std::uint32_t* ink, std::size_t row, std::size_t column, std::size_t group,
                       Term* terms, std::size_t* ends) const {
        const auto& [down, across] = window_;
        const float* group_weights = weights_.data() + group * most_terms() * group_filters_;
        std::size_t count = 0, parts = 0, part = 0;
        const std::size_t left = across.first(column), right = across.end(column);
        for (std::size_t i = down.first(row); i < down.end(row) && left < right; ++i) {
            const std::uint32_t* ink_row = ink + down.at(row, i) * (input_.width + 1);
            if (ink_row[across.at(column, left)] == ink_row[across.at(column, right - 1) + 1]) continue;
            for (std::size_t j = left; j < right; ++j) {
                const std::size_t place = down.at(row, i) * input_.width + across.at(column, j);
                const float* channels = x + place * input_.channels + group * group_channels_;
                const std::size_t first = (i * across.kernel + j) * group_channels_;
                for (std::size_t channel = 0; channel < group_channels_; ++channel) {
                    if (channels[channel] == 0) continue;
                    const std::size_t weight = first + channel;
                    if (weight / kPart != part && count != 0) ends[parts++] = count;
                    part = weight / kPart;
                    terms[count++] = {channels[channel], group_weights + weight * group_filters_};
                }
            }
        }
        if (count != 0) ends[parts++] = count;
        return parts;
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t groups_, group_channels_, group_filters_;
    std::vector<float> weights_;  // (groups, taps, channels of a group, filters of a group)
    std::vector<float> bias_;
    Finisher finisher_;
};

}  // namespace

std::unique_ptr<Layer> make_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                        const Window& window, std::size_t filters, std::size_t groups,
                                        const float* weights, const float* bias, const Followers& followers) {
    const std::size_t channels = input.channels / groups;
    const std::size_t taps = window.down.kernel * window.across.kernel;
    return std::make_unique<Convolution>(kernels, budget, input, window, filters, groups, bias, followers,
                                         [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                             return weights[(filter * taps + tap) * channels + channel];
                                         });
}

std::unique_ptr<Layer> make_one_bit_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                                const Window& window, std::size_t filters, std::size_t groups,
                                                const OneBitWeights& weights, const Followers& followers) {
    const std::size_t channels = input.channels / groups;
    const std::size_t taps = window.down.kernel * window.across.kernel;
    const std::size_t row = (taps * channels + 7) / 8;
    return std::make_unique<Convolution>(kernels, budget, input, window, filters, groups, weights.bias, followers,
                                         [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                             const bool plus =
                                                 bit_at(weights.bits + filter * row, tap * channels + channel);
                                             const float value = plus ? weights.scale[filter] : -weights.scale[filter];
                                             return weights.middle == nullptr ? value : value + weights.middle[filter];
                                         });
}

}  // namespace dabnet
