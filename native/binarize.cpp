#include "binarize.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "parallel.h"
#include "split_search.h"
#include "values.h"

namespace dabnet {
namespace {

std::uint32_t as_bits(float value) {
    std::uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

float as_float(std::uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

std::uint32_t all_ones_if(std::uint32_t condition) { return -condition; }

// One of two floats, chosen by bits that are all ones or all zeros: compilers make vector code of it, where a
// conditional becomes a jump that nobody can foretell.
struct Choice {
    Choice(float yes, float no) : no_bits(as_bits(no)), difference(as_bits(yes) ^ no_bits) {}
    std::uint32_t operator()(std::uint32_t ones_for_yes) const { return no_bits ^ (difference & ones_for_yes); }
    std::uint32_t no_bits, difference;
};

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
    const double alpha = alpha_is_high ? split.high_mean : split.low_mean;
    const double beta = alpha_is_high ? split.low_mean : split.high_mean;
    const Choice value(static_cast<float>(alpha), static_cast<float>(beta));
    std::uint8_t* mask = out.mask + row * filters.n;
    float* binary = out.binary == nullptr ? nullptr : out.binary + row * filters.n;
    constexpr std::size_t kBlock = 512;  // so that a mask is still at hand when its values are written
    for (std::size_t start = 0; start < filters.n; start += kBlock) {
        const std::size_t end = std::min(filters.n, start + kBlock);
        for (std::size_t i = start; i < end; ++i) mask[i] = (weights[i] >= split.threshold) == alpha_is_high;
        if (binary == nullptr) continue;
        for (std::size_t i = start; i < end; ++i) binary[i] = as_float(value(all_ones_if(mask[i])));
    }
    out.alpha[row] = alpha;
    out.beta[row] = beta;
    out.k[row] = static_cast<std::int64_t>(alpha_is_high ? filters.n - split.low_count : split.low_count);
    return true;
}

// How many threads to share so many weights among. Waking one costs about as much as splitting a few thousand.
int worthwhile(int threads, std::size_t filters, std::size_t n) {
    constexpr std::size_t kWeightsPerThread = 1 << 15;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const bool shared = filters > 1 && filters * n >= kWeightsPerThread;
    return shared ? static_cast<int>(std::min(static_cast<std::size_t>(threads), cores)) : 1;
}

// One row of the paper's gradient. It is a product with one of four numbers: by the weight's group, and by whether it
// is within [-1, 1].
void paper_gradient_row(const float* gradient, const float* weights, const std::uint8_t* mask, float alpha, float beta,
                        std::size_t n, float* out) {
    std::uint32_t k = 0;
    for (std::size_t i = 0; i < n; ++i) k += mask[i];
    const float share_alpha = 1.0f / static_cast<float>(std::max(k, 1u));
    const float share_beta = 1.0f / static_cast<float>(std::max<std::size_t>(n - k, 1));
    const Choice share(share_alpha, share_beta);
    const Choice whole(share_alpha + std::fabs(alpha), share_beta + std::fabs(beta));
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint32_t group = all_ones_if(mask[i]);
        const std::uint32_t inside = all_ones_if(std::fabs(weights[i]) <= 1);
        out[i] = gradient[i] * as_float((whole(group) & inside) | (share(group) & ~inside));
    }
}

}  // namespace

std::int64_t split_filters(const Filters& filters, const LowCounts& limits, int threads, const SplitResults& out) {
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> first_bad{filters.filters};
    work_together(worthwhile(threads, filters.filters, filters.n), [&] {
        SplitSearch search;
        std::vector<float> copy;
        for (std::size_t row = next++; row < filters.filters; row = next++) {
            if (split_filter(filters, limits, row, search, copy, out)) continue;
            std::size_t bad = first_bad;
            while (row < bad && !first_bad.compare_exchange_weak(bad, row)) {
            }
        }
    });
    return first_bad < filters.filters ? static_cast<std::int64_t>(first_bad) : -1;
}

void paper_gradient(const PaperGradient& pass, int threads) {
    std::atomic<std::size_t> next{0};
    work_together(worthwhile(threads, pass.filters, pass.n), [&] {
        for (std::size_t row = next++; row < pass.filters; row = next++) {
            const std::size_t start = row * pass.n;
            paper_gradient_row(pass.gradient + start, pass.weights + start, pass.mask + start, pass.alpha[row],
                               pass.beta[row], pass.n, pass.out + start);
        }
    });
}

}  // namespace dabnet
