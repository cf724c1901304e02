#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

// A function of a number and its channel.
template <typename Function>
class Elementwise : public Layer {
   public:
    Elementwise(const Shape& input, Function function) : input_(input), function_(std::move(function)) {}

    std::size_t pieces() const override { return input_.places(); }

    void run(const Job& job) const override {
        const float* x = job.input<float>() + job.from * input_.channels;
        float* y = job.output<float>() + job.from * input_.channels;
        for (std::size_t place = job.from; place < job.to; ++place) {
            for (std::size_t c = 0; c < input_.channels; ++c) *y++ = function_(*x++, c);
        }
    }

   private:
    Shape input_;
    Function function_;
};

template <typename Function>
std::unique_ptr<Layer> make_elementwise(const Shape& input, Function function) {
    return std::make_unique<Elementwise<Function>>(input, std::move(function));
}

std::vector<float> copy_of(Budget& budget, const float* numbers, std::size_t count) {
    budget.take(count * sizeof(float));
    return {numbers, numbers + count};
}

class Add : public Layer {
   public:
    explicit Add(const Shape& input) : count_(input.count()) {}

    std::size_t pieces() const override { return count_; }

    void run(const Job& job) const override {
        const auto *a = job.input<float>(0), *b = job.input<float>(1);
        auto* y = job.output<float>();
        for (std::size_t i = job.from; i < job.to; ++i) y[i] = a[i] + b[i];
    }

   private:
    std::size_t count_;
};

class Concat : public Layer {
   public:
    explicit Concat(const std::vector<Shape>& inputs) : inputs_(inputs) {
        for (const Shape& input : inputs) channels_ += input.channels;
    }

    std::size_t pieces() const override { return inputs_[0].places(); }

    void run(const Job& job) const override {
        float* y = job.output<float>() + job.from * channels_;
        for (std::size_t place = job.from; place < job.to; ++place) {
            for (std::size_t i = 0; i < inputs_.size(); ++i) {
                const std::size_t channels = inputs_[i].channels;
                const float* x = job.input<float>(i) + place * channels;
                y = std::copy(x, x + channels, y);
            }
        }
    }

   private:
    std::vector<Shape> inputs_;
    std::size_t channels_ = 0;
};

class Flatten : public Layer {
   public:
    explicit Flatten(const Shape& input) : input_(input) {}

    std::size_t pieces() const override { return input_.channels; }

    void run(const Job& job) const override {
        const auto* x = job.input<float>();
        float* y = job.output<float>() + job.from * input_.places();
        for (std::size_t c = job.from; c < job.to; ++c) {
            for (std::size_t place = 0; place < input_.places(); ++place) *y++ = x[place * input_.channels + c];
        }
    }

   private:
    Shape input_;
};

}  // namespace

std::unique_ptr<Layer> make_affine(Budget& budget, const Shape& input, const float* scale, const float* shift) {
    auto scales = copy_of(budget, scale, input.channels), shifts = copy_of(budget, shift, input.channels);
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

std::unique_ptr<Layer> make_prelu(Budget& budget, const Shape& input, const float* slope) {
    return make_elementwise(input, [slopes = copy_of(budget, slope, input.channels)](float x, std::size_t c) {
        return x > 0 ? x : slopes[c] * x;
    });
}

std::unique_ptr<Layer> make_add(const Shape& input) { return std::make_unique<Add>(input); }

std::unique_ptr<Layer> make_concat(Budget& budget, const std::vector<Shape>& inputs) {
    budget.take(inputs.size() * sizeof(Shape));
    return std::make_unique<Concat>(inputs);
}

std::unique_ptr<Layer> make_flatten(const Shape& input) { return std::make_unique<Flatten>(input); }

}  // namespace dabnet
