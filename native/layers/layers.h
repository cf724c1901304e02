// The layers of a packed network; src/dabnet/runtime/reference.py says what each computes. Shapes were checked. A maker
// returns null where the budget has no room for its layer.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../kernels/kernels.h"
#include "../network.h"
#include "window.h"

namespace dabnet {

// What layers are built with.
struct Builder {
    const Kernels& kernels;
    Budget& budget;
};

struct Convolution {
    Shape input;
    Window window;
    std::size_t filters;
    std::size_t groups;
    bool pads_with_ones;  // where its input is signs

    // Real weights, (filters, kernel height, kernel width, channels of a group) ...
    const float* weight;
    // ... or 8 bits each, and a scale, whose products are taken as real weights ...
    const std::int8_t* int8;
    // ... or one bit each, a row of bytes for each filter in the same order, and a scale.
    const std::uint8_t* bits;
    const float* scale;
    const float* offset;  // or null
    const float* bias;    // or null

    Shape output() const { return {filters, window.height.positions, window.width.positions}; }
    std::size_t group_channels() const { return input.channels / groups; }
    // A filter's weights.
    std::uint64_t taps() const { return window.taps() * group_channels(); }
    double multiply_adds() const { return static_cast<double>(output().count()) * static_cast<double>(taps()); }
};

// Any convolution. `pool` is a max-pool that comes after the epilogue's activation and before its late signs, of real
// weights only, or null.
std::unique_ptr<Layer> make_convolution(const Builder& builder, const Convolution& convolution,
                                        const Epilogue& epilogue, const Window* pool);

// The kinds of convolutions, each in a file of its own: of real numbers; of real numbers with one-bit weights, by sums
// of three channels; of real numbers in groups; of signs, by counting bits, one filter after
// the other or several at a time; of signs, by lookup tables; and of signs in groups of few channels, by adding bytes.
std::unique_ptr<Layer> make_float_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue,
                                       const Window* pool);
bool has_sum_conv(const Convolution& convolution);
std::unique_ptr<Layer> make_sum_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue);
std::unique_ptr<Layer> make_bit_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue);
bool has_lut_conv(const Kernels& kernels, const Convolution& convolution);
std::unique_ptr<Layer> make_lut_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue);
bool has_count_conv(const Kernels& kernels, const Convolution& convolution);
std::unique_ptr<Layer> make_count_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue);

bool has_group_conv(const Convolution& convolution);
std::unique_ptr<Layer> make_group_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue);
bool has_byte_conv(const Convolution& convolution);
std::unique_ptr<Layer> make_byte_conv(const Builder& builder, const Convolution& convolution, const Epilogue& epilogue);

// Of whole numbers: one by one, and by tables of the sums of 4 channels.
std::unique_ptr<Layer> make_whole_conv(const Builder& builder, const Convolution& convolution,
                                       const Epilogue& epilogue);
bool has_subset_conv(const Kernels& kernels, const Convolution& convolution);
std::unique_ptr<Layer> make_subset_conv(const Builder& builder, const Convolution& convolution,
                                        const Epilogue& epilogue);

// Whole numbers of real ones, and what is done with them.
std::unique_ptr<Layer> make_quantize(const Builder& builder, const Shape& input, float scale, float low, float high);
std::unique_ptr<Layer> make_whole_pool(const Builder& builder, const Shape& input, const Window& window);
std::unique_ptr<Layer> make_whole_concat(const Builder& builder, const std::vector<Shape>& inputs);

// `threshold` has a number for each channel, or is null for zeros; `flip` has a bit for each, or is null.
std::unique_ptr<Layer> make_sign(const Builder& builder, const Shape& input, const float* threshold,
                                 const std::uint8_t* flip);

// The same as a max-pool before the sign: +1 where a number under the window was at least the threshold, or, with
// `flip`, where none was.
std::unique_ptr<Layer> make_sign_pool(const Builder& builder, const Shape& input, const Window& window,
                                      const std::uint8_t* flip);
std::unique_ptr<Layer> make_sign_concat(const Builder& builder, const std::vector<Shape>& inputs);

std::unique_ptr<Layer> make_affine(const Builder& builder, const Shape& input, const float* scale, const float* shift);
std::unique_ptr<Layer> make_clamp(const Shape& input, float low, float high);
std::unique_ptr<Layer> make_prelu(const Builder& builder, const Shape& input, const float* slope);

std::unique_ptr<Layer> make_max_pool(const Builder& builder, const Shape& input, const Window& window);
std::unique_ptr<Layer> make_average_pool(const Builder& builder, const Shape& input, const Window& window,
                                         bool count_padding);
std::unique_ptr<Layer> make_adaptive_pool(const Builder& builder, const Shape& input, std::size_t height,
                                          std::size_t width, bool largest);

std::unique_ptr<Layer> make_add(const Shape& input);
std::unique_ptr<Layer> make_concat(const Builder& builder, const std::vector<Shape>& inputs);
std::unique_ptr<Layer> make_flatten(const Shape& input);

}  // namespace dabnet
