#include "rank.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dabnet {

std::vector<double> probabilities(const float* logits, std::size_t count, double temperature) {
    const double most = *std::max_element(logits, logits + count);
    std::vector<double> weights(count);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += weights[i] = std::exp((logits[i] - most) / temperature);
    for (double& weight : weights) weight /= sum;
    return weights;
}

std::vector<std::size_t> rank(const std::vector<double>& values, std::size_t top) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    top = std::min(top, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(top), order.end(),
        [&](std::size_t a, std::size_t b) { return values[a] != values[b] ? values[a] > values[b] : a < b; });
    order.resize(top);
    return order;
}

}  // namespace dabnet
