#include <algorithm>

#include "layers.h"

namespace dabnet {
namespace {

constexpr std::uint8_t kPadding = 16;
constexpr std::size_t kBlock = 64;        // filters
constexpr std::size_t kPiece = 2;         // pairs of places
constexpr std::size_t kMostTaps = 32000;  // of a filter: dot products have 16 bits

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
          blocks_((filters + kBlock - 1) / kBlock),
          finisher_(budget, filters, followers) {
        const std::size_t taps = window.down.kernel * window.across.kernel;
        const std::size_t places = window.down.places * window.across.places;
        budget.take(blocks_ * taps * nibbles_ / 2 * sizeof(Line) + 3 * blocks_ * kBlock * sizeof(float));
        budget.take(places * (sizeof(std::int16_t) + sizeof(Pair)) + taps * sizeof(std::size_t));
        pack(weights.bits, taps);
        scale_ = filled_up(weights.scale);
        middle_ = filled_up(weights.middle);
        bias_ = filled_up(weights.bias);
        find_runs();
        find_pairs();
        for (std::size_t row = 0; row < window.down.places; ++row) {
            for (std::size_t column = 0; column < window.across.places; ++column) bases_.push_back(base(row, column));
        }
    }

    // A piece is a few pairs of places and a block of filters; blocks come one after the other, so that a block's
    // weights stay at hand.
    std::size_t pieces() const override { return blocks_ * pieces_a_block(); }

    // The paired map, a row of it before it is paired, each place's sum, the sums of columns, and what a window sums
    // to.
    std::size_t scratch_bytes() const override {
        return rows_ * columns_ * (nibbles_ * sizeof(std::uint16_t) + sizeof(std::int32_t)) +
               (columns_ + window_.across.places * window_.down.places) * sizeof(std::int32_t) + row_bytes() +
               alignof(std::int32_t);
    }

    void run(const Job& job) const override {
        // Whole numbers first, where they are aligned.
        auto* place_sums = static_cast<std::int32_t*>(job.scratch);
        std::int32_t* column_sums = place_sums + rows_ * columns_;
        std::int32_t* sums = column_sums + columns_;
        auto* paired = reinterpret_cast<std::uint16_t*>(sums + window_.across.places * window_.down.places);
        auto* row_bytes = reinterpret_cast<std::uint8_t*>(paired + rows_ * columns_ * nibbles_);

        // What these pieces see: all of the map, if there is more than one block of them.
        const std::size_t a_block = pieces_a_block(), first_block = job.from / a_block;
        const std::size_t last_block = (job.to - 1) / a_block;
        std::size_t first_row = 0, end_row = window_.down.places;
        if (first_block == last_block) {
            first_row = pairs_[job.from % a_block * kPiece].place / window_.across.places;
            end_row = pairs_[end_of_pieces(job.to - first_block * a_block) - 1].place / window_.across.places + 1;
        }
        pair_rows(job.input<std::uint64_t>(), first_row, end_row, paired, row_bytes, place_sums);
        if (!middle_.empty()) {
            for (std::size_t row = first_row; row < end_row; ++row) add_windows(place_sums, row, column_sums, sums);
        }

        const Finish finish = finisher_.finish(job);
        for (std::size_t block = first_block; block <= last_block; ++block) {
            const std::size_t from = block == first_block ? job.from % a_block * kPiece : 0;
            const std::size_t to = block == last_block ? end_of_pieces(job.to - block * a_block) : pairs_.size();
            TableJob table{};
            table.input = paired;
            table.pairs = pairs_.data() + from;
            table.pair_count = to - from;
            table.runs = runs_.data();
            table.run_count = runs_.size();
            table.run_length = run_length_;
            table.weights = weights_[block * runs_.size() * run_length_ / 2].bytes;
            table.first = block * kBlock;
            table.scale = scale_.data();
            table.middle = middle_.empty() ? nullptr : middle_.data();
            table.bias = bias_.empty() ? nullptr : bias_.data();
            table.bases = bases_.data();
            table.sums = middle_.empty() ? nullptr : sums;
            table.finish = &finish;
            kernels_.look_up(table);
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
    std::vector<float> filled_up(const float* numbers) const {
        std::vector<float> filled;
        if (numbers == nullptr) return filled;
        filled.resize(blocks_ * kBlock);
        std::copy(numbers, numbers + filters_, filled.begin());
        return filled;
    }

    void pack(const std::uint8_t* bits, std::size_t taps) {
        const std::size_t channels = input_.channels, row = (taps * channels + 7) / 8, pairs = nibbles_ / 2;
        weights_.resize(blocks_ * taps * pairs);
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

    // Taps side by side are one run, if nothing lies between them.
    void find_runs() {
        const bool are_joined = window_.across.dilation == 1;
        run_length_ = are_joined ? window_.across.kernel * nibbles_ : nibbles_;
        for (std::size_t i = 0; i < window_.down.kernel; ++i) {
            for (std::size_t j = 0; j < (are_joined ? 1 : window_.across.kernel); ++j) {
                const std::size_t place = i * window_.down.dilation * columns_ + j * window_.across.dilation;
                runs_.push_back(place * nibbles_);
            }
        }
    }

    void find_pairs() {
        for (std::size_t row = 0; row < window_.down.places; ++row) {
            for (std::size_t column = 0; column < window_.across.places; column += 2) {
                const std::size_t tap = row * window_.down.stride * columns_ + column * window_.across.stride;
                const std::size_t places = std::min<std::size_t>(2, window_.across.places - column);
                pairs_.push_back({static_cast<std::uint32_t>(tap * nibbles_),
                                  static_cast<std::uint32_t>(row * window_.across.places + column),
                                  static_cast<std::uint32_t>(places)});
            }
        }
    }

    std::size_t pieces_a_block() const { return (pairs_.size() + kPiece - 1) / kPiece; }
    std::size_t end_of_pieces(std::size_t piece) const { return std::min(piece * kPiece, pairs_.size()); }

    // A row and what stands beside its last place, one stride further.
    std::size_t row_bytes() const { return (columns_ + window_.across.stride) * nibbles_; }

    // Pairs the padded map's rows that some rows of places see, and adds each place's signs up.
    void pair_rows(const std::uint64_t* x, std::size_t first_row, std::size_t end_row, std::uint16_t* paired,
                   std::uint8_t* row_bytes, std::int32_t* place_sums) const {
        const auto& [down, across] = window_;
        std::fill(row_bytes + columns_ * nibbles_, row_bytes + this->row_bytes(), kPadding);
        const std::size_t from = first_row * down.stride;
        const std::size_t to = (end_row - 1) * down.stride + (down.kernel - 1) * down.dilation + 1;
        for (std::size_t row = from; row < to; ++row) {
            spread_row(x, row, row_bytes, place_sums + row * columns_);
            kernels_.pair_up(row_bytes, row_bytes + across.stride * nibbles_, columns_ * nibbles_,
                             paired + row * columns_ * nibbles_);
        }
    }

    void spread_row(const std::uint64_t* x, std::size_t row, std::uint8_t* spread, std::int32_t* place_sums) const {
        const auto& [down, across] = window_;
        const bool is_row_inside = row >= down.before && row - down.before < input_.height;
        for (std::size_t column = 0; column < columns_; ++column, spread += nibbles_, ++place_sums) {
            if (is_row_inside && column >= across.before && column - across.before < input_.width) {
                const std::size_t place = (row - down.before) * input_.width + (column - across.before);
                const std::uint64_t* words = x + place * input_.words();
                kernels_.spread(words, nibbles_, spread);
                if (!middle_.empty()) *place_sums = sum_of(words);
            } else if (pad_with_ones_) {
                for (std::size_t i = 0; i < nibbles_; ++i) {
                    const std::size_t left = input_.channels > 4 * i ? input_.channels - 4 * i : 0;
                    spread[i] = static_cast<std::uint8_t>((1u << std::min<std::size_t>(left, 4)) - 1);
                }
                *place_sums = static_cast<std::int32_t>(input_.channels);
            } else {
                std::fill(spread, spread + nibbles_, kPadding);
                *place_sums = 0;
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
    std::int16_t base(std::size_t row, std::size_t column) const {
        const auto& [down, across] = window_;
        const std::size_t taps = down.kernel * across.kernel;
        if (pad_with_ones_) return static_cast<std::int16_t>(taps * input_.channels);
        const std::size_t seen = (down.end(row) - down.first(row)) * (across.end(column) - across.first(column));
        return static_cast<std::int16_t>(seen * input_.channels + (taps - seen) * 4 * nibbles_);
    }

    // Adds up what a row of windows sees: first columns, then across.
    void add_windows(const std::int32_t* place_sums, std::size_t row, std::int32_t* column_sums,
                     std::int32_t* sums) const {
        const auto& [down, across] = window_;
        std::fill(column_sums, column_sums + columns_, 0);
        for (std::size_t i = 0; i < down.kernel; ++i) {
            const std::int32_t* line = place_sums + (row * down.stride + i * down.dilation) * columns_;
            for (std::size_t column = 0; column < columns_; ++column) column_sums[column] += line[column];
        }
        sums += row * across.places;
        std::fill(sums, sums + across.places, 0);
        for (std::size_t j = 0; j < across.kernel; ++j) {
            const std::int32_t* tap = column_sums + j * across.dilation;
            for (std::size_t column = 0; column < across.places; ++column) sums[column] += tap[column * across.stride];
        }
    }

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t filters_;
    bool pad_with_ones_;
    std::size_t nibbles_;         // of a place, even
    std::size_t rows_, columns_;  // of the padded map
    std::size_t blocks_;
    std::vector<Line> weights_;
    std::vector<float> scale_, middle_, bias_;
    std::vector<std::size_t> runs_;
    std::size_t run_length_ = 0;
    std::vector<Pair> pairs_;
    std::vector<std::int16_t> bases_;
    Finisher finisher_;
};

}  // namespace

bool has_tables(const Kernels& kernels, const Shape& input, const Window& window, std::size_t groups) {
    const std::size_t taps = window.down.kernel * window.across.kernel;
    return kernels.look_up != nullptr && groups == 1 && taps * ((input.channels + 7) / 8 * 8) <= kMostTaps;
}

std::unique_ptr<Layer> make_table_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                              const Window& window, std::size_t filters, bool pad_with_ones,
                                              const OneBitWeights& weights, const Followers& followers) {
    return std::make_unique<TableConvolution>(kernels, budget, input, window, filters, pad_with_ones, weights,
                                              followers);
}

}  // namespace dabnet
