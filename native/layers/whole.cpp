// Whole numbers: how they are made, and what is done with them before a convolution takes them.
#include <algorithm>

#include "../scratch.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

class Quantize : public Layer {
   public:
    Quantize(const Kernels& kernels, const Shape& input, const Epilogue& only_quantized)
        : kernels_(kernels), input_(input), epilogue_(only_quantized) {}

    std::uint64_t pieces() const override { return input_.positions(); }
    double work() const override { return static_cast<double>(input_.count()); }

    void run(const Job& job) const override {
        const Epilogue epilogue = epilogue_.bind(job);
        run_in_blocks(job, input_.channels, [&](std::size_t from, std::size_t to) {
            for (std::size_t position = from; position < to; ++position) {
                run_epilogue(kernels_, epilogue, position, job.input<float>() + position * input_.channels);
            }
        });
    }

   private:
    const Kernels& kernels_;
    Shape input_;
    EpilogueArrays epilogue_;
};

// A max-pool: first the largest of the rows that a row of windows sees, then of their columns.
class WholePool : public Layer {
   public:
    WholePool(const Kernels& kernels, const Shape& input, const Window& window)
        : byte_max_(kernels.byte_max != nullptr ? kernels.byte_max : kPortableKernels.byte_max),
          input_(input),
          window_(window) {}

    std::uint64_t pieces() const override { return window_.height.positions; }
    double work() const override {
        const auto& [height, width] = window_;
        const double a_row = static_cast<double>(height.kernel) * static_cast<double>(input_.width) +
                             static_cast<double>(width.kernel) * static_cast<double>(width.positions);
        return static_cast<double>(height.positions) * static_cast<double>(input_.channels) * a_row;
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        const auto& [height, width] = window_;
        const std::size_t channels = input_.channels, row_bytes = input_.width * channels;
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        std::uint8_t* y = job.output<std::uint8_t>() + job.from * width.positions * channels;
        for (std::size_t row = job.from; row < job.to; ++row) {
            std::size_t count = 0;
            for (std::size_t i = height.first(row); i < height.end(row); ++i) {
                scratch.taps[count++] = job.input<std::uint8_t>() + height.at(row, i) * row_bytes;
            }
            if (job.is_stopped(count * row_bytes)) return;
            byte_max_(scratch.taps, count, row_bytes, scratch.most);
            for (std::size_t column = 0; column < width.positions; ++column, y += channels) {
                count = 0;
                for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                    scratch.taps[count++] = scratch.most + width.at(column, j) * channels;
                }
                if (job.is_stopped(count * channels)) return;
                byte_max_(scratch.taps, count, channels, y);
            }
        }
    }

   private:
    // What a window sees, and the largest of the rows.
    struct Scratch {
        const std::uint8_t** taps;
        std::uint8_t* most;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<const std::uint8_t*>(std::max(window_.height.kernel, window_.width.kernel)),
                carver.take<std::uint8_t>(std::uint64_t{input_.width} * input_.channels)};
    }

    decltype(Kernels::byte_max) byte_max_;
    Shape input_;
    Window window_;
};

class WholeConcat : public Layer {
   public:
    explicit WholeConcat(const std::vector<Shape>& inputs) : inputs_(inputs) {
        for (const Shape& input : inputs) channels_ += input.channels;
    }

    std::uint64_t pieces() const override { return inputs_[0].positions(); }
    double work() const override {
        return static_cast<double>(pieces()) * static_cast<double>(channels_ + inputs_.size());
    }

    void run(const Job& job) const override {
        run_in_blocks(job, channels_ + inputs_.size(), [&](std::size_t from, std::size_t to) {
            std::uint8_t* y = job.output<std::uint8_t>() + from * channels_;
            for (std::size_t position = from; position < to; ++position) {
                for (std::size_t i = 0; i < inputs_.size(); ++i) {
                    const std::uint8_t* x = job.input<std::uint8_t>(i) + position * inputs_[i].channels;
                    y = std::copy(x, x + inputs_[i].channels, y);
                }
            }
        });
    }

   private:
    std::vector<Shape> inputs_;
    std::size_t channels_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_quantize(const Builder& builder, const Shape& input, float scale, float low, float high) {
    Epilogue only_quantized;
    only_quantized.filters = input.channels;
    only_quantized.makes_real = false;
    only_quantized.quantized[0] = {scale, low, high, nullptr};
    only_quantized.quantized_count = 1;
    return std::make_unique<Quantize>(builder.kernels, input, only_quantized);
}

std::unique_ptr<Layer> make_whole_pool(const Builder& builder, const Shape& input, const Window& window) {
    return std::make_unique<WholePool>(builder.kernels, input, window);
}

std::unique_ptr<Layer> make_whole_concat(const Builder& builder, const std::vector<Shape>& inputs) {
    if (!builder.budget.take(inputs.size() * sizeof(Shape))) return nullptr;
    return std::make_unique<WholeConcat>(inputs);
}

}  // namespace dabnet
