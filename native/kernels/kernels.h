// The inner loops, one set for each kind of processor. Plain numbers and pointers only: files that are compiled for one
// kind of processor include this, and must not share templates or inline functions with others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// One row of places of a convolution of signs by tables, for all filters.
//
// The input is spread: each place has a byte for 4 channels, with twice their bits in it, or 32 where it is padding.
// The weights of 64 filters stand together, 64 bytes for two groups of 4 channels: a filter's byte has the first group
// in its lower half and the second in its upper. Of each 32 filters, number i stands at byte 2 i, or, from 16 on, at
// byte 2 (i - 16) + 1.
struct TableRow {
    const std::uint8_t* input;  // the top left tap of the first place
    std::size_t place_step;     // bytes from a place's taps to the next one's
    std::size_t places;
    const std::size_t* runs;  // offsets of taps that stand side by side, from a place's top left tap
    std::size_t run_count;
    std::size_t run_bytes;        // even
    const std::uint8_t* weights;  // (blocks of 64 filters, runs, run_bytes / 2, 64), at a multiple of 32
    std::size_t filters;
    const float* scale;         // of all filters, then zeros up to a multiple of 64
    const float* middle;        // likewise, or null
    const float* bias;          // likewise, or null
    const std::int32_t* bases;  // of each place: its dot product less twice its count of differing bits
    const std::int32_t* sums;   // of each place: the sum of its inputs; null if there is no middle
    float* output;              // (places, filters)
};

struct Kernels {
    const char* name;
    bool (*runs_here)();

    // How many bits of two rows differ.
    std::uint32_t (*count_differences)(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);

    // sums[i] += x * weights[i]
    void (*multiply_add)(float x, const float* weights, std::size_t n, float* sums);

    // Spreads bits to a byte for 4 of them, which holds twice their number; null where there are no tables.
    void (*spread)(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out);
    void (*table_row)(const TableRow& row);
};

// All sets that were built, the fastest first; the last one runs everywhere. Ends with a null pointer.
extern const Kernels* const kAllKernels[];

extern const Kernels kAvx2Kernels;
extern const Kernels kPortableKernels;

// The set of this name, or null if there is none, or if it does not run here; without a name, the fastest that runs.
const Kernels* find_kernels(const char* name);

}  // namespace dabnet
