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
        budget.take((filters * taps * group_channels_ + sums_room()) * sizeof(float));
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
        bias_.assign(sums_room(), 0);
        if (bias != nullptr) std::copy(bias, bias + filters, bias_.begin());
    }

    std::size_t pieces() const override { return window_.down.places; }

    // The terms of a place, where their parts end, the sums of all filters, and the ink.
    std::size_t scratch_bytes() const override {
        return most_terms() * sizeof(Term) + most_parts() * sizeof(std::size_t) + sums_room() * sizeof(float) +
               input_.count() * sizeof(Ink) + (input_.places() * groups_ + 1) * sizeof(std::uint32_t) +
               (input_.width + 1) * sizeof(std::uint32_t);
    }

    void run(const Job& job) const override {
        auto* terms = static_cast<Term*>(job.scratch);
        auto* ends = reinterpret_cast<std::size_t*>(terms + most_terms());
        auto* sums = reinterpret_cast<float*>(ends + most_parts());
        auto* ink = reinterpret_cast<Ink*>(sums + sums_room());
        auto* starts = reinterpret_cast<std::uint32_t*>(ink + input_.count());
        std::uint32_t* inked = starts + input_.places() * groups_ + 1;
        find_ink(job.input<float>(), job.from, job.to, ink, starts);
        const Finish finish = finisher_.finish(job);
        std::size_t place = job.from * window_.across.places;
        for (std::size_t row = job.from; row < job.to; ++row) {
            find_inked_columns(starts, row, inked);
            for (std::size_t column = 0; column < window_.across.places; ++column, ++place) {
                if (is_blank(inked, column)) {
                    finish_place(kernels_, finish, place, bias_.data());
                    continue;
                }
                for (std::size_t group = 0; group < groups_; ++group) {
                    const std::size_t parts = gather(ink, starts, row, column, group, terms, ends);
                    const std::size_t first = group * group_filters_;
                    kernels_.add_up({terms, ends, parts, group_filters_, bias_.data() + first, sums + first});
                }
                finish_place(kernels_, finish, place, sums);
            }
        }
    }

   private:
    static constexpr std::size_t kPart = 64;  // weights of a filter whose products are one part of its sum

    // A number that is not 0, and its channel within its group.
    struct Ink {
        float x;
        std::uint32_t channel;
    };

    std::size_t most_terms() const { return window_.down.kernel * window_.across.kernel * group_channels_; }
    std::size_t most_parts() const { return (most_terms() + kPart - 1) / kPart; }
    std::size_t sums_room() const { return (groups_ * group_filters_ + 63) / 64 * 64; }

    // Lists what is not 0 on the rows that some rows of places see: most of paper is blank, and a ReLU leaves much that
    // is. `starts` says where in the list each place's groups start.
    void find_ink(const float* x, std::size_t from, std::size_t to, Ink* ink, std::uint32_t* starts) const {
        const auto& down = window_.down;
        std::size_t top = input_.height, bottom = 0;
        for (std::size_t row = from; row < to; ++row) {
            if (down.first(row) == down.end(row)) continue;
            top = std::min(top, down.at(row, down.first(row)));
            bottom = std::max(bottom, down.at(row, down.end(row) - 1) + 1);
        }
        std::uint32_t count = 0;
        for (std::size_t place = top * input_.width; place < bottom * input_.width; ++place) {
            for (std::size_t group = 0; group < groups_; ++group) {
                const std::size_t at = place * groups_ + group;
                starts[at] = count;
                const float* channels = x + at * group_channels_;
                for (std::uint32_t channel = 0; channel < group_channels_; ++channel) {
                    ink[count] = {channels[channel], channel};
                    count += channels[channel] != 0;
                }
            }
            starts[(place + 1) * groups_] = count;
        }
    }

    // Counts, for each column, those before it that have ink in what a row of windows sees.
    void find_inked_columns(const std::uint32_t* starts, std::size_t row, std::uint32_t* inked) const {
        const auto& down = window_.down;
        std::fill(inked, inked + input_.width + 1, 0u);
        for (std::size_t i = down.first(row); i < down.end(row); ++i) {
            const std::uint32_t* start = starts + down.at(row, i) * input_.width * groups_;
            for (std::size_t column = 0; column < input_.width; ++column) {
                inked[column + 1] |= start[column * groups_] != start[(column + 1) * groups_];
            }
        }
        for (std::size_t column = 0; column < input_.width; ++column) inked[column + 1] += inked[column];
    }

    bool is_blank(const std::uint32_t* inked, std::size_t column) const {
        const auto& across = window_.across;
        const std::size_t left = across.first(column), right = across.end(column);
        return left == right || inked[across.at(column, left)] == inked[across.at(column, right - 1) + 1];
    }

    // Collects the ink under the window. Returns the number of parts.
    std::size_t gather(const Ink* ink, const std::uint32_t* starts, std::size_t row, std::size_t column,
                       std::size_t group, Term* terms, std::size_t* ends) const {
        const auto& [down, across] = window_;
        const float* group_weights = weights_.data() + group * most_terms() * group_filters_;
        std::size_t count = 0, parts = 0, part = 0;
        const std::size_t left = across.first(column), right = across.end(column);
        for (std::size_t i = down.first(row); i < down.end(row) && left < right; ++i) {
            const std::uint32_t* starts_row = starts + down.at(row, i) * input_.width * groups_;
            if (starts_row[across.at(column, left) * groups_] ==
                starts_row[(across.at(column, right - 1) + 1) * groups_]) {
                continue;
            }
            for (std::size_t j = left; j < right; ++j) {
                const std::uint32_t* start = starts_row + across.at(column, j) * groups_ + group;
                const std::size_t first = (i * across.kernel + j) * group_channels_;
                for (const Ink *dot = ink + start[0], *end = ink + start[1]; dot != end; ++dot) {
                    const std::size_t weight = first + dot->channel;
                    if (weight / kPart != part && count != 0) ends[parts++] = count;
                    part = weight / kPart;
                    terms[count++] = {dot->x, group_weights + weight * group_filters_};
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
    if (has_sums(input, window, groups)) {
        return make_sum_convolution(kernels, budget, input, window, filters, weights, followers);
    }
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
