#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

class Sign : public Layer {
   public:
    Sign(const Kernels& kernels, Budget& budget, const Shape& input, const float* threshold, const std::uint8_t* flip)
        : kernels_(kernels), input_(input), finisher_(budget, input.channels, only_signs(threshold, flip)) {}

    std::size_t pieces() const override { return input_.places(); }

    void run(const Job& job) const override {
        const Finish finish = finisher_.finish(job);
        for (std::size_t place = job.from; place < job.to; ++place) {
            finish_place(kernels_, finish, place, job.input<float>() + place * input_.channels);
        }
    }

   private:
    static Followers only_signs(const float* threshold, const std::uint8_t* flip) {
        Followers followers;
        followers.makes_real = false;
        followers.signs.push_back({threshold, flip});
        return followers;
    }

    const Kernels& kernels_;
    Shape input_;
    Finisher finisher_;
};

class SignPool : public Layer {
   public:
    SignPool(Budget& budget, const Shape& input, const Window& window, const std::uint8_t* flip)
        : input_(input), window_(window) {
        budget.take(input.words() * sizeof(std::uint64_t));
        flip_.resize(input.words());
        for (std::size_t i = 0; flip != nullptr && i < input.channels; ++i) {
            flip_[i / 64] |= static_cast<std::uint64_t>(flip[i / 8] >> (i % 8) & 1) << (i % 64);
        }
    }

    std::size_t pieces() const override { return window_.down.places; }

    // A row of the map, its windows' rows taken together.
    std::size_t scratch_bytes() const override { return input_.width * input_.words() * sizeof(std::uint64_t); }

    void run(const Job& job) const override {
        const auto& [down, across] = window_;
        const std::size_t words = input_.words(), row_words = input_.width * words;
        auto* any = static_cast<std::uint64_t*>(job.scratch);
        std::uint64_t* y = job.output<std::uint64_t>() + job.from * across.places * words;
        for (std::size_t row = job.from; row < job.to; ++row) {
            std::fill(any, any + row_words, std::uint64_t{0});
            for (std::size_t i = down.first(row); i < down.end(row); ++i) {
                const std::uint64_t* x = job.input<std::uint64_t>() + down.at(row, i) * row_words;
                for (std::size_t at = 0; at < row_words; at += words) {
                    for (std::size_t word = 0; word < words; ++word) any[at + word] |= x[at + word] ^ flip_[word];
                }
            }
            for (std::size_t column = 0; column < across.places; ++column, y += words) {
                std::copy(flip_.begin(), flip_.end(), y);
                const std::size_t first = across.first(column), end = across.end(column);
                for (std::size_t word = 0; word < words; ++word) {
                    std::uint64_t found = 0;
                    for (std::size_t j = first; j < end; ++j) found |= any[across.at(column, j) * words + word];
                    y[word] ^= found;
                }
            }
        }
    }

   private:
    Shape input_;
    Window window_;
    std::vector<std::uint64_t> flip_;
};

class SignConcat : public Layer {
   public:
    explicit SignConcat(const std::vector<Shape>& inputs) : inputs_(inputs) {
        std::size_t channels = 0;
        for (const Shape& input : inputs) channels += input.channels;
        words_ = (channels + 63) / 64;
    }

    std::size_t pieces() const override { return inputs_[0].places(); }

    void run(const Job& job) const override {
        for (std::size_t place = job.from; place < job.to; ++place) {
            std::uint64_t* y = job.output<std::uint64_t>() + place * words_;
            std::fill(y, y + words_, std::uint64_t{0});
            std::size_t channel = 0;
            for (std::size_t i = 0; i < inputs_.size(); ++i) {
                const std::size_t words = inputs_[i].words(), shift = channel % 64;
                const std::uint64_t* x = job.input<std::uint64_t>(i) + place * words;
                for (std::size_t word = 0; word < words; ++word) {
                    const std::size_t at = channel / 64 + word;
                    y[at] |= x[word] << shift;
                    if (shift != 0 && at + 1 < words_) y[at + 1] |= x[word] >> (64 - shift);
                }
                channel += inputs_[i].channels;
            }
        }
    }

   private:
    std::vector<Shape> inputs_;
    std::size_t words_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_sign(const Kernels& kernels, Budget& budget, const Shape& input, const float* threshold,
                                 const std::uint8_t* flip) {
    return std::make_unique<Sign>(kernels, budget, input, threshold, flip);
}

std::unique_ptr<Layer> make_sign_pool(Budget& budget, const Shape& input, const Window& window,
                                      const std::uint8_t* flip) {
    return std::make_unique<SignPool>(budget, input, window, flip);
}

std::unique_ptr<Layer> make_sign_concat(Budget& budget, const std::vector<Shape>& inputs) {
    budget.take(inputs.size() * sizeof(Shape));
    return std::make_unique<SignConcat>(inputs);
}

}  // namespace dabnet
