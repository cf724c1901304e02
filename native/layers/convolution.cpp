#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

bool bit_at(const std::uint8_t* bits, std::size_t i) { return bits[i / 8] >> (i % 8) & 1; }

class Convolution {
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

    std::size_t rows() const { return window_.down.places; }
    std::size_t columns() const { return window_.across.places; }
    std::size_t filters() const { return groups_ * group_filters_; }
    const Kernels& kernels() const { return kernels_; }

    // The terms of a place, where their parts end, the sums of all filters, and the ink.
    std::size_t scratch_bytes() const {
        return most_terms() * sizeof(Term) + most_parts() * sizeof(std::size_t) + sums_room() * sizeof(float) +
               input_.count() * sizeof(Ink) + (input_.places() * groups_ + input_.width + 2) * sizeof(std::uint32_t);
    }

    // A number that is not 0, and where it stands in its row, among its group's channels.
    struct Ink {
        float x;
        std::uint32_t at;
    };

    // Rows of a sketch, on their way.
    class Run {
       public:
        // For rows [from, to).
        Run(const Convolution& layer, const float* x, std::size_t from, std::size_t to, void* scratch)
            : layer_(layer),
              terms_(static_cast<Term*>(scratch)),
              ends_(reinterpret_cast<std::size_t*>(terms_ + layer.most_terms())),
              sums_(reinterpret_cast<float*>(ends_ + layer.most_parts())),
              ink_(reinterpret_cast<Ink*>(sums_ + layer.sums_room())),
              starts_(reinterpret_cast<std::uint32_t*>(ink_ + layer.input_.count())),
              inked_(starts_ + layer.input_.places() * layer.groups_ + 1) {
            layer.find_ink(x, from, to, ink_, starts_);
        }

        // Makes a row; its first place is number `place` of what is finished. What of it sees only blank paper is left
        // out, if asked, and noted.
        void row(std::size_t row, const Finish& finish, std::size_t place, bool* left_out = nullptr) {
            layer_.find_inked_columns(starts_, row, inked_);
            for (std::size_t column = 0; column < layer_.columns(); ++column, ++place) {
                const bool is_blank = layer_.is_blank(inked_, column);
                if (left_out != nullptr) left_out[column] = is_blank;
                if (left_out != nullptr && is_blank) continue;
                for (std::size_t group = 0; group < layer_.groups_ && !is_blank; ++group) {
                    const std::size_t parts = layer_.gather(ink_, starts_, row, column, group, terms_, ends_);
                    const std::size_t first = group * layer_.group_filters_;
                    layer_.kernels_.add_up(
                        {terms_, ends_, parts, layer_.group_filters_, layer_.bias_.data() + first, sums_ + first});
                }
                finish_place(layer_.kernels_, finish, place, is_blank ? layer_.bias_.data() : sums_);
            }
        }

        // Makes a place that sees only blank paper.
        void blank(const Finish& finish, std::size_t place) {
            finish_place(layer_.kernels_, finish, place, layer_.bias_.data());
        }

       private:
        const Convolution& layer_;
        Term* terms_;
        std::size_t* ends_;
        float* sums_;
        Ink* ink_;
        std::uint32_t *starts_, *inked_;
    };

   private:
    static constexpr std::size_t kPart = 64;  // weights of a filter whose products are one part of its sum

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
                const std::size_t first = place % input_.width * group_channels_;
                for (std::size_t channel = 0; channel < group_channels_; ++channel) {
                    if (channels[channel] == 0) continue;
                    ink[count++] = {channels[channel], static_cast<std::uint32_t>(first + channel)};
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
        // Taps that nothing lies between are seen at once.
        const std::size_t left = across.first(column), right = across.end(column);
        const std::size_t at_once = groups_ == 1 && across.dilation == 1 ? right - left : 1;
        std::size_t count = 0, parts = 0, part = 0;
        for (std::size_t i = down.first(row); i < down.end(row); ++i) {
            const std::uint32_t* starts_row = starts + down.at(row, i) * input_.width * groups_;
            for (std::size_t j = left; j < right; j += at_once) {
                const std::size_t at = across.at(column, j);
                const std::uint32_t* start = starts_row + at * groups_ + group;
                const std::size_t tap = i * across.kernel + j;
                for (const Ink *dot = ink + start[0], *end = ink + start[at_once]; dot != end; ++dot) {
                    const std::size_t weight = tap * group_channels_ + (dot->at - at * group_channels_);
                    if (weight / kPart != part) {
                        if (count != 0) ends[parts++] = count;
                        part = weight / kPart;
                    }
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
};

class PlainConvolution : public Layer {
   public:
    PlainConvolution(Budget& budget, Convolution convolution, const Followers& followers)
        : convolution_(std::move(convolution)), finisher_(budget, convolution_.filters(), followers) {}

    std::size_t pieces() const override { return convolution_.rows(); }
    std::size_t scratch_bytes() const override { return convolution_.scratch_bytes(); }

    void run(const Job& job) const override {
        Convolution::Run run(convolution_, job.input<float>(), job.from, job.to, job.scratch);
        const Finish finish = finisher_.finish(job);
        for (std::size_t row = job.from; row < job.to; ++row) run.row(row, finish, row * convolution_.columns());
    }

   private:
    Convolution convolution_;
    Finisher finisher_;
};

// With a max-pool after it: of the convolution's rows only those are kept that a row of the pool needs, and of all
// places that see blank paper only one.
class PooledConvolution : public Layer {
   public:
    PooledConvolution(Budget& budget, Convolution convolution, const Followers& followers)
        : convolution_(std::move(convolution)),
          pool_(*followers.pool),
          before_(budget, convolution_.filters(), activation_of(followers)),
          after_(budget, convolution_.filters(), rest_of(followers)) {}

    std::size_t pieces() const override { return pool_.down.places; }

    // What the convolution needs, what a window of the pool sees, the rows, a blank place, a place of the pool, and
    // what of the rows is blank.
    std::size_t scratch_bytes() const override {
        return scratch_start() + pool_.taps() * sizeof(const float*) +
               (kept_rows() * row_length() + 2 * room()) * sizeof(float) + kept_rows() * convolution_.columns();
    }

    void run(const Job& job) const override {
        auto* bytes = static_cast<std::byte*>(job.scratch);
        auto* taps = reinterpret_cast<const float**>(bytes + scratch_start());
        auto* rows = reinterpret_cast<float*>(taps + pool_.taps());
        const float* blank = rows + kept_rows() * row_length();
        float* found = rows + kept_rows() * row_length() + room();
        auto* left_out = reinterpret_cast<bool*>(found + room());

        const auto& [down, across] = pool_;
        std::size_t next = down.at(job.from, down.first(job.from));
        const std::size_t end = down.at(job.to - 1, down.end(job.to - 1) - 1) + 1;
        Convolution::Run run(convolution_, job.input<float>(), next, end, job.scratch);
        Finish before = before_.finish(job);
        before.real = rows;
        run.blank(before, kept_rows() * convolution_.columns());
        const Finish after = after_.finish(job);
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (; next <= down.at(row, down.end(row) - 1); ++next) {
                const std::size_t first = next % kept_rows() * convolution_.columns();
                run.row(next, before, first, left_out + first);
            }
            for (std::size_t column = 0; column < across.places; ++column) {
                std::size_t count = 0;
                bool sees_blank = false;
                for (std::size_t i = down.first(row); i < down.end(row); ++i) {
                    const std::size_t first = down.at(row, i) % kept_rows() * convolution_.columns();
                    for (std::size_t j = across.first(column); j < across.end(column); ++j) {
                        const std::size_t place = first + across.at(column, j);
                        if (left_out[place]) {
                            sees_blank = true;
                        } else {
                            taps[count++] = rows + place * convolution_.filters();
                        }
                    }
                }
                const float* most = count == 0 ? blank : found;
                if (count != 0) {
                    if (sees_blank) taps[count++] = blank;
                    convolution_.kernels().largest(taps, count, convolution_.filters(), found);
                }
                finish_place(convolution_.kernels(), after, row * across.places + column, most);
            }
        }
    }

   private:
    static Followers activation_of(const Followers& followers) {
        Followers activation;
        activation.slope = followers.slope;
        activation.low = followers.low;
        activation.high = followers.high;
        return activation;
    }
    static Followers rest_of(const Followers& followers) {
        Followers rest;
        rest.signs = followers.signs;
        rest.makes_real = followers.makes_real;
        return rest;
    }

    std::size_t kept_rows() const { return (pool_.down.kernel - 1) * pool_.down.dilation + 1; }
    std::size_t row_length() const { return convolution_.columns() * convolution_.filters(); }
    std::size_t room() const { return (convolution_.filters() + 63) / 64 * 64; }
    std::size_t scratch_start() const { return (convolution_.scratch_bytes() + 15) / 16 * 16; }

    Convolution convolution_;
    Window pool_;
    Finisher before_, after_;
};

std::unique_ptr<Layer> with_followers(Budget& budget, Convolution convolution, const Followers& followers) {
    if (followers.pool != nullptr) {
        return std::make_unique<PooledConvolution>(budget, std::move(convolution), followers);
    }
    return std::make_unique<PlainConvolution>(budget, std::move(convolution), followers);
}

}  // namespace

std::unique_ptr<Layer> make_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                        const Window& window, std::size_t filters, std::size_t groups,
                                        const float* weights, const float* bias, const Followers& followers) {
    const std::size_t channels = input.channels / groups;
    const std::size_t taps = window.down.kernel * window.across.kernel;
    Convolution convolution(kernels, budget, input, window, filters, groups, bias,
                            [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                return weights[(filter * taps + tap) * channels + channel];
                            });
    return with_followers(budget, std::move(convolution), followers);
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
    Convolution convolution(kernels, budget, input, window, filters, groups, weights.bias,
                            [=](std::size_t filter, std::size_t tap, std::size_t channel) {
                                const bool plus = bit_at(weights.bits + filter * row, tap * channels + channel);
                                const float value = plus ? weights.scale[filter] : -weights.scale[filter];
                                return weights.middle == nullptr ? value : value + weights.middle[filter];
                            });
    return with_followers(budget, std::move(convolution), followers);
}

}  // namespace dabnet
