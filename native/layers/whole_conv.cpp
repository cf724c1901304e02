#include <algorithm>

#include "../scratch.h"
#include "bits.h"
#include "epilogue.h"
#include "layers.h"

namespace dabnet {
namespace {

// A convolution of whole numbers with one-bit weights, product by product:
// (scale (s . x) + offset sum(x)) + bias, both sums in integers.
class WholeConv : public Layer {
   public:
    static std::uint64_t bytes(const Convolution& of) {
        return of.filters * of.taps() + 3 * of.filters * sizeof(float);
    }

    WholeConv(const Kernels& kernels, const Convolution& of, const Epilogue& epilogue)
        : kernels_(kernels),
          convolution_(of),
          channels_(of.group_channels()),
          taps_(static_cast<std::size_t>(of.taps())),
          signs_(of.filters * taps_),
          scale_(of.scale, of.scale + of.filters),
          epilogue_(epilogue) {
        const std::size_t row = (taps_ + 7) / 8;
        for (std::size_t filter = 0; filter < of.filters; ++filter) {
            for (std::size_t i = 0; i < taps_; ++i) {
                signs_[filter * taps_ + i] = bits_at(of.bits + filter * row, i, 1) != 0 ? 1 : -1;
            }
        }
        if (of.offset != nullptr) offset_.assign(of.offset, of.offset + of.filters);
        if (of.bias != nullptr) bias_.assign(of.bias, of.bias + of.filters);
    }

    std::uint64_t pieces() const override { return convolution_.window.height.positions; }
    double work() const override {
        const double gathered = static_cast<double>(convolution_.window.positions()) * static_cast<double>(taps_);
        return convolution_.multiply_adds() + gathered * static_cast<double>(convolution_.groups);
    }
    bool is_general() const override { return convolution_.groups > 1 || kernels_.subset_conv != nullptr; }
    std::uint64_t scratch_bytes() const override {
        Carver carver;
        carve(carver);
        return carver.bytes();
    }

    void run(const Job& job) const override {
        Carver carver(job.scratch);
        const auto [taps, values] = carve(carver);
        const Epilogue epilogue = epilogue_.bind(job);
        const std::size_t group_filters = convolution_.filters / convolution_.groups,
                          columns = convolution_.window.width.positions;
        std::size_t position = job.from * columns;
        for (std::size_t row = job.from; row < job.to; ++row) {
            for (std::size_t column = 0; column < columns; ++column, ++position) {
                for (std::size_t group = 0; group < convolution_.groups; ++group) {
                    if (job.is_stopped(taps_ * (group_filters + 1))) return;
                    gather(job.input<std::uint8_t>(), row, column, group, taps);
                    make(group * group_filters, (group + 1) * group_filters, taps, values);
                }
                run_epilogue(kernels_, epilogue, position, values);
            }
        }
    }

   private:
    // The numbers under the window, and those of a position.
    struct Scratch {
        std::int16_t* taps;
        float* values;
    };
    Scratch carve(Carver& carver) const {
        return {carver.take<std::int16_t>(taps_), carver.take<float>((convolution_.filters + 63) / 64 * 64)};
    }

    void gather(const std::uint8_t* x, std::size_t row, std::size_t column, std::size_t group,
                std::int16_t* taps) const {
        const auto& [height, width] = convolution_.window;
        const Shape& input = convolution_.input;
        std::fill(taps, taps + taps_, std::int16_t{0});
        for (std::size_t i = height.first(row); i < height.end(row); ++i) {
            for (std::size_t j = width.first(column); j < width.end(column); ++j) {
                const std::size_t position = height.at(row, i) * input.width + width.at(column, j);
                const std::uint8_t* from = x + position * input.channels + group * channels_;
                std::int16_t* to = taps + (i * width.kernel + j) * channels_;
                for (std::size_t c = 0; c < channels_; ++c) to[c] = static_cast<std::int16_t>(from[c] - input.zero);
            }
        }
    }

    void make(std::size_t first, std::size_t end, const std::int16_t* taps, float* values) const {
        std::int32_t sum = 0;
        for (std::size_t i = 0; i < taps_; ++i) sum += taps[i];
        for (std::size_t filter = first; filter < end; ++filter) {
            const std::int8_t* signs = signs_.data() + filter * taps_;
            std::int32_t dot = 0;
            for (std::size_t i = 0; i < taps_; ++i) dot += signs[i] * taps[i];
            float value = scale_[filter] * static_cast<float>(dot);
            if (!offset_.empty()) value = value + offset_[filter] * static_cast<float>(sum);
            values[filter] = bias_.empty() ? value : value + bias_[filter];
        }
    }

    const Kernels& kernels_;
    Convolution convolution_;         // its arrays are not looked at any more
    std::size_t channels_, taps_;     // of a group; of a filter
    std::vector<std::int8_t> signs_;  // (filters, taps)
    std::vector<float> scale_, offset_, bias_;
    EpilogueArrays epilogue_;
};

}  // namespace

std::unique_ptr<Layer> make_whole_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue) {
    if (!builder.budget.take(WholeConv::bytes(convolution))) return nullptr;
    return std::make_unique<WholeConv>(builder.kernels, convolution, epilogue);
}

}  // namespace dabnet
