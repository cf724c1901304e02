#include <algorithm>
#include <cmath>

#include "../scratch.h"
#include "blocks.h"
#include "epilogue.h"
#include "float_conv.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kMostTaps = 512;
constexpr std::size_t kMostFilters = 32;  // of a group: of more, the general way does several at a time, too

// A convolution of real numbers in groups, depthwise ones above all. It adds the same products in the same order as
// FloatConv, but for filters of several groups at a time; products with zeros, which that leaves out, change nothing.
//
// Filters want a number each, side by side. Where every filter has a channel of its own, that is how they stand. Else
// the rows that are seen are spread out: each position has, for each channel of a group, a number for every filter.
class GroupConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        return (convolution.taps() + 1) * length_of(convolution) * sizeof(float) +
               convolution.window.width.positions * sizeof(std::size_t);
    }

    GroupConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : depthwise_conv_(kernels.depthwise_conv != nullptr ? kernels.depthwise_conv : kPortableKernels.depthwise_conv),
          convolution_(convolution),
          length_(length_of(convolution)),
          weights_(static_cast<std::size_t>(convolution.taps()) * length_),
          bias_(length_),
          epilogue_(epilogue) {
        for (std::size_t filter = 0; filter < convolution.filters; ++filter) {
            for (std::size_t i = 0; i < convolution.taps(); ++i)
                weights_[i * length_ + filter] = real_weight(convolution, filter, i);
        }
        if (convolution.bias != nullptr)
            std::copy(convolution.bias, convolution.bias + convolution.filters, bias_.begin());
        const Axis& width = convolution.window.width;
        for (std::size_t column = 1; column < width.positions; ++column) {
            if (width.first(column) != width.first(column - 1) || width.end(column) != width.end(column - 1)) {
                ends_.push_back(column);
            }
        }
        ends_.push_back(width.positions);
    }

    std::uint64_t pieces() const override { return convolution_.window.height.positions; }
    double work() const override {
        const double spread = is_depthwise() ? 0 : static_cast<double>(position_length());
        return convolution_.multiply_adds() + static_cast<double>(convolution_.output().count()) +
               static_cast<double>(convolution_.input.positions()) * spread;
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        const auto& [height, width] = convolution_.window;
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        DepthwiseConvJob conv{};
        conv.x = scratch.x;
        conv.weights = scratch.weights;
        conv.ends = scratch.part_ends;
        conv.step = width.stride * position_length();
        conv.bias = bias_.data();
        conv.epilogue = &epilogue;
        const std::uint64_t position_work = (convolution_.taps() + 1) * length_ / 8;
        const std::size_t at_once = units_at_once(position_work);
        std::size_t next = 0;  // row of the padded map to spread out
        for (std::size_t row = job.from; row < job.to; ++row) {
            const std::size_t top = row * height.stride;  // of the padded map
            const std::size_t bottom = std::min(top + kept_rows(), height.before + height.size);
            for (next = std::max({next, top, height.before}); next < bottom && !is_depthwise(); ++next) {
                if (job.is_stopped(convolution_.input.width * position_length() / 4)) return;
                spread(job.input<float>(), next - height.before, scratch.map);
            }
            std::size_t column = 0;
            for (const std::size_t end : ends_) {
                conv.parts = find_taps(is_depthwise() ? job.input<float>() : scratch.map, row, column, scratch);
                for (; column < end; column += conv.positions) {
                    conv.first_position = row * width.positions + column;
                    conv.positions = std::min(at_once, end - column);
                    if (job.is_stopped(conv.positions * position_work)) return;
                    depthwise_conv_(conv);
                    const std::size_t taps = conv.ends[conv.parts - 1];
                    for (std::size_t tap = 0; tap < taps; ++tap) scratch.x[tap] += conv.positions * conv.step;
                }
            }
        }
    }

   private:
    // What a position sees, and with what weights; where parts of this end; and the rows that are spread out.
    struct Scratch {
        const float **x, **weights;
        std::size_t* part_ends;
        float* map;
    };
    Scratch carve(Carver& carver) const {
        const std::uint64_t taps = convolution_.taps();
        const std::uint64_t rows = is_depthwise() ? 0 : std::min(kept_rows(), convolution_.input.height);
        return {carver.take<const float*>(taps), carver.take<const float*>(taps),
                carver.take<std::size_t>(taps / FloatConv::kPart + 1),
                carver.take<float>(rows * convolution_.input.width * position_length())};
    }

    static std::size_t length_of(const Convolution& convolution) {
        return (convolution.filters + kBlock - 1) / kBlock * kBlock;
    }
    // Whether every filter has a channel of its own.
    bool is_depthwise() const {
        return convolution_.group_channels() == 1 && convolution_.filters == convolution_.groups;
    }
    std::size_t position_length() const {
        return is_depthwise() ? convolution_.input.channels : convolution_.group_channels() * length_;
    }
    std::size_t kept_rows() const {
        const Axis& height = convolution_.window.height;
        return (height.kernel - 1) * height.dilation + 1;
    }

    void spread(const float* x, std::size_t row, float* map) const {
        const Shape& input = convolution_.input;
        const std::size_t channels = convolution_.group_channels(),
                          filters = convolution_.filters / convolution_.groups;
        x += row * input.width * input.channels;
        float* to = map + row % kept_rows() * input.width * position_length();
        for (std::size_t column = 0; column < input.width; ++column, x += input.channels) {
            for (std::size_t channel = 0; channel < channels; ++channel, to += length_) {
                float* number = to;
                for (std::size_t i = channel; i < input.channels; i += channels) {
                    std::size_t left = filters;
                    for (; left >= 4; left -= 4, number += 4) number[0] = number[1] = number[2] = number[3] = x[i];
                    for (; left != 0; --left) *number++ = x[i];
                }
            }
        }
    }

    // Lists what of a position's taps lies on the map. Returns the number of parts.
    std::size_t find_taps(const float* numbers, std::size_t row, std::size_t column, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const std::size_t channels = convolution_.group_channels();
        std::size_t count = 0, part = 0;
        for (std::size_t i = height.first(row); i < height.end(row); ++i) {
            const std::size_t kept_row = is_depthwise() ? height.at(row, i) : height.at(row, i) % kept_rows();
            for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                const float* x =
                    numbers + (kept_row * convolution_.input.width + width.at(column, j)) * position_length();
                for (std::size_t channel = 0; channel < channels; ++channel, x += length_) {
                    const std::size_t weight = (i * width.kernel + j) * channels + channel;
                    for (; weight / FloatConv::kPart != part; ++part) scratch.part_ends[part] = count;
                    scratch.x[count] = x;
                    scratch.weights[count++] = weights_.data() + weight * length_;
                }
            }
        }
        scratch.part_ends[part] = count;
        return part + 1;
    }

    decltype(Kernels::depthwise_conv) depthwise_conv_;
    Convolution convolution_;     // its arrays are not looked at any more
    std::size_t length_;          // filters, up to a multiple of 64
    std::vector<float> weights_;  // (taps, length)
    std::vector<float> bias_;
    std::vector<std::size_t> ends_;  // of columns side by side that see the same taps
    EpilogueArrays epilogue_;
};

}  // namespace

// Where there is no product at all, FloatConv keeps a bias of -0, to which a sum of 0 would be added here.
bool has_group_conv(const Convolution& convolution) {
    const auto is_minus_zero = [](float x) { return x == 0 && std::signbit(x); };
    return convolution.groups > 1 && convolution.filters / convolution.groups <= kMostFilters &&
           convolution.taps() <= kMostTaps &&
           (convolution.bias == nullptr ||
            std::none_of(convolution.bias, convolution.bias + convolution.filters, is_minus_zero));
}

std::unique_ptr<Layer> make_group_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue) {
    if (!builder.budget.take(GroupConv::bytes(convolution))) return nullptr;
    return std::make_unique<GroupConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
