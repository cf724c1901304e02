// The layers of a packed network; src/dabnet/packed/model.py says what each computes, and has checked all shapes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "../kernels/kernels.h"
#include "../network.h"
#include "finish.h"
#include "window.h"

namespace dabnet {

// A convolution of real numbers. Its weights arrive as (filters, kernel height, kernel width, channels of a group).
std::unique_ptr<Layer> make_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                        const Window& window, std::size_t filters, std::size_t groups,
                                        const float* weights, const float* bias, const Followers& followers);

// One-bit weights: a row of bytes a filter, in the same order, then `scale`, and `middle` and `bias` or null pointers.
struct OneBitWeights {
    const std::uint8_t* bits;
    const float* scale;
    const float* middle;
    const float* bias;
};

// Of real numbers: by sums of three channels, or, where there are groups, as any convolution.
std::unique_ptr<Layer> make_one_bit_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                                const Window& window, std::size_t filters, std::size_t groups,
                                                const OneBitWeights& weights, const Followers& followers);

bool has_sums(const Shape& input, const Window& window, std::size_t groups);
std::unique_ptr<Layer> make_sum_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                            const Window& window, std::size_t filters, const OneBitWeights& weights,
                                            const Followers& followers);

// Of signs: scale (s . x) + middle sum(x) + bias, both sums counted in bits.
std::unique_ptr<Layer> make_binary_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                               const Window& window, std::size_t filters, std::size_t groups,
                                               bool pad_with_ones, const OneBitWeights& weights,
                                               const Followers& followers);

// The same by tables, where the kernels have them and the filters are not too large.
bool has_tables(const Kernels& kernels, const Shape& input, const Window& window, std::size_t groups);
std::unique_ptr<Layer> make_table_convolution(const Kernels& kernels, Budget& budget, const Shape& input,
                                              const Window& window, std::size_t filters, bool pad_with_ones,
                                              const OneBitWeights& weights, const Followers& followers);

// `threshold` has a number a channel, or is null for zeros; `flip` has a bit a channel, or is null.
std::unique_ptr<Layer> make_sign(const Kernels& kernels, Budget& budget, const Shape& input, const float* threshold,
                                 const std::uint8_t* flip);

// The same as a max-pool before the sign: +1 where a number under the window was at least the threshold, or, with
// `flip`, where none was.
std::unique_ptr<Layer> make_sign_pool(Budget& budget, const Shape& input, const Window& window,
                                      const std::uint8_t* flip);
std::unique_ptr<Layer> make_sign_concat(Budget& budget, const std::vector<Shape>& inputs);

std::unique_ptr<Layer> make_affine(Budget& budget, const Shape& input, const float* scale, const float* shift);
std::unique_ptr<Layer> make_clamp(const Shape& input, float low, float high);
std::unique_ptr<Layer> make_prelu(Budget& budget, const Shape& input, const float* slope);

std::unique_ptr<Layer> make_max_pool(const Kernels& kernels, const Shape& input, const Window& window);
std::unique_ptr<Layer> make_average_pool(const Kernels& kernels, const Shape& input, const Window& window,
                                         bool count_padding);
std::unique_ptr<Layer> make_adaptive_pool(const Kernels& kernels, const Shape& input, std::size_t down,
                                          std::size_t across, bool largest);

std::unique_ptr<Layer> make_add(const Shape& input);
std::unique_ptr<Layer> make_concat(Budget& budget, const std::vector<Shape>& inputs);
std::unique_ptr<Layer> make_flatten(const Shape& input);

}  // namespace dabnet
