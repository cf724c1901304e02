#include <algorithm>

#include "blocks.h"
#include "layers.h"

namespace dabnet {
namespace {

// A function of a number and its channel.
template <typename Function>
class Elementwise : public Layer {
   public:
    Elementwise(const Shape& input, Function function) : input_(input), function_(std::move(function)) {}

    std::uint64_t pieces() const override { return input_.positions(); }
    double work() const override { return static_cast<double>(input_.count()); }

    void run(const Job& job) const override {
        run_in_blocks(job, input_.channels, [&](std::size_t from, std::size_t to) {
            const float* x = job.input<float>() + from * input_.channels;
            float* y = job.output<float>() + from * input_.channels;
            for (std::size_t position = from; position < to; ++position) {
                for (std::size_t c = 0; c < input_.channels; ++c) *y++ = function_(*x++, c);
            }
        });
    }

   private:
    Shape input_;
    Function function_;
};

template <typename Function>
std::unique_ptr<Layer> make_elementwise(const Shape& input, Function function) {
    return std::make_unique<Elementwise<Function>>(input, std::move(function));
}

std::vector<float> copy_of(const float* numbers, std::size_t count) { return {numbers, numbers + count}; }

class Add : public Layer {
   public:
    explicit Add(const Shape& input) : input_(input) {}

    std::uint64_t pieces() const override { return input_.positions(); }
    double work() const override { return static_cast<double>(input_.count()); }

    void run(const Job& job) const override {
        const auto *a = job.input<float>(0), *b = job.input<float>(1);
        auto* y = job.output<float>();
        run_in_blocks(job, input_.channels, [&](std::size_t from, std::size_t to) {
            for (std::size_t i = from * input_.channels; i < to * input_.channels; ++i) y[i] = a[i] + b[i];
        });
    }

   private:
    Shape input_;
};

class Concat : public Layer {
   public:
    explicit Concat(const std::vector<Shape>& inputs) : inputs_(inputs) {
        for (const Shape& input : inputs) channels_ += input.channels;
    }

    std::uint64_t pieces() const override { return inputs_[0].positions(); }
    double work() const override {
        return static_cast<double>(pieces()) * static_cast<double>(channels_ + inputs_.size());
    }

    void run(const Job& job) const override {
        run_in_blocks(job, channels_ + inputs_.size(), [&](std::size_t from, std::size_t to) {
            float* y = job.output<float>() + from * channels_;
            for (std::size_t position = from; position < to; ++position) {
                for (std::size_t i = 0; i < inputs_.size(); ++i) {
                    const std::size_t channels = inputs_[i].channels;
                    const float* x = job.input<float>(i) + position * channels;
                    y = std::copy(x, x + channels, y);
                }
            }
        });
    }

   private:
    std::vector<Shape> inputs_;
    std::size_t channels_ = 0;
};

class Flatten : public Layer {
   public:
    explicit Flatten(const Shape& input) : input_(input) {}

    std::uint64_t pieces() const override { return input_.channels; }
    double work() const override { return static_cast<double>(input_.count()); }

    void run(const Job& job) const override {
        const auto* x = job.input<float>();
        const auto positions = static_cast<std::size_t>(input_.positions());
        run_in_blocks(job, positions, [&](std::size_t from, std::size_t to) {
            float* y = job.output<float>() + from * positions;
            for (std::size_t c = from; c < to; ++c) {
                for (std::size_t position = 0; position < positions; ++position) {
                    *y++ = x[position * input_.channels + c];
                }
            }
        });
    }

   private:
    Shape input_;
};

}  // namespace

std::unique_ptr<Layer> make_affine(const Builder& builder, const Shape& input, const float* scale, const float* shift) {
    if (!builder.budget.take(2 * input.channels * sizeof(float))) return nullptr;
    auto scales = copy_of(scale, input.channels), shifts = copy_of(shift, input.channels);
    return make_elementwise(input, [scales = std::move(scales), shifts = std::move(shifts)](float x, std::size_t c) {
        return scales[c] * x + shifts[c];
    });
}

std::unique_ptr<Layer> make_clamp(const Shape& input, float low, float high) {
    return make_elementwise(input, [low, high](float x, std::size_t) {
        x = x > low ? x : low;
        return x < high ? x : high;
    });
}

std::unique_ptr<Layer> make_prelu(const Builder& builder, const Shape& input, const float* slope) {
    if (!builder.budget.take(input.channels * sizeof(float))) return nullptr;
    return make_elementwise(
        input, [slopes = copy_of(slope, input.channels)](float x, std::size_t c) { return x > 0 ? x : slopes[c] * x; });
}

std::unique_ptr<Layer> make_add(const Shape& input) { return std::make_unique<Add>(input); }

std::unique_ptr<Layer> make_concat(const Builder& builder, const std::vector<Shape>& inputs) {
    if (!builder.budget.take(inputs.size() * sizeof(Shape))) return nullptr;
    return std::make_unique<Concat>(inputs);
}

std::unique_ptr<Layer> make_flatten(const Shape& input) { return std::make_unique<Flatten>(input); }

}  // namespace dabnet
