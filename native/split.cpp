#include "split.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <thread>
#include <vector>

#include "split_search.h"
#include "values.h"

namespace dabnet {
namespace {

// Splits one filter and writes its row of the results. Returns false if a weight is not finite.
bool split_filter(const Filters& filters, const LowCounts& limits, std::size_t row, SplitSearch& search,
                  std::vector<float>& copy, const SplitResults& out) {
    const float* weights = filters.data + static_cast<std::ptrdiff_t>(row) * filters.filter_stride;
    if (filters.weight_stride != 1) {
        grow(copy, filters.n);
        for (std::size_t i = 0; i < filters.n; ++i) {
            copy[i] = weights[static_cast<std::ptrdiff_t>(i) * filters.weight_stride];
        }
        weights = copy.data();
    }
    Split split;
    const bool finite = limits.least == nullptr
                            ? search.find(weights, filters.n, split)
                            : search.find_within(weights, filters.n, static_cast<std::size_t>(limits.least[row]),
                                                 static_cast<std::size_t>(limits.most[row]), split);
    if (!finite) return false;

    // Means of equal magnitude: the high one is the positive one.
    const bool alpha_is_high = std::fabs(split.high_mean) >= std::fabs(split.low_mean);
    bool* mask = out.mask + row * filters.n;
    if (alpha_is_high) {
        for (std::size_t i = 0; i < filters.n; ++i) mask[i] = weights[i] >= split.threshold;
    } else {
        for (std::size_t i = 0; i < filters.n; ++i) mask[i] = weights[i] < split.threshold;
    }
    out.alpha[row] = alpha_is_high ? split.high_mean : split.low_mean;
    out.beta[row] = alpha_is_high ? split.low_mean : split.high_mean;
    out.k[row] = static_cast<std::int64_t>(alpha_is_high ? filters.n - split.low_count : split.low_count);
    return true;
}

}  // namespace

std::int64_t split_filters(const Filters& filters, const LowCounts& limits, int threads, const SplitResults& out) {
    // Starting a thread costs about as much as splitting this many weights.
    constexpr std::size_t kWeightsAThread = 1 << 15;
    const std::size_t worthwhile = filters.filters * filters.n / kWeightsAThread + 1;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t workers = std::min({static_cast<std::size_t>(threads), worthwhile, filters.filters, cores});

    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> first_bad{filters.filters};
    const auto work = [&] {
        SplitSearch search;
        std::vector<float> copy;
        for (std::size_t row = next++; row < filters.filters; row = next++) {
            if (split_filter(filters, limits, row, search, copy, out)) continue;
            std::size_t bad = first_bad;
            while (row < bad && !first_bad.compare_exchange_weak(bad, row)) {
            }
        }
    };
    std::vector<std::future<void>> helpers;
    for (std::size_t i = 1; i < workers; ++i) helpers.push_back(std::async(std::launch::async, work));
    work();
    for (auto& helper : helpers) helper.get();
    return first_bad < filters.filters ? static_cast<std::int64_t>(first_bad) : -1;
}

}  // namespace dabnet
