#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

class Sign : public Layer {
   public:
    Sign(const Kernels& kernels, Budget& budget, const Shape& input, const float* threshold, const std::uint8_t* flip)
        : kernels_(kernels), input_(input), finisher_(budget, input.channels, only_signs(threshold, flip)) {}

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void*) const override {
        const auto* x = static_cast<const float*>(inputs[0]);
        const Finish finish = finisher_.job(inputs, outputs);
        for (std::size_t place = 0; place < input_.places(); ++place, x += input_.channels) {
            finish_place(kernels_, finish, place, x);
        }
    }

   private:
    static Followers only_signs(const float* threshold, const std::uint8_t* flip) {
        Followers followers;
        followers.makes_real = false;
        followers.makes_signs = true;
        followers.threshold = threshold;
        followers.flip = flip;
        return followers;
    }

    const Kernels& kernels_;
    Shape input_;
    Finisher finisher_;
};

// A function of a number and its channel.
template <typename Function>
class Elementwise : public Layer {
   public:
    Elementwise(const Shape& input, Function function) : input_(input), function_(std::move(function)) {}

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void*) const override {
        const auto* x = static_cast<const float*>(inputs[0]);
        auto* y = static_cast<float*>(outputs[0]);
        for (std::size_t place = 0; place < input_.places(); ++place) {
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

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void*) const override {
        const auto* a = static_cast<const float*>(inputs[0]);
        const auto* b = static_cast<const float*>(inputs[1]);
        auto* y = static_cast<float*>(outputs[0]);
        for (std::size_t i = 0; i < count_; ++i) y[i] = a[i] + b[i];
    }

   private:
    std::size_t count_;
};

class Concat : public Layer {
   public:
    explicit Concat(const std::vector<Shape>& inputs) : inputs_(inputs) {}

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void*) const override {
        auto* y = static_cast<float*>(outputs[0]);
        for (std::size_t place = 0; place < inputs_[0].places(); ++place) {
            for (std::size_t i = 0; i < inputs_.size(); ++i) {
                const std::size_t channels = inputs_[i].channels;
                const float* x = static_cast<const float*>(inputs[i]) + place * channels;
                y = std::copy(x, x + channels, y);
            }
        }
    }

   private:
    std::vector<Shape> inputs_;
};

class Flatten : public Layer {
   public:
    explicit Flatten(const Shape& input) : input_(input) {}

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void*) const override {
        const auto* x = static_cast<const float*>(inputs[0]);
        auto* y = static_cast<float*>(outputs[0]);
        for (std::size_t c = 0; c < input_.channels; ++c) {
            for (std::size_t place = 0; place < input_.places(); ++place) *y++ = x[place * input_.channels + c];
        }
    }

   private:
    Shape input_;
};

}  // namespace

std::unique_ptr<Layer> make_sign(const Kernels& kernels, Budget& budget, const Shape& input, const float* threshold,
                                 const std::uint8_t* flip) {
    return std::make_unique<Sign>(kernels, budget, input, threshold, flip);
}

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
