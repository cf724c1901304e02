#include <algorithm>

#include "../scratch.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

class Sign : public Layer {
   public:
    Sign(const Kernels& kernels, const Shape& input, const Epilogue& only_signs)
        : kernels_(kernels), input_(input), epilogue_(only_signs) {}

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

class SignPool : public Layer {
   public:
    SignPool(const Shape& input, const Window& window, const std::uint8_t* flip) : input_(input), window_(window) {
        flip_.resize(input.words());
        for (std::size_t i = 0; flip != nullptr && i < (input.channels + 7) / 8; ++i) {
            flip_[i / 8] |= std::uint64_t{flip[i]} << (i % 8 * 8);
        }
    }

    std::uint64_t pieces() const override { return window_.height.positions; }
    double work() const override {
        const auto& [height, width] = window_;
        const double a_row = static_cast<double>(height.kernel) * static_cast<double>(input_.width) +
                             static_cast<double>(width.kernel) * static_cast<double>(width.positions);
        return static_cast<double>(height.positions) * static_cast<double>(input_.words()) * a_row;
    }

    // A row of the map, its windows' rows taken together.
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carver.take<std::uint64_t>(std::uint64_t{input_.width} * input_.words());
        return carver.bytes();
    }

    void run(const Job& job) const override {
        const auto& [height, width] = window_;
        const std::size_t words = input_.words(), row_words = input_.width * words;
        auto* any = Carver(job.scratch).take<std::uint64_t>(row_words);
        std::uint64_t* y = job.output<std::uint64_t>() + job.from * width.positions * words;
        for (std::size_t row = job.from; row < job.to; ++row) {
            std::fill(any, any + row_words, std::uint64_t{0});
            for (std::size_t i = height.first(row); i < height.end(row); ++i) {
                const std::uint64_t* x = job.input<std::uint64_t>() + height.at(row, i) * row_words;
                if (job.is_stopped(row_words)) return;
                for (std::size_t at = 0; at < row_words; at += words) {
                    for (std::size_t word = 0; word < words; ++word) any[at + word] |= x[at + word] ^ flip_[word];
                }
            }
            for (std::size_t column = 0; column < width.positions; ++column, y += words) {
                std::copy(flip_.begin(), flip_.end(), y);
                const std::size_t first = width.first(column), end = width.end(column);
                if (job.is_stopped((end - first) * words)) return;
                for (std::size_t word = 0; word < words; ++word) {
                    std::uint64_t found = 0;
                    for (std::size_t j = first; j < end; ++j) found |= any[width.at(column, j) * words + word];
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

    std::uint64_t pieces() const override { return inputs_[0].positions(); }
    double work() const override {
        return static_cast<double>(pieces()) * static_cast<double>(words_ + 2 * inputs_.size());
    }

    void run(const Job& job) const override {
        run_in_blocks(job, words_ + 2 * inputs_.size(), [&](std::size_t from, std::size_t to) {
            for (std::size_t position = from; position < to; ++position) concat(job, position);
        });
    }

   private:
    void concat(const Job& job, std::size_t position) const {
        std::uint64_t* y = job.output<std::uint64_t>() + position * words_;
        std::fill(y, y + words_, std::uint64_t{0});
        std::size_t channel = 0;
        for (std::size_t i = 0; i < inputs_.size(); ++i) {
            const std::size_t words = inputs_[i].words(), shift = channel % 64;
            const std::uint64_t* x = job.input<std::uint64_t>(i) + position * words;
            for (std::size_t word = 0; word < words; ++word) {
                const std::size_t at = channel / 64 + word;
                y[at] |= x[word] << shift;
                if (shift != 0 && at + 1 < words_) y[at + 1] |= x[word] >> (64 - shift);
            }
            channel += inputs_[i].channels;
        }
    }

    std::vector<Shape> inputs_;
    std::size_t words_ = 0;
};

}  // namespace

std::unique_ptr<Layer> make_sign(const Builder& builder, const Shape& input, const float* threshold,
                                 const std::uint8_t* flip) {
    Epilogue only_signs;
    only_signs.filters = input.channels;
    only_signs.makes_real = false;
    only_signs.signs[0] = {threshold, flip, nullptr};
    only_signs.signs_count = only_signs.early_signs = 1;
    if (!builder.budget.take(EpilogueArrays::bytes(only_signs))) return nullptr;
    return std::make_unique<Sign>(builder.kernels, input, only_signs);
}

std::unique_ptr<Layer> make_sign_pool(const Builder& builder, const Shape& input, const Window& window,
                                      const std::uint8_t* flip) {
    if (!builder.budget.take(input.words() * sizeof(std::uint64_t))) return nullptr;
    return std::make_unique<SignPool>(input, window, flip);
}

std::unique_ptr<Layer> make_sign_concat(const Builder& builder, const std::vector<Shape>& inputs) {
    if (!builder.budget.take(inputs.size() * sizeof(Shape))) return nullptr;
    return std::make_unique<SignConcat>(inputs);
}

}  // namespace dabnet
