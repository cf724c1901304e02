#include <algorithm>
#include <cstring>
#include <utility>

#include "../scratch.h"
#include "bits.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kPiece = 8;  // positions
constexpr std::size_t kWord = 8;   // bytes

// The positions of an axis by what of the window is on the map: a kind for each pair of Axis::first and Axis::end.
struct AxisKinds {
    std::vector<std::size_t> of;                            // each position
    std::vector<std::pair<std::size_t, std::size_t>> seen;  // by each kind

    explicit AxisKinds(const Axis& axis) {
        of.reserve(axis.positions);
        for (std::size_t position = 0; position < axis.positions; ++position) {
            const std::pair found{axis.first(position), axis.end(position)};
            if (seen.empty() || seen.back() != found) seen.push_back(found);
            of.push_back(seen.size() - 1);
        }
    }
};

// A convolution of signs by counting the bits of words; CountConvJob in kernels.h says how inputs and weights lie in
// memory.
//
// A group of channels has a map of its own, and its filters are a multiple of 8.
//
// Padding has bits, too: zeros, where it should count nothing. What it adds to a count depends on the filter and on
// which taps see it, not on the input, so that it goes into the bases of a kind of positions.
class CountConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& of) {
        const std::uint64_t filters = (of.filters + kBlock - 1) / kBlock * kBlock;
        const PaddedMap map(of.window, bytes_of(of));
        return filters * (map.runs.size() * words_of(map) * sizeof(std::uint64_t) + 3 * sizeof(float) +
                          count_kinds(of) * sizeof(std::int32_t)) +
               of.window.positions() * 2 * sizeof(std::uint32_t) + map.runs.size() * sizeof(std::size_t) +
               filters / 8 * sizeof(std::uint32_t);
    }
    static std::uint64_t count_kinds(const Convolution& of) {
        if (of.pads_with_ones) return 1;
        return std::uint64_t{AxisKinds(of.window.height).seen.size()} * AxisKinds(of.window.width).seen.size();
    }

    CountConv(const Kernels& kernels, const Convolution& of, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(of),
          map_(of.window, bytes_of(of)),
          work_{(of.filters + kBlock - 1) / kBlock, static_cast<std::size_t>(of.window.positions()), kPiece},
          weights_(work_.blocks * lines_per_block()),
          scale_(filled_up(of.scale, of.filters)),
          offset_(filled_up(of.offset, of.filters)),
          bias_(filled_up(of.bias, of.filters)),
          epilogue_(epilogue) {
        pack(of.bits);
        find_positions();
        of.pads_with_ones ? find_bases() : find_bases(of.bits);
        if (of.groups == 1) return;
        groups_.resize(work_.blocks * kBlock / 8);
        for (std::size_t eight = 0; eight < of.filters / 8; ++eight) {
            groups_[eight] = static_cast<std::uint32_t>(8 * eight / (of.filters / of.groups));
        }
    }

    std::uint64_t pieces() const override { return work_.pieces(); }
    double work() const override {
        return convolution_.multiply_adds() +
               static_cast<double>(convolution_.groups) * static_cast<double>(map_.rows) *
                   static_cast<double>(map_.columns) *
                   static_cast<double>(map_.per_position + convolution_.window.height.kernel);
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
        CountConvJob conv{};
        conv.input = scratch.map;
        conv.groups = groups_.empty() ? nullptr : groups_.data();
        conv.group_bytes = map_.size();
        conv.group_positions = work_.units;
        conv.starts = starts_.data();
        conv.runs = map_.runs.data();
        conv.run_count = map_.runs.size();
        conv.run_words = words_of(map_);
        const std::size_t unused = conv.run_words * kWord - map_.run_length;  // bytes
        conv.last = ~std::uint64_t{0} >> (8 * unused);
        conv.scale = scale_.data();
        conv.offset = data_or_null(offset_);
        conv.bias = data_or_null(bias_);
        conv.bases = bases_.data();
        conv.kinds = kinds_.data();
        conv.sums = offset_.empty() ? nullptr : scratch.sums;
        conv.epilogue = &epilogue;
        const std::uint64_t unit_work = lines_per_block() * kBlock * kWord / 2;
        const std::size_t at_once = (units_at_once(unit_work) + kPiece - 1) / kPiece * kPiece;
        work_.each(job.from, job.to, at_once, [&](std::size_t block, std::size_t from, std::size_t to) {
            if (job.is_stopped((to - from) * unit_work)) return false;
            conv.first_position = from;
            conv.positions = to - from;
            conv.weights = weights_[block * lines_per_block()].words;
            conv.first_filter = block * kBlock;
            kernels_.count_conv(conv);
            return true;
        });
    }

   private:
    // A word of each of 64 filters.
    struct alignas(64) Line {
        std::uint64_t words[kBlock];
    };

    // The padded map, each position's sum of signs, the sums of columns, and what a window sums to.
    struct Scratch {
        std::uint8_t* map;
        std::int32_t *position_sums, *column_sums, *sums;
    };
    Scratch carve(Carver& carver) const {
        const std::uint64_t positions = std::uint64_t{convolution_.groups} * map_.rows * map_.columns;
        return {carver.take<std::uint8_t>(positions * map_.per_position + kWord),  // a run's last word may be longer
                carver.take<std::int32_t>(positions), carver.take<std::int32_t>(map_.columns),
                carver.take<std::int32_t>(convolution_.groups * convolution_.window.positions())};
    }

    static std::size_t bytes_of(const Convolution& of) { return (of.group_channels() + 7) / 8; }
    static std::size_t words_of(const PaddedMap& map) { return (map.run_length + kWord - 1) / kWord; }
    std::size_t lines_per_block() const { return map_.runs.size() * words_of(map_); }

    // A run's taps lie side by side, each in whole bytes.
    void pack(const std::uint8_t* bits) {
        const std::size_t channels = convolution_.group_channels(), bytes = map_.per_position,
                          taps = static_cast<std::size_t>(convolution_.window.taps());
        const std::size_t row = (taps * channels + 7) / 8, taps_per_run = taps / map_.runs.size();
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            Line* block = weights_.data() + filter / kBlock * lines_per_block();
            for (std::size_t tap = 0; tap < taps; ++tap) {
                Line* lines = block + tap / taps_per_run * words_of(map_);
                for (std::size_t byte = 0; byte < bytes; ++byte) {
                    const std::size_t count = std::min<std::size_t>(channels - 8 * byte, 8);
                    const std::size_t at = tap % taps_per_run * bytes + byte;
                    const std::uint64_t eight = bits_at(bits, tap * channels + 8 * byte, count);
                    lines[at / kWord].words[filter % kBlock] |= eight << (at % kWord * 8);
                }
            }
        }
    }

    void find_positions() {
        const auto& [height, width] = convolution_.window;
        starts_.reserve(work_.units);
        for (std::size_t row = 0; row < height.positions; ++row) {
            for (std::size_t column = 0; column < width.positions; ++column) {
                starts_.push_back(static_cast<std::uint32_t>(map_.start(convolution_.window, row, column)));
            }
        }
    }

    // Of padding that is +1, and so like any input.
    void find_bases() {
        kinds_.assign(work_.units, 0);
        bases_.assign(work_.blocks * kBlock, static_cast<std::int32_t>(convolution_.taps()));
    }

    // Of padding that counts nothing: every +1 among the weights that see it is counted, and taken back here.
    void find_bases(const std::uint8_t* bits) {
        const auto& [height, width] = convolution_.window;
        const AxisKinds rows(height), columns(width);
        const std::size_t filters = work_.blocks * kBlock, channels = convolution_.group_channels();
        const std::size_t taps = static_cast<std::size_t>(convolution_.window.taps());
        kinds_.reserve(work_.units);
        for (const std::size_t row : rows.of) {
            for (const std::size_t column : columns.of) {
                kinds_.push_back(static_cast<std::uint32_t>((row * columns.seen.size() + column) * filters));
            }
        }
        bases_.resize(rows.seen.size() * columns.seen.size() * filters);
        // How many weights are +1 in the taps above and to the left of each.
        const std::size_t line = width.kernel + 1;
        std::vector<std::int32_t> ones((height.kernel + 1) * line);
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += (taps * channels + 7) / 8) {
            for (std::size_t tap = 0; tap < taps; ++tap) {
                std::int32_t here = 0;
                for (std::size_t channel = 0; channel < channels; ++channel) {
                    here += static_cast<std::int32_t>(bits_at(bits, tap * channels + channel, 1));
                }
                std::int32_t* at = ones.data() + (tap / width.kernel + 1) * line + tap % width.kernel + 1;
                at[0] =
                    here + at[-1] + at[-static_cast<std::ptrdiff_t>(line)] - at[-static_cast<std::ptrdiff_t>(line) - 1];
            }
            std::int32_t* base = bases_.data() + filter;
            for (const auto& [top, bottom] : rows.seen) {
                for (const auto& [left, right] : columns.seen) {
                    const std::int32_t in_seen = ones[bottom * line + right] - ones[top * line + right] -
                                                 ones[bottom * line + left] + ones[top * line + left];
                    const std::size_t seen = (bottom - top) * (right - left) * channels;
                    *base = static_cast<std::int32_t>(seen) + 2 * (ones.back() - in_seen);
                    base += filters;
                }
            }
        }
    }

    // Gets the input of a job's positions ready, if that is not done; false if the run has to end.
    bool prepare(const Job& job, const Scratch& scratch) const {
        const auto [first, end] = work_.to_prepare(job);
        if (first >= end) return true;
        const auto& [height, width] = convolution_.window;
        const std::size_t first_row = first / width.positions, end_row = (end - 1) / width.positions + 1;
        const bool goes_on = each_row_seen(height, first_row, end_row, [&](std::size_t row) {
            for (std::size_t group = 0; group < convolution_.groups; ++group) {
                if (job.is_stopped(map_.columns * map_.per_position / 8)) return false;
                make_row(job.input<std::uint64_t>(), group, row, scratch);
            }
            return true;
        });
        if (!goes_on) return false;
        for (std::size_t group = 0; group < convolution_.groups && !offset_.empty(); ++group) {
            const std::int32_t* position_sums = scratch.position_sums + group * map_.rows * map_.columns;
            for (std::size_t row = first_row; row < end_row; ++row) {
                if (job.is_stopped((height.kernel + 1) * map_.columns / 8)) return false;
                sum_windows(convolution_.window, map_.columns, position_sums, row, scratch.column_sums,
                            scratch.sums + group * work_.units + row * width.positions);
            }
        }
        return true;
    }

    // Makes a row of a group's padded map, and each position's sum.
    void make_row(const std::uint64_t* x, std::size_t group, std::size_t row, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::size_t left = map_.columns, right = map_.columns;  // the map's columns are between them
        if (row >= height.before && row - height.before < input.height) {
            left = std::min(width.before, map_.columns);
            right = std::min(width.before + input.width, map_.columns);
        }
        std::uint8_t* line = scratch.map + (group * map_.rows + row) * map_.columns * map_.per_position;
        std::int32_t* sums = scratch.position_sums + (group * map_.rows + row) * map_.columns;
        for (std::size_t column = 0; column < left; ++column) pad(line, column, sums);
        if (left < right) {
            const std::uint64_t* words = x + (row - height.before) * input.width * input.words();
            copy_positions(words, right - left, group, line + left * map_.per_position, sums + left);
        }
        for (std::size_t column = right; column < map_.columns; ++column) pad(line, column, sums);
    }

    // Copies a group's bits of positions side by side, and sums their signs.
    void copy_positions(const std::uint64_t* words, std::size_t positions, std::size_t group, std::uint8_t* to,
                        std::int32_t* sums) const {
        const Shape& input = convolution_.input;
        const std::size_t bytes = map_.per_position, channels = convolution_.group_channels();
        if (input.channels % 64 == 0 && convolution_.groups == 1) {
            std::memcpy(to, words, positions * bytes);
        } else {
            for (std::size_t i = 0; i < positions; ++i) {
                const auto* from = reinterpret_cast<const std::uint8_t*>(words + i * input.words());
                if (group * channels % 8 == 0 && channels % 8 == 0) {
                    std::memcpy(to + i * bytes, from + group * channels / 8, bytes);
                    continue;
                }
                for (std::size_t byte = 0; byte < bytes; ++byte) {
                    const std::size_t count = std::min<std::size_t>(channels - 8 * byte, 8);
                    to[i * bytes + byte] = static_cast<std::uint8_t>(bits_at(from, group * channels + 8 * byte, count));
                }
            }
        }
        if (offset_.empty()) return;
        if (convolution_.groups == 1) return kernels_.sum_signs(words, positions, channels, sums);
        for (std::size_t i = 0; i < positions; ++i) {
            std::int32_t ones = 0;
            for (std::size_t byte = 0; byte < bytes; byte += kWord) {
                std::uint64_t word[2] = {};
                std::memcpy(word, to + i * bytes + byte, std::min(bytes - byte, kWord));
                ones += static_cast<std::int32_t>(kernels_.count_differences(word, word + 1, 1));
            }
            sums[i] = 2 * ones - static_cast<std::int32_t>(channels);
        }
    }

    void pad(std::uint8_t* line, std::size_t column, std::int32_t* sums) const {
        const std::size_t channels = convolution_.group_channels();
        std::uint8_t* bytes = line + column * map_.per_position;
        std::memset(bytes, convolution_.pads_with_ones ? 0xff : 0, map_.per_position);
        sums[column] = 0;
        if (!convolution_.pads_with_ones) return;
        if (channels % 8 != 0) bytes[map_.per_position - 1] = static_cast<std::uint8_t>((1u << channels % 8) - 1);
        sums[column] = static_cast<std::int32_t>(channels);
    }

    const Kernels& kernels_;
    Convolution convolution_;  // its arrays are not looked at any more
    PaddedMap map_;            // in bytes
    Blocks work_;              // in positions
    std::vector<Line> weights_;
    std::vector<float> scale_, offset_, bias_;
    std::vector<std::uint32_t> starts_, kinds_, groups_;
    std::vector<std::int32_t> bases_;  // (kinds, filters up to a multiple of 64)
    EpilogueArrays epilogue_;
};

}  // namespace

// Where the kinds of positions times the filters are counted in 32 bits, and dot products are.
bool has_count_conv(const Kernels& kernels, const Convolution& convolution) {
    if (kernels.count_conv == nullptr) return false;
    if (convolution.groups > 1 && convolution.filters / convolution.groups % 8 != 0) return false;
    const std::uint64_t filters = (convolution.filters + kBlock - 1) / kBlock * kBlock;
    return convolution.window.extent() <= UINT32_MAX / convolution.input.channels &&
           convolution.taps() <= INT32_MAX / 4 && CountConv::count_kinds(convolution) <= UINT32_MAX / filters;
}

std::unique_ptr<Layer> make_count_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue) {
    if (!builder.budget.take(CountConv::bytes(convolution))) return nullptr;
    return std::make_unique<CountConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
