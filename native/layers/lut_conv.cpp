#include <algorithm>

#include "../scratch.h"
#include "bits.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::uint8_t kPadding = 16;
constexpr std::size_t kPiece = 2;         // pairs of positions
constexpr std::size_t kMostTaps = 32000;  // of a filter: dot products have 16 bits

// A convolution of signs by lookup tables; LutConvJob in kernels.h says how inputs and weights lie in memory.
//
// Two positions side by side are a pair. Where rows have an odd number of positions, the last one of each is left over;
// two of those, one above the other, are a tall pair. So a row of the paired map has
//
//     columns_         columns, each nibble paired with what the next position to the right sees instead of it, then
//     tall_columns_    the last columns again, paired with what the position below sees; none if rows are even
class LutConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        const std::uint64_t blocks = (convolution.filters + kBlock - 1) / kBlock, taps = convolution.window.taps();
        const std::uint64_t nibbles = nibbles_of(convolution);
        return blocks * (taps * nibbles / 2 * sizeof(Line) + 3 * kBlock * sizeof(float)) +
               convolution.window.positions() * sizeof(std::int16_t) + count_pairs(convolution.window) * sizeof(Pair) +
               taps * nibbles * sizeof(std::uint32_t);
    }

    LutConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(convolution),
          nibbles_(nibbles_of(convolution)),
          columns_(convolution.window.width.extent()),
          tall_columns_(convolution.window.width.positions % 2 == 0
                            ? 0
                            : (convolution.window.width.kernel - 1) * convolution.window.width.dilation + 1),
          map_(convolution.window, nibbles_, tall_columns_),
          work_{(convolution.filters + kBlock - 1) / kBlock, static_cast<std::size_t>(count_pairs(convolution.window)),
                kPiece},
          scale_(filled_up(convolution.scale, convolution.filters)),
          offset_(filled_up(convolution.offset, convolution.filters)),
          bias_(filled_up(convolution.bias, convolution.filters)),
          epilogue_(epilogue) {
        find_offsets();
        pack(convolution.bits);
        find_bases();
        find_pairs();
    }

    std::uint64_t pieces() const override { return work_.pieces(); }
    double work() const override {
        return convolution_.multiply_adds() + static_cast<double>(map_.rows) * static_cast<double>(map_.columns) *
                                                  static_cast<double>(nibbles_ + convolution_.window.height.kernel);
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        if (!prepare(job, scratch)) return;
        const Epilogue epilogue = epilogue_.bind(job);
        LutConvJob lut{};
        lut.input = scratch.paired;
        lut.sixes = offsets_.data();
        lut.six_count = six_count_;
        lut.twos = offsets_.data() + six_count_;
        lut.two_count = offsets_.size() - six_count_;
        lut.scale = scale_.data();
        lut.offset = data_or_null(offset_);
        lut.bias = data_or_null(bias_);
        lut.bases = bases_.data();
        lut.sums = offset_.empty() ? nullptr : scratch.sums;
        lut.epilogue = &epilogue;
        const std::uint64_t pair_work = lines_per_block() * kBlock;  // products by the byte
        const std::size_t at_once = (units_at_once(pair_work) + 3) / 4 * 4;
        work_.each(job.from, job.to, at_once, [&](std::size_t block, std::size_t from, std::size_t to) {
            if (job.is_stopped((to - from) * pair_work)) return false;
            lut.pairs = pairs_.data() + from;
            lut.pair_count = to - from;
            lut.weights = weights_[block * lines_per_block()].bytes;
            lut.first_filter = block * kBlock;
            kernels_.lut_conv(lut);
            return true;
        });
    }

   private:
    struct alignas(64) Line {
        std::uint8_t bytes[64];
    };

    struct Scratch {
        std::int32_t* position_sums;  // of the padded map: the sum of each position's signs
        std::int32_t* column_sums;    // of these, in the rows that a window sees
        std::int32_t* sums;           // of the inputs of each window
        std::uint16_t* paired;        // the paired map, (rows, columns_ + tall_columns_, nibbles_)
        std::uint8_t* row;            // one row's nibbles, and padding for the partners of the last positions
        std::uint8_t* tall;           // the last columns' nibbles of all rows, and padding below them
    };
    Scratch carve(Carver& carver) const {
        const std::uint64_t positions = std::uint64_t{map_.rows} * map_.columns;
        return {carver.take<std::int32_t>(positions),
                carver.take<std::int32_t>(map_.columns),
                carver.take<std::int32_t>(convolution_.window.positions()),
                carver.take<std::uint16_t>(positions * map_.per_position),
                carver.take<std::uint8_t>(row_bytes()),
                carver.take<std::uint8_t>(tall_bytes())};
    }
    std::uint64_t row_bytes() const { return (std::uint64_t{columns_} + convolution_.window.width.stride) * nibbles_; }
    std::uint64_t tall_bytes() const {
        return (std::uint64_t{map_.rows} + convolution_.window.height.stride) * tall_columns_ * nibbles_;
    }

    static std::size_t nibbles_of(const Convolution& convolution) { return (convolution.input.channels + 7) / 8 * 2; }
    static std::uint64_t count_pairs(const Window& window) {
        const std::size_t tall = window.width.positions % 2 == 0 ? 0 : (window.height.positions + 1) / 2;
        return std::uint64_t{window.height.positions} * (window.width.positions / 2) + tall;
    }
    std::size_t lines_per_block() const { return static_cast<std::size_t>(convolution_.window.taps()) * nibbles_ / 2; }

    // Nibbles that lie side by side, six at a time, then two at a time.
    void find_offsets() {
        const std::size_t length = map_.run_length, in_sixes = length / 6 * 6;
        const auto add = [&](std::size_t run, std::size_t nibble) {
            offsets_.push_back(static_cast<std::uint32_t>(run + nibble));
        };
        for (std::size_t run : map_.runs) {
            for (std::size_t nibble = 0; nibble < in_sixes; nibble += 6) add(run, nibble);
        }
        six_count_ = offsets_.size();
        for (std::size_t run : map_.runs) {
            for (std::size_t nibble = in_sixes; nibble < length; nibble += 2) add(run, nibble);
        }
    }

    // Nibbles are counted tap after tap. Returns the line of the weights that a nibble is in; a line has two.
    std::size_t line_of(std::size_t nibble) const {
        const std::size_t length = map_.run_length, run = nibble / length, at = nibble % length;
        const std::size_t in_sixes = length / 6 * 6;
        if (at < in_sixes) return (run * in_sixes + at) / 2;
        return 3 * six_count_ + (run * (length - in_sixes) + at - in_sixes) / 2;
    }

    // Copies the weights, one filter's bits after the other's, to where the kernel wants them: a byte of a line has 8
    // channels of a tap. So has a byte of the file, if the channels are a multiple of 8.
    void pack(const std::uint8_t* bits) {
        const std::size_t channels = convolution_.input.channels,
                          taps = static_cast<std::size_t>(convolution_.window.taps());
        const std::size_t row = (taps * channels + 7) / 8, bytes = nibbles_ / 2;
        std::vector<std::size_t> lines(taps * bytes);
        for (std::size_t i = 0; i < lines.size(); ++i) lines[i] = line_of(2 * i);
        weights_.resize(work_.blocks * lines_per_block());
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            const std::size_t half = filter % kBlock / 32, i = filter % 32;
            const std::size_t column = half * 32 + (i < 16 ? 2 * i : 2 * (i - 16) + 1);
            Line* block = weights_.data() + filter / kBlock * lines_per_block();
            if (channels % 8 == 0) {
                for (std::size_t at = 0; at < row; ++at) block[lines[at]].bytes[column] = bits[at];
                continue;
            }
            for (std::size_t at = 0; at < lines.size(); ++at) {
                const std::size_t tap = at / bytes, channel = at % bytes * 8;
                const std::size_t count = std::min<std::size_t>(channels - channel, 8);
                block[lines[at]].bytes[column] =
                    static_cast<std::uint8_t>(bits_at(bits, tap * channels + channel, count));
            }
        }
    }

    // Dot products are base - 2 count. A padded nibble adds 2 to the count, so 4 to the base, and nothing to the
    // product.
    void find_bases() {
        const auto& [height, width] = convolution_.window;
        const std::size_t taps = static_cast<std::size_t>(convolution_.window.taps()),
                          channels = convolution_.input.channels;
        bases_.reserve(static_cast<std::size_t>(convolution_.window.positions()));
        for (std::size_t row = 0; row < height.positions; ++row) {
            for (std::size_t column = 0; column < width.positions; ++column) {
                std::size_t seen = taps;
                if (!convolution_.pads_with_ones) {
                    seen = (height.end(row) - height.first(row)) * (width.end(column) - width.first(column));
                }
                bases_.push_back(static_cast<std::int16_t>(seen * channels + (taps - seen) * 4 * nibbles_));
            }
        }
    }

    // The pairs of each row; after two rows the tall pair of their last positions, if these are left over.
    void find_pairs() {
        const auto& [height, width] = convolution_.window;
        pairs_.reserve(work_.units);
        const auto add = [&](std::size_t start, std::size_t first, std::size_t second) {
            pairs_.push_back({static_cast<std::uint32_t>(start), static_cast<std::uint32_t>(first),
                              static_cast<std::uint32_t>(second)});
        };
        for (std::size_t row = 0; row < height.positions; ++row) {
            const std::size_t position = row * width.positions;
            for (std::size_t column = 0; column + 1 < width.positions; column += 2) {
                add(map_.start(convolution_.window, row, column), position + column, position + column + 1);
            }
            const std::size_t last = position + width.positions - 1;
            if (tall_columns_ == 0) continue;
            if (row % 2 == 1) {
                add(map_.start(convolution_.window, row - 1, 0) + columns_ * nibbles_, last - width.positions, last);
            } else if (row + 1 == height.positions) {
                add(map_.start(convolution_.window, row, width.positions - 1), last, last);
            }
        }
    }

    // Gets the input of a job's positions ready, if that is not done; false if the run has to end.
    bool prepare(const Job& job, const Scratch& scratch) const {
        const auto [first, end] = work_.to_prepare(job);
        if (first >= end) return true;
        const auto& [height, width] = convolution_.window;
        std::size_t first_row = pairs_[first].first / width.positions;
        if (tall_columns_ != 0) first_row -= first_row % 2;  // a tall pair begins in the row before
        const std::size_t end_row = pairs_[end - 1].second / width.positions + 1;
        if (!pair_rows(job, first_row, end_row, scratch)) return false;
        for (std::size_t row = first_row; row < end_row && !offset_.empty(); ++row) {
            if (job.is_stopped((height.kernel + 1) * map_.columns / 8)) return false;
            sum_windows(convolution_.window, map_.columns, scratch.position_sums, row, scratch.column_sums,
                        scratch.sums + row * width.positions);
        }
        return true;
    }

    // Makes the rows of the paired map that rows [from, to) of positions see, and sums each position's signs.
    bool pair_rows(const Job& job, std::size_t from, std::size_t to, const Scratch& scratch) const {
        const Axis &height = convolution_.window.height, &width = convolution_.window.width;
        const std::size_t length = columns_ * nibbles_, tall = tall_columns_ * nibbles_;
        std::fill(scratch.row + length, scratch.row + row_bytes(), kPadding);
        std::fill(scratch.tall, scratch.tall + tall_bytes(), kPadding);
        const bool goes_on = each_row_seen(height, from, to, [&](std::size_t row) {
            if (job.is_stopped(length / 8)) return false;
            spread_row(job.input<std::uint64_t>(), row, scratch.row, scratch.position_sums + row * map_.columns);
            kernels_.pair_nibbles(scratch.row, scratch.row + width.stride * nibbles_, length,
                                  scratch.paired + row * (length + tall));
            std::copy(scratch.row + length - tall, scratch.row + length, scratch.tall + row * tall);
            return true;
        });
        if (tall == 0 || !goes_on) return goes_on;
        return each_row_seen(height, from, to, [&](std::size_t row) {
            kernels_.pair_nibbles(scratch.tall + row * tall, scratch.tall + (row + height.stride) * tall, tall,
                                  scratch.paired + row * (length + tall) + length);
            return !job.is_stopped(tall / 8);
        });
    }

    void spread_row(const std::uint64_t* x, std::size_t row, std::uint8_t* spread, std::int32_t* position_sums) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::size_t left = columns_, right = columns_;  // the map's columns are between them
        if (row >= height.before && row - height.before < input.height) {
            left = std::min(width.before, columns_);
            right = std::min(width.before + input.width, columns_);
        }
        for (std::size_t column = 0; column < left; ++column) pad(spread + column * nibbles_, position_sums + column);
        if (left < right) {
            const std::uint64_t* words = x + (row - height.before) * input.width * input.words();
            spread_positions(words, right - left, spread + left * nibbles_);
            if (!offset_.empty()) kernels_.sum_signs(words, right - left, input.channels, position_sums + left);
        }
        for (std::size_t column = right; column < columns_; ++column) {
            pad(spread + column * nibbles_, position_sums + column);
        }
        std::fill(position_sums + columns_, position_sums + map_.columns, 0);
    }

    void spread_positions(const std::uint64_t* words, std::size_t positions, std::uint8_t* spread) const {
        const std::size_t per_position = convolution_.input.words();
        if (nibbles_ == 16 * per_position) return kernels_.spread_bits(words, positions * nibbles_, spread);
        for (std::size_t position = 0; position < positions; ++position) {
            kernels_.spread_bits(words + position * per_position, nibbles_, spread + position * nibbles_);
        }
    }

    void pad(std::uint8_t* spread, std::int32_t* sum) const {
        const std::size_t channels = convolution_.input.channels;
        *sum = convolution_.pads_with_ones ? static_cast<std::int32_t>(channels) : 0;
        std::fill(spread, spread + nibbles_, kPadding);
        for (std::size_t i = 0; i < nibbles_ && convolution_.pads_with_ones; ++i) {
            const std::size_t left = channels > 4 * i ? channels - 4 * i : 0;
            spread[i] = static_cast<std::uint8_t>((1u << std::min<std::size_t>(left, 4)) - 1);
        }
    }

    const Kernels& kernels_;
    Convolution convolution_;             // but for its arrays, which are not kept
    std::size_t nibbles_;                 // of a position, even
    std::size_t columns_, tall_columns_;  // of a row, and of positions one above the other
    PaddedMap map_;
    Blocks work_;                         // in pairs of positions
    std::vector<std::uint32_t> offsets_;  // of sixes, then of twos
    std::size_t six_count_ = 0;
    std::vector<Line> weights_;
    std::vector<float> scale_, offset_, bias_;
    std::vector<Pair> pairs_;
    std::vector<std::int16_t> bases_;
    EpilogueArrays epilogue_;
};

}  // namespace

bool has_lut_conv(const Kernels& kernels, const Convolution& convolution) {
    const std::size_t channels = (convolution.input.channels + 7) / 8 * 8;
    return kernels.lut_conv != nullptr && convolution.groups == 1 &&
           convolution.window.taps() <= kMostTaps / channels && convolution.window.extent() <= UINT32_MAX / channels;
}

std::unique_ptr<Layer> make_lut_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue) {
    if (!builder.budget.take(LutConv::bytes(convolution))) return nullptr;
    return std::make_unique<LutConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
