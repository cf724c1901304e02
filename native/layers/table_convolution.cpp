#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

constexpr std::uint8_t kPadding = 32;
constexpr std::size_t kBlock = 64;        // filters
constexpr std::size_t kMostTaps = 65000;  // of a filter: counts have 16 bits

// A convolution of signs by tables; kernels.h says how inputs and weights stand in memory.
class TableConvolution : public Layer {
   public:
    TableConvolution(const Kernels& kernels, Budget& budget, const Shape& input, const Window& window,
                     std::size_t filters, bool pad_with_ones, const OneBitWeights& weights, const Followers& followers)
        : kernels_(kernels),
          input_(input),
          window_(window),
          filters_(filters),
          pad_with_ones_(pad_with_ones),
          nibbles_((input.channels + 7) / 8 * 2),
          rows_(extent(window.down)),
          columns_(extent(window.across)),
          finisher_(budget, filters, followers) {
        const std::size_t blocks = (filters + kBlock - 1) / kBlock;
        const std::size_t taps = window.down.kernel * window.across.kernel;
        budget.take(blocks * taps * nibbles_ / 2 * sizeof(Line) + 3 * blocks * kBlock * sizeof(float));
        pack(weights.bits, taps, blocks);
        scale_ = filled_up(weights.scale, blocks);
        middle_ = filled_up(weights.middle, blocks);
        bias_ = filled_up(weights.bias, blocks);
        // Taps side by side are one run, if nothing lies between them.
        const bool are_joined = window.across.dilation == 1;
        run_bytes_ = are_joined ? window.across.kernel * nibbles_ : nibbles_;
        for (std::size_t i = 0; i < window.down.kernel; ++i) {
            for (std::size_t j = 0; j < (are_joined ? 1 : window.across.kernel); ++j) {
                const std::size_t place = i * window.down.dilation * columns_ + j * window.across.dilation;
                runs_.push_back(place * nibbles_);
            }
        }
    }

    std::size_t scratch_bytes() const override {
        return rows_ * columns_ * (nibbles_ + sizeof(std::int32_t)) + 2 * window_.across.places * sizeof(std::int32_t) +
               3 * alignof(std::int32_t);
    }

    void run(const std::vector<const void*>& inputs, const std::vector<void*>& outputs, void* scratch) const override {
        // Whole numbers first, where they are aligned.
        auto* place_sums = static_cast<std::int32_t*>(scratch);
        std::int32_t* bases = place_sums + rows_ * columns_;
        std::int32_t* sums = bases + window_.across.places;
        auto* spread = reinterpret_cast<std::uint8_t*>(sums + window_.across.places);
        spread_input(static_cast<const std::uint64_t*>(inputs[0]), spread, place_sums);

        const Finish finish = finisher_.job(inputs, outputs);
        const auto& [down, across] = window_;
        for (std::size_t row = 0; row < down.places; ++row) {
            for (std::size_t column = 0; column < across.places; ++column) {
                bases[column] = base(row, column);
                if (!middle_.empty()) sums[column] = sum_under(place_sums, row, column);
            }
            TableRow job{};
            job.input = spread + row * down.stride * columns_ * nibbles_;
            job.place_step = across.stride * nibbles_;
            job.places = across.places;
            job.runs = runs_.data();
            job.run_count = runs_.size();
            job.run_bytes = run_bytes_;
            job.weights = weights_[0].bytes;
            job.filters = filters_;
            job.scale = scale_.data();
            job.middle = middle_.empty() ? nullptr : middle_.data();
            job.bias = bias_.empty() ? nullptr : bias_.data();
            job.bases = bases;
            job.sums = middle_.empty() ? nullptr : sums;
            job.first_place = row * across.places;
            job.finish = &finish;
            kernels_.table_row(job);
        }
    }

   private:
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };

    // How much of the padded map all places of the window cover.
    static std::size_t extent(const Axis& axis) {
        return (axis.places - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
    }

    // Numbers, one a filter, and zeros for the filters that are not there; nothing for a null pointer.
    std::vector<float> filled_up(const float* numbers, std::size_t blocks) const {
        std::vector<float> filled;
        if (numbers == nullptr) return filled;
        filled.resize(blocks * kBlock);
        std::copy(numbers, numbers + filters_, filled.begin());
        return filled;
    }

    void pack(const std::uint8_t* bits, std::size_t taps, std::size_t blocks) {
        const std::size_t channels = input_.channels, row = (taps * channels + 7) / 8, pairs = nibbles_ / 2;
        weights_.resize(blocks * taps * pairs);
        for (std::size_t filter = 0; filter < filters_; ++filter) {
            const std::size_t half = filter % kBlock / 32, i = filter % 32;
            const std::size_t place = half * 32 + (i < 16 ? 2 * i : 2 * (i - 16) + 1);
            Line* lines = weights_.data() + filter / kBlock * taps * pairs;
            for (std::size_t bit = 0; bit < taps * channels; ++bit) {
                const std::size_t tap = bit / channels, channel = bit % channels;
                const int is_one = bits[filter * row + bit / 8] >> (bit % 8) & 1;
                lines[tap * pairs + channel / 8].bytes[place] |= static_cast<std::uint8_t>(is_one << (channel % 8));
            }
        }
    }

    // Spreads the padded map, and adds each place's signs up.
    void spread_input(const std::uint64_t* x, std::uint8_t* spread, std::int32_t* place_sums) const {
        const auto& [down, across] = window_;
        for (std::size_t row = 0; row < rows_; ++row) {
            for (std::size_t column = 0; column < columns_; ++column, spread += nibbles_, ++place_sums) {
                const bool is_inside = row >= down.before && row - down.before < input_.height &&
                                       column >= across.before && column - across.before < input_.width;
                if (is_inside) {
                    const std::size_t place = (row - down.before) * input_.width + (column - across.before);
                    const std::uint64_t* words = x + place * input_.words();
                    kernels_.spread(words, nibbles_, spread);
                    if (!middle_.empty()) *place_sums = sum_of(words);
                } else if (pad_with_ones_) {
                    for (std::size_t i = 0; i < nibbles_; ++i) {
                        const std::size_t left = input_.channels > 4 * i ? input_.channels - 4 * i : 0;
                        spread[i] = static_cast<std::uint8_t>(2 * ((1u << std::min<std::size_t>(left, 4)) - 1));
                    }
                    *place_sums = static_cast<std::int32_t>(input_.channels);
                } else {
                    std::fill(spread, spread + nibbles_, kPadding);
                    *place_sums = 0;
                }
            }
        }
    }

    std::int32_t sum_of(const std::uint64_t* words) const {
        constexpr std::uint64_t kNone = 0;
        std::uint32_t ones = 0;
        for (std::size_t i = 0; i < input_.words(); ++i) ones += kernels_.count_differences(words + i, &kNone, 1);
        return static_cast<std::int32_t>(2 * ones) - static_cast<std::int32_t>(input_.channels);
    }

    // The dot product is this less twice the count. A padded tap adds 2 to the count for each nibble, and nothing to
    // the product.
    std::int32_t base(std::size_t row, std::size_t column) const {
        const auto& [down, across] = window_;
        const std::size_t taps = down.kernel * across.kernel;
        if (pad_with_ones_) return static_cast<std::int32_t>(taps * input_.channels);
        const std::size_t seen = (down.end(row) - down.first(row)) * (across.end(column) - across.first(column));
        return static_cast<std::int32_t>(seen * input_.channels + (taps - seen) * 4 * nibbles_);
    }

    std::int32_t sum_under(const std::int32_t* place_sums, std::size_t row, std::size_t column) const {
        const auto& [down, across] = window_;
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < down.kernel; ++i) {
            const std::int32_t* taps =
                place_sums + (row * down.stride + i * down.dilation) * columns_ + column * across.stride;
            for (std::size_t j = 0; j < across.kernel; ++j) sum += taps[j * across.dilation];
        }
        return sum;
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t filters_;
    bool pad_with_ones_;
    std::size_t nibbles_;         // of a place, even
    std::size_t rows_, columns_;  // of the padded map
    std::vector<Line> weights_;
    std::vector<float> scale_, middle_, bias_;
    std::vector<std::size_t> runs_;
    std::size_t run_bytes_ = 0;
    Finisher finisher_;
};

}  // namespace

bool has_tables(const Kernels& kernels, const Shape& input, const Window& window, std::size_t groups) {
    const std::size_t taps = window.down.kernel * window.across.kernel;
    return kernels.table_row != nullptr && groups == 1 && taps * ((input.channels + 7) / 8 * 8) <= kMostTaps;
}

std::unique_ptr<Layer> make_table_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                              const Window& window, std::size_t filters, bool pad_with_ones,
                                              const OneBitWeights& weights, const Followers& followers) {
    return std::make_unique<TableConvolution>(kernels, budget, input, window, filters, pad_with_ones, weights,
                                              followers);
}

}  // namespace dabnet
