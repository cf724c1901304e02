#include <algorithm>

#include "blocks.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::uint8_t kPadding = 16;
constexpr std::size_t kPiece = 2;         // pairs of places
constexpr std::size_t kMostTaps = 32000;  // of a filter: dot products have 16 bits

// A convolution of signs by tables; kernels.h says how inputs and weights stand in memory.
//
// Two places side by side are a pair. Where a row has an odd number, its last place is left over; two such ones, one
// above the other, are a pair too, whose input stands in more columns of the map.
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
          columns_(window.across.extent()),
          tall_columns_(window.across.places % 2 == 0 ? 0 : (window.across.kernel - 1) * window.across.dilation + 1),
          map_(window, nibbles_, tall_columns_),
          work_{(filters + kBlock - 1) / kBlock, count_pairs(window), kPiece},
          finisher_(budget, filters, followers) {
        const std::size_t taps = window.taps();
        budget.take(work_.blocks * (taps * nibbles_ / 2 * sizeof(Line) + 3 * kBlock * sizeof(float)));
        budget.take(window.places() * sizeof(std::int16_t) + work_.units * sizeof(Pair));
        budget.take(taps * nibbles_ * sizeof(std::uint32_t));
        find_offsets();
        pack(weights.bits, taps);
        scale_ = filled_up(weights.scale, filters);
        middle_ = filled_up(weights.middle, filters);
        bias_ = filled_up(weights.bias, filters);
        for (std::size_t row = 0; row < window.down.places; ++row) {
            for (std::size_t column = 0; column < window.across.places; ++column) bases_.push_back(base(row, column));
        }
        find_pairs();
    }

    std::size_t pieces() const override { return work_.pieces(); }

    // Each place's sum, the sums of columns, what a window sums to, the paired map, a row before it is paired, and the
    // columns of places one above the other.
    std::size_t scratch_bytes() const override {
        return (map_.rows * map_.columns + map_.columns + window_.places()) * sizeof(std::int32_t) +
               map_.size() * sizeof(std::uint16_t) + row_bytes() + tall_bytes();
    }

    void run(const Job& job) const override {
        auto* place_sums = static_cast<std::int32_t*>(job.scratch);
        std::int32_t* column_sums = place_sums + map_.rows * map_.columns;
        std::int32_t* sums = column_sums + map_.columns;
        auto* paired = reinterpret_cast<std::uint16_t*>(sums + window_.places());
        auto* row_bytes = reinterpret_cast<std::uint8_t*>(paired + map_.size());

        const auto [first, end] = work_.to_prepare(job);
        if (first < end) {
            std::size_t first_row = pairs_[first].first / window_.across.places;
            if (tall_columns_ != 0) first_row -= first_row % 2;  // a pair may reach up to the row before
            const std::size_t end_row = pairs_[end - 1].second / window_.across.places + 1;
            pair_rows(job.input<std::uint64_t>(), first_row, end_row, paired, row_bytes, place_sums);
            for (std::size_t row = first_row; row < end_row && !middle_.empty(); ++row) {
                add_windows(window_, map_.columns, place_sums, row, column_sums, sums + row * window_.across.places);
            }
        }

        const Finish finish = finisher_.finish(job);
        TableJob table{};
        table.input = paired;
        table.sixes = offsets_.data();
        table.six_count = six_count_;
        table.twos = offsets_.data() + six_count_;
        table.two_count = offsets_.size() - six_count_;
        table.scale = scale_.data();
        table.middle = data_or_null(middle_);
        table.bias = data_or_null(bias_);
        table.bases = bases_.data();
        table.sums = middle_.empty() ? nullptr : sums;
        table.finish = &finish;
        work_.each(job.from, job.to, [&](std::size_t block, std::size_t from, std::size_t to) {
            table.pairs = pairs_.data() + from;
            table.pair_count = to - from;
            table.weights = weights_[block * lines_a_block()].bytes;
            table.first = block * kBlock;
            kernels_.look_up(table);
        });
    }

   private:
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };

    // Groups that stand side by side, six at a time, then two at a time.
    void find_offsets() {
        const std::size_t length = map_.run_length, in_sixes = length / 6 * 6;
        const auto add = [&](std::size_t run, std::size_t group) {
            offsets_.push_back(static_cast<std::uint32_t>(run + group));
        };
        for (std::size_t run : map_.runs) {
            for (std::size_t group = 0; group < in_sixes; group += 6) add(run, group);
        }
        six_count_ = offsets_.size();
        for (std::size_t run : map_.runs) {
            for (std::size_t group = in_sixes; group < length; group += 2) add(run, group);
        }
    }

    // The line of weights, for two groups, of a group of all those that a window sees, tap after tap.
    std::size_t line_of(std::size_t group) const {
        const std::size_t length = map_.run_length, run = group / length, at = group % length;
        const std::size_t in_sixes = length / 6 * 6;
        if (at < in_sixes) return (run * in_sixes + at) / 2;
        return 3 * six_count_ + (run * (length - in_sixes) + at - in_sixes) / 2;
    }

    void pack(const std::uint8_t* bits, std::size_t taps) {
        const std::size_t channels = input_.channels, row = (taps * channels + 7) / 8;
        weights_.resize(work_.blocks * lines_a_block());
        for (std::size_t filter = 0; filter < filters_; ++filter) {
            const std::size_t half = filter % kBlock / 32, i = filter % 32;
            const std::size_t place = half * 32 + (i < 16 ? 2 * i : 2 * (i - 16) + 1);
            Line* lines = weights_.data() + filter / kBlock * lines_a_block();
            for (std::size_t bit = 0; bit < taps * channels; ++bit) {
                const std::size_t tap = bit / channels, channel = bit % channels;
                const int is_one = bits[filter * row + bit / 8] >> (bit % 8) & 1;
                Line& line = lines[line_of(tap * nibbles_ + channel / 8 * 2)];
                line.bytes[place] |= static_cast<std::uint8_t>(is_one << (channel % 8));
            }
        }
    }

    std::size_t lines_a_block() const { return window_.taps() * nibbles_ / 2; }

    static std::size_t count_pairs(const Window& window) {
        const std::size_t tall = window.across.places % 2 == 0 ? 0 : (window.down.places + 1) / 2;
        return window.down.places * (window.across.places / 2) + tall;
    }

    // Rows come two at a time, then the pair of their last places, if these are left over.
    void find_pairs() {
        const auto& [down, across] = window_;
        const auto add = [&](std::size_t start, std::size_t first, std::size_t second) {
            pairs_.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(first),
                              static_cast<std::uint32_t>(second)});
        };
        for (std::size_t row = 0; row < down.places; ++row) {
            const std::size_t place = row * across.places;
            for (std::size_t column = 0; column + 1 < across.places; column += 2) {
                add(map_.start(window_, row, column), place + column, place + column + 1);
            }
            const std::size_t last = place + across.places - 1;
            if (tall_columns_ == 0) continue;
            if (row % 2 == 1) {
                add(map_.start(window_, row - 1, 0) + columns_ * nibbles_, last - across.places, last);
            } else if (row + 1 == down.places) {
                add(map_.start(window_, row, across.places - 1), last, last);
            }
        }
    }

    // A row and what stands beside its last place, one stride further.
    std::size_t row_bytes() const { return (columns_ + window_.across.stride) * nibbles_; }

    // The last columns of all rows, and of those that their partners would be in.
    std::size_t tall_bytes() const { return (map_.rows + window_.down.stride) * tall_columns_ * nibbles_; }

    // Pairs the padded map's rows that rows [from, to) of places see, and adds each place's signs up.
    void pair_rows(const std::uint64_t* x, std::size_t from, std::size_t to, std::uint16_t* paired,
                   std::uint8_t* row_bytes, std::int32_t* place_sums) const {
        const std::size_t length = columns_ * nibbles_, tall = tall_columns_ * nibbles_;
        std::uint8_t* tall_bytes = row_bytes + this->row_bytes();
        std::fill(row_bytes + length, tall_bytes + this->tall_bytes(), kPadding);
        each_row_seen(window_.down, from, to, [&](std::size_t row) {
            spread_row(x, row, row_bytes, place_sums + row * map_.columns);
            kernels_.pair_up(row_bytes, row_bytes + window_.across.stride * nibbles_, length,
                             paired + row * (length + tall));
            std::copy(row_bytes + length - tall, row_bytes + length, tall_bytes + row * tall);
        });
        if (tall == 0) return;
        each_row_seen(window_.down, from, to, [&](std::size_t row) {
            kernels_.pair_up(tall_bytes + row * tall, tall_bytes + (row + window_.down.stride) * tall, tall,
                             paired + row * (length + tall) + length);
        });
    }

    void spread_row(const std::uint64_t* x, std::size_t row, std::uint8_t* spread, std::int32_t* place_sums) const {
        const auto& [down, across] = window_;
        std::size_t left = columns_, right = columns_;  // the map's columns are between them
        if (row >= down.before && row - down.before < input_.height) {
            left = std::min(across.before, columns_);
            right = std::min(across.before + input_.width, columns_);
        }
        for (std::size_t column = 0; column < left; ++column) pad(spread + column * nibbles_, place_sums + column);
        if (left < right) {
            const std::uint64_t* words = x + (row - down.before) * input_.width * input_.words();
            spread_places(words, right - left, spread + left * nibbles_);
            if (!middle_.empty()) kernels_.add_signs(words, right - left, input_.channels, place_sums + left);
        }
        for (std::size_t column = right; column < columns_; ++column) {
            pad(spread + column * nibbles_, place_sums + column);
        }
        std::fill(place_sums + columns_, place_sums + map_.columns, 0);
    }

    void spread_places(const std::uint64_t* words, std::size_t places, std::uint8_t* spread) const {
        if (nibbles_ == 16 * input_.words()) return kernels_.spread(words, places * nibbles_, spread);
        for (std::size_t place = 0; place < places; ++place) {
            kernels_.spread(words + place * input_.words(), nibbles_, spread + place * nibbles_);
        }
    }

    void pad(std::uint8_t* spread, std::int32_t* sum) const {
        *sum = pad_with_ones_ ? static_cast<std::int32_t>(input_.channels) : 0;
        std::fill(spread, spread + nibbles_, kPadding);
        for (std::size_t i = 0; i < nibbles_ && pad_with_ones_; ++i) {
            const std::size_t left = input_.channels > 4 * i ? input_.channels - 4 * i : 0;
            spread[i] = static_cast<std::uint8_t>((1u << std::min<std::size_t>(left, 4)) - 1);
        }
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

    const Kernels& kernels_;
    Shape input_;
    Window window_;
    std::size_t filters_;
    bool pad_with_ones_;
    std::size_t nibbles_;                 // of a place, even
    std::size_t columns_, tall_columns_;  // of a row, and of places one above the other
    PaddedMap map_;
    Blocks work_;                         // in pairs of places
    std::vector<std::uint32_t> offsets_;  // of sixes, then of twos
    std::size_t six_count_ = 0;
    std::vector<Line> weights_;
    std::vector<float> scale_, middle_, bias_;
    std::vector<Pair> pairs_;
    std::vector<std::int16_t> bases_;
    Finisher finisher_;
};

}  // namespace

bool has_tables(const Kernels& kernels, const Shape& input, const Window& window, std::size_t groups) {
    const std::size_t channels = (input.channels + 7) / 8 * 8;
    return kernels.look_up != nullptr && groups == 1 && window.taps() * channels <= kMostTaps &&
           window.down.extent() * window.across.extent() <= UINT32_MAX / channels;
}

std::unique_ptr<Layer> make_table_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                              const Window& window, std::size_t filters, bool pad_with_ones,
                                              const OneBitWeights& weights, const Followers& followers) {
    return std::make_unique<TableConvolution>(kernels, budget, input, window, filters, pad_with_ones, weights,
                                              followers);
}

}  // namespace dabnet
