#include <algorithm>

#include "blocks.h"
#include "layers.h"

namespace dabnet {
namespace {

// A rectangle of a map.
struct Part {
    std::size_t top, bottom, left, right;
    std::size_t row_step = 1, column_step = 1;
};

enum class Kind { kLargest, kMean, kMeanWithPadding };

// What pools share: each position of the output is made of a part of the map, and is a piece of its own. A part can be
// the whole map, so whether to go on is asked within it, too.
class AnyPool : public Layer {
   public:
    AnyPool(const Kernels& kernels, const Shape& input, Kind kind) : kernels_(kernels), input_(input), kind_(kind) {}

   protected:
    // Makes all channels of a position; `count` is what a sum is divided by, or 0 for the positions of the part. False
    // if the run has to end.
    bool make(const Job& job, std::size_t position, const Part& part, std::uint64_t count) const {
        float* y = job.output<float>() + position * input_.channels;
        if (kind_ == Kind::kLargest) return find_largest(job, part, y);
        std::uint64_t added = 0;
        if (!sum(job, part, y, added)) return false;
        const auto divisor = static_cast<float>(count == 0 ? added : count);
        for (std::size_t c = 0; c < input_.channels; ++c) y[c] /= divisor;
        return true;
    }

    const Kernels& kernels_;
    Shape input_;
    Kind kind_;

   private:
    const float* at(const Job& job, std::size_t row, std::size_t column) const {
        return job.input<float>() + (row * input_.width + column) * input_.channels;
    }

    bool find_largest(const Job& job, const Part& part, float* y) const {
        constexpr std::size_t kMost = 32;  // positions at a time; what was found is the first of the next
        const float* positions[kMost];
        std::size_t count = 0;
        for (std::size_t i = part.top; i < part.bottom; i += part.row_step) {
            for (std::size_t j = part.left; j < part.right; j += part.column_step) {
                positions[count++] = at(job, i, j);
                if (count < kMost) continue;
                if (job.is_stopped(kMost * input_.channels)) return false;
                kernels_.float_max(positions, count, input_.channels, y);
                positions[0] = y;
                count = 1;
            }
        }
        if (job.is_stopped(count * input_.channels)) return false;
        if (count > 1 || positions[0] != y) kernels_.float_max(positions, count, input_.channels, y);
        return true;
    }

    bool sum(const Job& job, const Part& part, float* y, std::uint64_t& count) const {
        std::fill(y, y + input_.channels, 0.0f);
        for (std::size_t i = part.top; i < part.bottom; i += part.row_step) {
            if (job.is_stopped((part.right - part.left) / part.column_step * input_.channels + 1)) return false;
            for (std::size_t j = part.left; j < part.right; j += part.column_step, ++count) {
                const float* position = at(job, i, j);
                for (std::size_t c = 0; c < input_.channels; ++c) y[c] += position[c];
            }
        }
        return true;
    }
};

class Pool : public AnyPool {
   public:
    Pool(const Kernels& kernels, const Shape& input, const Window& window, Kind kind)
        : AnyPool(kernels, input, kind), window_(window) {}

    std::uint64_t pieces() const override { return window_.positions(); }
    double work() const override {
        return static_cast<double>(window_.positions()) * static_cast<double>(window_.taps()) *
               static_cast<double>(input_.channels);
    }

    void run(const Job& job) const override {
        const auto& [height, width] = window_;
        const std::uint64_t taps = window_.taps();
        for (std::size_t position = job.from; position < job.to; ++position) {
            const std::size_t row = position / width.positions, column = position % width.positions;
            const Part part{height.at(row, height.first(row)),
                            height.at(row, height.end(row) - 1) + 1,
                            width.at(column, width.first(column)),
                            width.at(column, width.end(column) - 1) + 1,
                            height.dilation,
                            width.dilation};
            if (!make(job, position, part, kind_ == Kind::kMeanWithPadding ? taps : 0)) return;
        }
    }

   private:
    Window window_;
};

class AdaptivePool : public AnyPool {
   public:
    AdaptivePool(const Kernels& kernels, const Shape& input, std::size_t height, std::size_t width, Kind kind)
        : AnyPool(kernels, input, kind), height_(height), width_(width) {}

    std::uint64_t pieces() const override { return std::uint64_t{height_} * width_; }
    double work() const override {
        return static_cast<double>(pieces()) * static_cast<double>(input_.channels) *
               static_cast<double>((input_.height / height_ + 2) * (input_.width / width_ + 2));
    }

    void run(const Job& job) const override {
        for (std::size_t position = job.from; position < job.to; ++position) {
            const std::size_t i = position / width_, j = position % width_;
            const Part part{start(i, input_.height, height_), end(i, input_.height, height_),
                            start(j, input_.width, width_), end(j, input_.width, width_)};
            if (!make(job, position, part, 0)) return;
        }
    }

   private:
    static std::size_t start(std::uint64_t i, std::size_t size, std::size_t parts) {
        return static_cast<std::size_t>(i * size / parts);
    }
    static std::size_t end(std::uint64_t i, std::size_t size, std::size_t parts) {
        return static_cast<std::size_t>(((i + 1) * size + parts - 1) / parts);
    }

    std::size_t height_, width_;
};

}  // namespace

std::unique_ptr<Layer> make_max_pool(const Builder& builder, const Shape& input, const Window& window) {
    return std::make_unique<Pool>(builder.kernels, input, window, Kind::kLargest);
}

std::unique_ptr<Layer> make_average_pool(const Builder& builder, const Shape& input, const Window& window,
                                         bool count_padding) {
    const Kind kind = count_padding ? Kind::kMeanWithPadding : Kind::kMean;
    return std::make_unique<Pool>(builder.kernels, input, window, kind);
}

std::unique_ptr<Layer> make_adaptive_pool(const Builder& builder, const Shape& input, std::size_t height,
                                          std::size_t width, bool largest) {
    return std::make_unique<AdaptivePool>(builder.kernels, input, height, width,
                                          largest ? Kind::kLargest : Kind::kMean);
}

}  // namespace dabnet
