// A packed model as it was read and checked: what to compute, and nothing of how.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "../problem.h"
#include "../raster.h"
#include "../shape.h"

namespace dabnet {

constexpr std::size_t kLargestSide = 65535;  // channels, heights, widths, kernels and strides
constexpr std::size_t kMostNodes = 10000;

enum class Op : std::uint8_t {
    kConv,
    kSign,
    kQuantize,
    kAffine,
    kRelu,
    kClamp,
    kPrelu,
    kMaxPool,
    kAvgPool,
    kAdaptiveMaxPool,
    kAdaptiveAvgPool,
    kAdd,
    kConcat,
    kFlatten,
    kSignPool,   // of the plan only: a max-pool of bits,
    kWholePool,  // and one of whole numbers
};

const char* name_of(Op op);

// One node. Pairs are height, width; padding is top, left, bottom, right. Arrays that it has not are null.
struct Node {
    Op op = Op::kRelu;
    std::vector<std::uint32_t> inputs;
    std::string name;

    std::size_t kernel[2] = {1, 1}, stride[2] = {1, 1}, padding[4] = {0, 0, 0, 0}, dilation[2] = {1, 1};
    std::size_t size[2] = {0, 0};
    std::size_t filters = 0, groups = 1, pad_value = 0, count_padding = 0;
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    double factor = 1;  // of a quantize, whose file calls it "scale"

    const float* weight = nullptr;       // (filters, kernel height, kernel width, channels of a group)
    const std::int8_t* int8 = nullptr;   // the same in 8 bits, to be multiplied by `scale`
    const std::uint8_t* bits = nullptr;  // (filters, bytes)
    const float* scale = nullptr;        // (filters), or (channels) of an affine
    const float* offset = nullptr;       // (filters); the file calls it "middle"
    const float* bias = nullptr;         // (filters)
    const float* threshold = nullptr;    // (channels)
    const std::uint8_t* flip = nullptr;  // bits, one for each channel
    const float* shift = nullptr;        // (channels)
    const float* slope = nullptr;        // (channels)

    bool is_windowed() const {
        return op == Op::kConv || op == Op::kMaxPool || op == Op::kAvgPool || op == Op::kSignPool ||
               op == Op::kWholePool;
    }
    // What a quantize makes: its numbers go from low to high, and low is stored as 0.
    Shape quantized(const Shape& input) const {
        return input.as(high - low <= 15 ? ElementType::u4 : ElementType::u8, static_cast<std::uint8_t>(-low));
    }
    bool is_activation() const { return op == Op::kRelu || op == Op::kClamp || op == Op::kPrelu; }
};

struct Model {
    std::vector<Node> nodes;
    std::vector<Shape> shapes;  // of the input, and of what each node makes
    std::vector<std::string> labels;
    bool has_raster = false;
    Raster raster{};
    double temperature = 1;
    double views_temperature = 1;
    int version = 1;  // of the file's format

    std::vector<std::unique_ptr<float[]>> copies;  // of arrays that are not aligned in the file

    std::size_t answers() const { return static_cast<std::size_t>(shapes.back().count()); }
};

// Reads and checks a file. The model's arrays point into `bytes`, which have to outlive it.
bool read_model(const std::uint8_t* bytes, std::size_t size, Model& model, Problem& problem);

// The parts of it.
struct Container;
bool read_description(Container& container, Model& model, Problem& problem);

}  // namespace dabnet
