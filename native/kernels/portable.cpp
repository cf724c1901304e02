// Plain C++ for any processor, and the oracle that the other sets are tested against.
#include "kernels.h"

namespace dabnet {
namespace {

bool runs_here() { return true; }

// Ones are added up in pairs of bits, then in fours, then in bytes, and the bytes by one product.
std::uint32_t count_ones(std::uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<std::uint32_t>(word * 0x0101010101010101 >> 56);
}

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < words; ++i) count += count_ones(a[i] ^ b[i]);
    return count;
}

void multiply_add(float x, const float* weights, std::size_t n, float* sums) {
    for (std::size_t i = 0; i < n; ++i) sums[i] += x * weights[i];
}

}  // namespace

const Kernels kPortableKernels{"portable", runs_here, count_differences, multiply_add, nullptr, nullptr};

}  // namespace dabnet
