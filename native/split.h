// The optimal split of all filters of a layer, on several threads.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// A matrix of weights, one filter a row; strides count elements.
struct Filters {
    const float* data;
    std::size_t filters;
    std::size_t n;
    std::ptrdiff_t filter_stride;
    std::ptrdiff_t weight_stride;
};

// Where the answers go: `alpha` is the mean of larger magnitude, the mask marks the weights that take it, k counts
// them.
struct SplitResults {
    double* alpha;    // (filters)
    double* beta;     // (filters)
    bool* mask;       // (filters, n)
    std::int64_t* k;  // (filters)
};

// Limits on the low group's size, one pair a filter; null pointers mean none.
struct LowCounts {
    const std::int64_t* least = nullptr;
    const std::int64_t* most = nullptr;
};

// Splits every filter on up to `threads` threads. Returns the first filter that is not finite, or -1.
std::int64_t split_filters(const Filters& filters, const LowCounts& limits, int threads, const SplitResults& out);

}  // namespace dabnet
