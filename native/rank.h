// From logits to labels with calibrated probabilities.
#pragma once

#include <cstddef>
#include <vector>

namespace dabnet {

// softmax(logits / temperature), in float64.
std::vector<double> probabilities(const float* logits, std::size_t count, double temperature);

// The indices of the `top` largest, the largest first; of equal ones, the first.
std::vector<std::size_t> rank(const std::vector<double>& values, std::size_t top);

}  // namespace dabnet
