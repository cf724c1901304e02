// The inner loops, one set for each kind of processor.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

struct Kernels {
    const char* name;
    bool (*runs_here)();

    // How many bits of two rows differ.
    std::uint32_t (*count_differences)(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);

    // sums[i] += x * weights[i]
    void (*multiply_add)(float x, const float* weights, std::size_t n, float* sums);
};

// All sets that were built, the fastest first; the last one runs everywhere. Ends with a null pointer.
extern const Kernels* const kAllKernels[];

extern const Kernels kPortableKernels;

// The set of this name, or null if there is none, or if it does not run here; without a name, the fastest that runs.
const Kernels* find_kernels(const char* name);

}  // namespace dabnet
