#include <algorithm>
#include <cmath>

#include "blocks.h"
#include "epilogue.h"
#include "float_conv.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kMostTaps = 64;  // whose products a convolution of real numbers adds up in one part

// A convolution of real numbers in which every filter has a channel of its own. It adds the same products in the same
// order as FloatConv, but for several channels at a time; products with zeros, which that leaves out, change nothing.
class DepthwiseConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        return (convolution.taps() + 1) * ((convolution.filters + kBlock - 1) / kBlock * kBlock) * sizeof(float) +
               convolution.window.width.positions * sizeof(std::size_t);
    }

    DepthwiseConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : depthwise_conv_(kernels.depthwise_conv != nullptr ? kernels.depthwise_conv : kPortableKernels.depthwise_conv),
          convolution_(convolution),
          length_((convolution.filters + kBlock - 1) / kBlock * kBlock),
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
        return convolution_.multiply_adds() + static_cast<double>(convolution_.output().count());
    }

    void run(const Job& job) const override {
        const auto& [height, width] = convolution_.window;
        const Epilogue epilogue = epilogue_.bind(job);
        const float *x[kMostTaps], *weights[kMostTaps];
        DepthwiseConvJob conv{x, weights, 0, width.stride * convolution_.input.channels, bias_.data(), 0, 0, &epilogue};
        const std::uint64_t position_work = (convolution_.taps() + 1) * length_ / 8;
        const std::size_t at_once = units_at_once(position_work);
        for (std::size_t row = job.from; row < job.to; ++row) {
            std::size_t column = 0;
            for (const std::size_t end : ends_) {
                conv.taps = find_taps(job.input<float>(), row, column, x, weights);
                for (; column < end; column += conv.positions) {
                    conv.first_position = row * width.positions + column;
                    conv.positions = std::min(at_once, end - column);
                    if (job.is_stopped(conv.positions * position_work)) return;
                    depthwise_conv_(conv);
                    for (std::size_t tap = 0; tap < conv.taps; ++tap) x[tap] += conv.positions * conv.step;
                }
            }
        }
    }

   private:
    // Lists the taps of a position that lie on the map. Returns how many there are.
    std::size_t find_taps(const float* input, std::size_t row, std::size_t column, const float** x,
                          const float** weights) const {
        const auto& [height, width] = convolution_.window;
        std::size_t count = 0;
        for (std::size_t i = height.first(row); i < height.end(row); ++i) {
            for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                const std::size_t position = height.at(row, i) * convolution_.input.width + width.at(column, j);
                x[count] = input + position * convolution_.input.channels;
                weights[count++] = weights_.data() + (i * width.kernel + j) * length_;
            }
        }
        return count;
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
bool has_depthwise_conv(const Convolution& convolution) {
    const auto is_minus_zero = [](float x) { return x == 0 && std::signbit(x); };
    return convolution.groups > 1 && convolution.groups == convolution.input.channels &&
           convolution.groups == convolution.filters && convolution.taps() <= kMostTaps &&
           (convolution.bias == nullptr ||
            std::none_of(convolution.bias, convolution.bias + convolution.filters, is_minus_zero));
}

std::unique_ptr<Layer> make_depthwise_conv(const Builder& builder, const Convolution& convolution,
                                           const Epilogue& epilogue) {
    if (!builder.budget.take(DepthwiseConv::bytes(convolution))) return nullptr;
    return std::make_unique<DepthwiseConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
