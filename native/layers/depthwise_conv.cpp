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
        return (convolution.taps() + 1) * ((convolution.filters + kBlock - 1) / kBlock * kBlock) * sizeof(float);
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
    }

    std::uint64_t pieces() const override { return convolution_.window.height.positions; }
    double work() const override {
        return convolution_.multiply_adds() + static_cast<double>(convolution_.output().count());
    }

    void run(const Job& job) const override {
        const auto& [height, width] = convolution_.window;
        const auto* x = job.input<float>();
        const Epilogue epilogue = epilogue_.bind(job);
        const float *taps[kMostTaps], *weights[kMostTaps];
        DepthwiseConvJob conv{taps, weights, 0, bias_.data(), job.from * width.positions, &epilogue};
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (std::size_t column = 0; column < width.positions; ++column, ++conv.position) {
                conv.taps = 0;
                for (std::size_t i = height.first(row); i < height.end(row); ++i) {
                    const float* line = x + height.at(row, i) * convolution_.input.width * convolution_.input.channels;
                    for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                        taps[conv.taps] = line + width.at(column, j) * convolution_.input.channels;
                        weights[conv.taps++] = weights_.data() + (i * width.kernel + j) * length_;
                    }
                }
                if (job.is_stopped((conv.taps + 1) * length_ / 8)) return;
                depthwise_conv_(conv);
            }
        }
    }

   private:
    decltype(Kernels::depthwise_conv) depthwise_conv_;
    Convolution convolution_;     // its arrays are not looked at any more
    std::size_t length_;          // filters, up to a multiple of 64
    std::vector<float> weights_;  // (taps, length)
    std::vector<float> bias_;
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
