#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

// A rectangle of a map.
struct Part {
    std::size_t top, bottom, left, right;
    std::size_t down_step = 1, across_step = 1;
};

void largest(const Kernels& kernels, const float* x, const Shape& shape, const Part& part, float* y) {
    constexpr std::size_t kMost = 32;  // places at a time; what was found is the first of the next
    const float* places[kMost];
    std::size_t count = 0;
    for (std::size_t i = part.top; i < part.bottom; i += part.down_step) {
        for (std::size_t j = part.left; j < part.right; j += part.across_step) {
            places[count++] = x + (i * shape.width + j) * shape.channels;
            if (count < kMost) continue;
            kernels.largest(places, count, shape.channels, y);
            places[0] = y;
            count = 1;
        }
    }
    if (count > 1 || places[0] != y) kernels.largest(places, count, shape.channels, y);
}

// Returns how many places were added up.
std::size_t add_up(const float* x, const Shape& shape, const Part& part, float* y) {
    std::size_t count = 0;
    std::fill(y, y + shape.channels, 0.0f);
    for (std::size_t i = part.top; i < part.bottom; i += part.down_step) {
        for (std::size_t j = part.left; j < part.right; j += part.across_step, ++count) {
            const float* place = x + (i * shape.width + j) * shape.channels;
            for (std::size_t c = 0; c < shape.channels; ++c) y[c] += place[c];
        }
    }
    return count;
}

void divide(float* y, std::size_t channels, std::size_t count) {
    for (std::size_t c = 0; c < channels; ++c) y[c] /= static_cast<float>(count);
}

enum class Kind { kLargest, kMean, kMeanWithPadding };

class Pool : public Layer {
   public:
    Pool(const Kernels& kernels, const Shape& input, const Window& window, Kind kind)
        : kernels_(kernels), input_(input), window_(window), kind_(kind) {}

    std::size_t pieces() const override { return window_.down.places; }

    void run(const Job& job) const override {
        const auto* x = job.input<float>();
        const auto& [down, across] = window_;
        float* y = job.output<float>() + job.from * across.places * input_.channels;
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (std::size_t column = 0; column < across.places; ++column, y += input_.channels) {
                const Part part{down.at(row, down.first(row)),
                                down.at(row, down.end(row) - 1) + 1,
                                across.at(column, across.first(column)),
                                across.at(column, across.end(column) - 1) + 1,
                                down.dilation,
                                across.dilation};
                if (kind_ == Kind::kLargest) {
                    largest(kernels_, x, input_, part, y);
                } else {
                    const std::size_t count = add_up(x, input_, part, y);
                    divide(y, input_.channels, kind_ == Kind::kMean ? count : down.kernel * across.kernel);
                }
            }
        }
    }

   private:
    const Kernels& kernels_;
    Shape input_;
    Window window_;
    Kind kind_;
};

class AdaptivePool : public Layer {
   public:
    AdaptivePool(const Kernels& kernels, const Shape& input, std::size_t down, std::size_t across, Kind kind)
        : kernels_(kernels), input_(input), down_(down), across_(across), kind_(kind) {}

    std::size_t pieces() const override { return down_; }

    void run(const Job& job) const override {
        const auto* x = job.input<float>();
        float* y = job.output<float>() + job.from * across_ * input_.channels;
        for (std::size_t i = job.from; i < job.to; ++i) {
            for (std::size_t j = 0; j < across_; ++j, y += input_.channels) {
                const Part part{i * input_.height / down_, ((i + 1) * input_.height + down_ - 1) / down_,
                                j * input_.width / across_, ((j + 1) * input_.width + across_ - 1) / across_};
                if (kind_ == Kind::kLargest) {
                    largest(kernels_, x, input_, part, y);
                } else {
                    divide(y, input_.channels, add_up(x, input_, part, y));
                }
            }
        }
    }

   private:
    const Kernels& kernels_;
    Shape input_;
    std::size_t down_, across_;
    Kind kind_;
};

}  // namespace

std::unique_ptr<Layer> make_max_pool(const Kernels& kernels, const Shape& input, const Window& window) {
    return std::make_unique<Pool>(kernels, input, window, Kind::kLargest);
}

std::unique_ptr<Layer> make_average_pool(const Kernels& kernels, const Shape& input, const Window& window,
                                         bool count_padding) {
    return std::make_unique<Pool>(kernels, input, window, count_padding ? Kind::kMeanWithPadding : Kind::kMean);
}

std::unique_ptr<Layer> make_adaptive_pool(const Kernels& kernels, const Shape& input, std::size_t down,
                                          std::size_t across, bool largest) {
    return std::make_unique<AdaptivePool>(kernels, input, down, across, largest ? Kind::kLargest : Kind::kMean);
}

}  // namespace dabnet
