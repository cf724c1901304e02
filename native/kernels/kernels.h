// The inner loops, one set for each kind of processor. Plain numbers and pointers only: files that are compiled for one
// kind of processor include this, and must not share templates or inline functions with others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// A number, and the weights of all filters that it is multiplied by.
struct Term {
    float x;
    const float* weights;
};

// sums = bias + the sum of all parts, each the sum of its terms; a long sum in parts loses less to rounding. `ends`
// says where in `terms` each part ends.
struct Sum {
    const Term* terms;
    const std::size_t* ends;
    std::size_t parts;
    std::size_t filters;
    const float* bias;
    float* sums;
};

// What becomes of a place's numbers, of up to 64 filters at a time: something is added; then the sum's signs are kept,
// and the sum itself after an activation. What has a number a filter is filled up with zeros to a multiple of 64.
struct Finish {
    std::size_t filters;
    const float* added;         // (places, filters), or null
    std::uint64_t* signs;       // (places, words), or null
    const float* threshold;     // of signs: +1 where the number is at least this
    const std::uint64_t* flip;  // of signs, a bit a filter: the other way round
    float* real;                // (places, filters), or null
    const float* slope;         // of PReLU, or null
    float low, high;            // what real numbers are clamped to where there is no slope
};

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
    std::size_t first_place;    // the number of the first place in what is finished
    const Finish* finish;
};

struct Kernels {
    const char* name;
    bool (*runs_here)();

    // How many bits of two rows differ.
    std::uint32_t (*count_differences)(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);

    void (*add_up)(const Sum& sum);

    // Finishes n <= 64 filters from `first` on, a multiple of 64, of a place.
    void (*finish)(const Finish& finish, std::size_t place, std::size_t first, std::size_t n, const float* values);

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
