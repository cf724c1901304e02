#include <algorithm>
#include <cstring>

#include "../scratch.h"
#include "bits.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

// A convolution of signs: scale (s . x) + offset sum(x) + bias, both sums counted in bits.
class BitConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& convolution) {
        return convolution.filters * convolution.window.taps() * ((convolution.group_channels() + 63) / 64) *
                   sizeof(std::uint64_t) +
               3 * convolution.filters * sizeof(float);
    }

    BitConv(const Kernels& kernels, const Convolution& convolution, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(convolution),
          channels_(convolution.group_channels()),
          words_((channels_ + 63) / 64),
          taps_(static_cast<std::size_t>(convolution.window.taps())),
          bits_(convolution.filters * taps_ * words_),
          scale_(convolution.scale, convolution.scale + convolution.filters),
          epilogue_(epilogue) {
        pack(convolution.bits);
        if (convolution.offset != nullptr) offset_.assign(convolution.offset, convolution.offset + convolution.filters);
        if (convolution.bias != nullptr) bias_.assign(convolution.bias, convolution.bias + convolution.filters);
    }

    std::uint64_t pieces() const override { return convolution_.window.height.positions; }
    double work() const override {
        const double gathered = static_cast<double>(convolution_.window.positions()) * static_cast<double>(taps_);
        return convolution_.multiply_adds() + gathered * static_cast<double>(convolution_.input.channels);
    }
    bool is_general() const override {
        return convolution_.groups > 1 || kernels_.lut_conv != nullptr || kernels_.count_conv != nullptr;
    }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        const auto* x = job.input<std::uint64_t>();
        Carver carver(job.scratch);
        const auto [taps, values] = carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        const std::size_t group_filters = convolution_.filters / convolution_.groups,
                          columns = convolution_.window.width.positions;
        const std::uint64_t group_work = taps_ * (channels_ / 8 + words_ * group_filters) + 1;
        std::size_t position = job.from * columns;
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (std::size_t column = 0; column < columns; ++column, ++position) {
                for (std::size_t group = 0; group < convolution_.groups; ++group) {
                    if (job.is_stopped(group_work)) return;
                    const Seen seen = gather(x, row, column, group, taps);
                    for (std::size_t i = group * group_filters; i < (group + 1) * group_filters; ++i) {
                        values[i] = value(i, seen, taps);
                    }
                }
                run_epilogue(kernels_, epilogue, position, values);
            }
        }
    }

   private:
    // What lies under the window, tap after tap, and the numbers of a position.
    struct Scratch {
        std::uint64_t* taps;
        float* values;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<std::uint64_t>(std::uint64_t{taps_} * words_),
                carver.take<float>((convolution_.filters + 63) / 64 * 64)};
    }

    // A filter's bits, the channels of each tap in whole words. Where channels are whole bytes, bytes are copied.
    void pack(const std::uint8_t* bits) {
        const std::size_t row = (taps_ * channels_ + 7) / 8;
        for (std::size_t filter = 0; filter < convolution_.filters; ++filter, bits += row) {
            for (std::size_t tap = 0; tap < taps_; ++tap) {
                std::uint64_t* words = bits_.data() + (filter * taps_ + tap) * words_;
                if (channels_ % 8 == 0) {
                    std::memcpy(words, bits + tap * channels_ / 8, channels_ / 8);
                    continue;
                }
                for (std::size_t channel = 0; channel < channels_; channel += 8) {
                    const std::size_t count = std::min<std::size_t>(channels_ - channel, 8);
                    const std::uint64_t byte = bits_at(bits, tap * channels_ + channel, count);
                    words[channel / 64] |= byte << (channel % 64);
                }
            }
        }
    }

    // The taps that count: a part of the window's rows and columns.
    struct Seen {
        std::size_t top, bottom, left, right;
        std::int64_t signs;  // how many
        std::int64_t sum;    // of them
    };

    Seen gather(const std::uint64_t* x, std::size_t row, std::size_t column, std::size_t group,
                std::uint64_t* taps) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        const std::size_t top = height.first(row), bottom = height.end(row);
        const std::size_t left = width.first(column), right = width.end(column);
        if (convolution_.pads_with_ones) {
            for (std::size_t tap = 0; tap < taps_; ++tap) fill_with_ones(taps + tap * words_);
        }
        for (std::size_t i = top; i < bottom; ++i) {
            for (std::size_t j = left; j < right; ++j) {
                const std::size_t position = height.at(row, i) * input.width + width.at(column, j);
                copy_group(x + position * input.words(), group, taps + (i * width.kernel + j) * words_);
            }
        }
        Seen seen{top, bottom, left, right, 0, 0};
        if (convolution_.pads_with_ones) seen = {0, height.kernel, 0, width.kernel, 0, 0};
        const std::uint64_t none[1] = {0};
        std::int64_t ones = 0;
        for (std::size_t i = seen.top; i < seen.bottom; ++i) {
            for (std::size_t word = (i * width.kernel + seen.left) * words_;
                 word < (i * width.kernel + seen.right) * words_; ++word) {
                ones += kernels_.count_differences(taps + word, none, 1);
            }
        }
        seen.signs = static_cast<std::int64_t>((seen.bottom - seen.top) * (seen.right - seen.left) * channels_);
        seen.sum = 2 * ones - seen.signs;
        return seen;
    }

    void fill_with_ones(std::uint64_t* tap) const {
        std::fill(tap, tap + words_, ~std::uint64_t{0});
        if (channels_ % 64 != 0) tap[words_ - 1] = (std::uint64_t{1} << (channels_ % 64)) - 1;
    }

    // The signs of one group of channels at a position, from the first bit on.
    void copy_group(const std::uint64_t* position, std::size_t group, std::uint64_t* tap) const {
        if (convolution_.groups == 1) {
            std::copy(position, position + words_, tap);
            return;
        }
        std::fill(tap, tap + words_, std::uint64_t{0});
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(position);
        for (std::size_t i = 0; i < channels_; i += 8) {
            const std::size_t count = std::min<std::size_t>(channels_ - i, 8);
            tap[i / 64] |= std::uint64_t{bits_at(bytes, group * channels_ + i, count)} << (i % 64);
        }
    }

    float value(std::size_t filter, const Seen& seen, const std::uint64_t* taps) const {
        const std::uint64_t* bits = bits_.data() + filter * taps_ * words_;
        const std::size_t kernel = convolution_.window.width.kernel;
        std::int64_t differences = 0;
        if (seen.left == 0 && seen.right == kernel) {
            const std::size_t from = seen.top * kernel * words_;
            differences =
                kernels_.count_differences(taps + from, bits + from, (seen.bottom - seen.top) * kernel * words_);
        } else {
            for (std::size_t i = seen.top; i < seen.bottom; ++i) {
                const std::size_t from = (i * kernel + seen.left) * words_;
                differences += kernels_.count_differences(taps + from, bits + from, (seen.right - seen.left) * words_);
            }
        }
        float result = scale_[filter] * static_cast<float>(seen.signs - 2 * differences);
        if (!offset_.empty()) result = result + offset_[filter] * static_cast<float>(seen.sum);
        return bias_.empty() ? result : result + bias_[filter];
    }

    const Kernels& kernels_;
    Convolution convolution_;              // but for its arrays, which are not kept
    std::size_t channels_, words_, taps_;  // of a group; of a tap; of a filter
    std::vector<std::uint64_t> bits_;      // (filters, taps, words)
    std::vector<float> scale_, offset_, bias_;
    EpilogueArrays epilogue_;
};

}  // namespace

std::unique_ptr<Layer> make_bit_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue) {
    if (!builder.budget.take(BitConv::bytes(convolution))) return nullptr;
    return std::make_unique<BitConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
