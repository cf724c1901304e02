// A layer's weights to two values per filter and back: the passes that a training step makes over them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// A matrix of weights, one filter per row; strides count elements.
struct Filters {
    const float* data;
    std::size_t filters;
    std::size_t n;
    std::ptrdiff_t filter_stride;
    std::ptrdiff_t weight_stride;
};

// Masks are bytes, 0 or 1, and not bools: of those compilers make no vector code.

// Where the answers go: `alpha` is the mean of larger magnitude, the mask marks the weights that take it, k counts
// them.
struct SplitResults {
    double* alpha;       // (filters)
    double* beta;        // (filters)
    std::uint8_t* mask;  // (filters, n)
    std::int64_t* k;     // (filters)
    float* binary;       // (filters, n): alpha where the mask is set, beta elsewhere; null if nobody wants it
};

// Limits on the low group's size, one pair per filter; null pointers mean none.
struct LowCounts {
    const std::int64_t* least = nullptr;
    const std::int64_t* most = nullptr;
};

// Splits every filter on up to `threads` threads. Returns the first filter that is not finite, or -1.
std::int64_t split_filters(const Filters& filters, const LowCounts& limits, int threads, const SplitResults& out);

// Theorem 4: out = gradient * (1/size of the weight's group + |its value| where |weight| <= 1). All arrays are
// (filters, n) but the values, which are (filters).
struct PaperGradient {
    const float* gradient;
    const float* weights;
    const std::uint8_t* mask;
    const float* alpha;
    const float* beta;
    std::size_t filters;
    std::size_t n;
    float* out;
};
void paper_gradient(const PaperGradient& pass, int threads);

}  // namespace dabnet
