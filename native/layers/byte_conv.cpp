#include <algorithm>
#include <cstring>

#include "../scratch.h"
#include "bits.h"
#include "blocks.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

constexpr std::size_t kRepeated = 8;      // bytes
constexpr std::size_t kLane = 32;         // filters that kernels take at once
constexpr std::size_t kMostSummed = 127;  // signs: sums have 8 bits
constexpr std::size_t kMostChannels = 8;  // of a group: of more, bits are counted sooner than bytes are summed

// A convolution of signs in groups of few channels, depthwise ones above all: scale (s . x) + offset sum(x) + bias,
// both sums of bytes. The padded map has, for each position and each channel of a group, a byte for every filter: the
// sign of its own group's channel. So filters are side by side, whatever group they belong to.
class ByteConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        const std::uint64_t length = length_of(convolution);
        return convolution.taps() * (length + sizeof(std::size_t)) + 3 * (length + kBlock) * sizeof(float);
    }

    ByteConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : spread_signs_(kernels.spread_signs != nullptr ? kernels.spread_signs : kPortableKernels.spread_signs),
          byte_conv_(kernels.byte_conv != nullptr ? kernels.byte_conv : kPortableKernels.byte_conv),
          convolution_(convolution),
          channels_(convolution.group_channels()),
          length_(length_of(convolution)),
          position_bytes_(channels_ * length_),
          columns_(convolution.window.width.extent()),
          weights_(static_cast<std::size_t>(convolution.taps()) * length_),
          scale_(filled_up(convolution.scale, convolution.filters)),
          offset_(filled_up(convolution.offset, convolution.filters)),
          bias_(filled_up(convolution.bias, convolution.filters)),
          epilogue_(epilogue) {
        make_weights(convolution.bits);
        find_offsets();
    }

    std::uint64_t pieces() const override { return convolution_.window.height.positions; }
    double work() const override {
        return convolution_.multiply_adds() + static_cast<double>(convolution_.window.extent()) *
                                                  static_cast<double>(position_bytes_ + convolution_.input.channels);
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        const auto& [height, width] = convolution_.window;
        Carver carver(job.scratch);
        const Scratch scratch = carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        ByteConvJob conv{};
        conv.step = width.stride * position_bytes_;
        conv.offsets = offsets_.data();
        conv.taps = offsets_.size();
        conv.weights = weights_.data();
        conv.length = length_;
        conv.scale = scale_.data();
        conv.offset = data_or_null(offset_);
        conv.bias = data_or_null(bias_);
        conv.epilogue = &epilogue;
        const std::uint64_t position_work = offsets_.size() * length_ / kLane + convolution_.filters;
        std::size_t next = 0;  // row of the map
        for (std::size_t row = job.from; row < job.to; ++row) {
            const std::size_t top = row * height.stride, end = top + (height.kernel - 1) * height.dilation + 1;
            for (next = std::max(next, top); next < end; ++next) {
                if (job.is_stopped(columns_ * position_bytes_ / 8)) return;
                make_row(job.input<std::uint64_t>(), next, scratch);
            }
            const std::size_t at_once = units_at_once(position_work);
            for (std::size_t column = 0; column < width.positions; column += at_once) {
                conv.positions = std::min(at_once, width.positions - column);
                if (job.is_stopped(conv.positions * position_work)) return;
                conv.first_position = row * width.positions + column;
                conv.input = scratch.map + top * columns_ * position_bytes_ + column * conv.step;
                byte_conv_(conv);
            }
        }
    }

   private:
    // The padded map, and the signs of a position before they stand with their filters.
    struct Scratch {
        std::int8_t *map, *signs;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<std::int8_t>(convolution_.window.extent() * position_bytes_ + kRepeated),
                carver.take<std::int8_t>(is_depthwise() ? 0 : convolution_.input.channels + kLane)};
    }

    // Whether bytes and channels are the same, one filter for each.
    bool is_depthwise() const { return channels_ == 1 && convolution_.filters == convolution_.input.channels; }

    static std::size_t length_of(const Convolution& convolution) {
        return (convolution.filters + kLane - 1) / kLane * kLane;
    }

    void make_weights(const std::uint8_t* bits) {
        const std::size_t taps = static_cast<std::size_t>(convolution_.taps()), row = (taps + 7) / 8;
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            for (std::size_t i = 0; i < taps; ++i) {
                weights_[i * length_ + filter] = bits_at(bits, i, 1) != 0 ? std::int8_t{1} : std::int8_t{-1};
            }
        }
    }

    // Where what a filter sees stands, from the top left tap.
    void find_offsets() {
        const auto& [height, width] = convolution_.window;
        for (std::size_t i = 0; i < height.kernel; ++i) {
            for (std::size_t j = 0; j < width.kernel; ++j) {
                const std::size_t position = i * height.dilation * columns_ + j * width.dilation;
                for (std::size_t channel = 0; channel < channels_; ++channel) {
                    offsets_.push_back(position * position_bytes_ + channel * length_);
                }
            }
        }
    }

    // Repeats each channel's sign for all filters of its group. Eight bytes are written at a time; those that are too
    // many are written again, or belong to no filter, or stand behind the map.
    void repeat_signs(const std::int8_t* signs, std::int8_t* bytes) const {
        const std::size_t filters = convolution_.filters / convolution_.groups;
        for (std::size_t channel = 0; channel < channels_; ++channel, bytes += length_) {
            for (std::size_t group = 0; group < convolution_.groups; ++group) {
                const std::int8_t sign = signs[group * channels_ + channel];
                std::int8_t* to = bytes + group * filters;
                if (filters > kRepeated) {
                    std::fill(to, to + filters, sign);
                    continue;
                }
                const std::uint64_t repeated = std::uint64_t{static_cast<std::uint8_t>(sign)} * 0x0101010101010101;
                std::memcpy(to, &repeated, kRepeated);
            }
        }
    }

    void make_row(const std::uint64_t* x, std::size_t row, const Scratch& scratch) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        const bool is_row_inside = row >= height.before && row - height.before < input.height;
        for (std::size_t column = 0; column < columns_; ++column) {
            std::int8_t* bytes = scratch.map + (row * columns_ + column) * position_bytes_;
            if (!is_row_inside || column < width.before || column - width.before >= input.width) {
                std::fill(bytes, bytes + position_bytes_,
                          convolution_.pads_with_ones ? std::int8_t{1} : std::int8_t{0});
                continue;
            }
            const std::size_t position = (row - height.before) * input.width + (column - width.before);
            const std::uint64_t* words = x + position * input.words();
            spread_signs_(words, input.channels, is_depthwise() ? bytes : scratch.signs);
            if (!is_depthwise()) repeat_signs(scratch.signs, bytes);
        }
    }

    decltype(Kernels::spread_signs) spread_signs_;
    decltype(Kernels::byte_conv) byte_conv_;
    Convolution convolution_;           // its arrays are not looked at any more
    std::size_t channels_;              // of a group
    std::size_t length_;                // filters, up to a multiple of kLane
    std::size_t position_bytes_;        // of the map
    std::size_t columns_;               // of the map
    std::vector<std::int8_t> weights_;  // (taps, channels of a group, length)
    std::vector<std::size_t> offsets_;
    std::vector<float> scale_, offset_, bias_;
    EpilogueArrays epilogue_;
};

}  // namespace

bool has_byte_conv(const Convolution& convolution) {
    return convolution.groups > 1 && convolution.group_channels() <= kMostChannels &&
           convolution.taps() <= kMostSummed && convolution.window.extent() <= UINT32_MAX / convolution.filters;
}

std::unique_ptr<Layer> make_byte_conv(const Builder& builder, const Convolution& convolution,
                                      const Epilogue& epilogue) {
    if (!builder.budget.take(ByteConv::bytes(convolution))) return nullptr;
    return std::make_unique<ByteConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
