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

// Signs that are taken of numbers: +1 where a number is at least the threshold, or, with `flip`, where it is not.
struct Signs {
    const float* threshold;
    const std::uint64_t* flip;  // a bit a filter
    std::uint64_t* out;         // (places, words)
};

constexpr std::size_t kMostSigns = 8;

// What becomes of a place's numbers, of up to 64 filters at a time: something is added; then signs of the sum are kept,
// and the sum itself after an activation. What has a number a filter is filled up with zeros to a multiple of 64.
struct Finish {
    std::size_t filters;
    const float* added;  // (places, filters), or null
    Signs signs[kMostSigns];
    std::size_t signs_count;
    float* real;         // (places, filters), or null
    const float* slope;  // of PReLU, or null
    float low, high;     // what real numbers are clamped to where there is no slope
};

// Two places that are done at once.
struct Pair {
    std::uint32_t start;          // where their top left tap stands in the input
    std::uint32_t first, second;  // their numbers; the same if there is only one
};

// A convolution of signs by tables, at some places and for up to 64 filters.
//
// The input is paired: for each 4 channels of a place it has 16 (17 a + b), where a is the 4 bits there, and b those
// that the pair's second place sees when its first sees a: that is where their row stands in a table. Padding has 16
// for its bits.
//
// Groups of 4 channels that stand side by side are taken six at a time, what is left of them two at a time: `sixes` and
// `twos` say where. The weights of 64 filters stand together, 64 bytes for two groups: a filter's byte has the first
// group in its lower half and the second in its upper. Of each 32 filters, number i stands at byte 2 i, or, from 16 on,
// at byte 2 (i - 16) + 1.
struct TableJob {
    const std::uint16_t* input;
    const Pair* pairs;
    std::size_t pair_count;
    const std::uint32_t *sixes, *twos;  // offsets from the top left tap
    std::size_t six_count, two_count;
    const std::uint8_t* weights;  // (3 six_count + two_count, 64), at a multiple of 32
    std::size_t first;            // the first filter, a multiple of 64
    const float* scale;           // of all filters, then zeros up to a multiple of 64
    const float* middle;          // likewise, or null
    const float* bias;            // likewise, or null
    const std::int16_t* bases;    // of each place: its dot product less twice its count of differing bits
    const std::int32_t* sums;     // of each place: the sum of its inputs; null if there is no middle
    const Finish* finish;
};

// A convolution of real numbers with one-bit weights, at some places and for up to 64 filters.
//
// The input has, for each 3 channels x, y, z of a place, the sums (x + y) + z, (x - y) + z, (x + y) - z, (x - y) - z. A
// filter's weights are a pattern for each: which sum it is in the lower 2 bits, and in the highest whether it is
// subtracted. Sums are added up in parts of kSumPart; a run ends a part.
struct SumJob {
    const float* input;
    const std::uint32_t* starts;  // where the top left tap of each place stands
    std::size_t first_place, places;
    const std::size_t* runs;  // offsets of taps that stand side by side, from the top left tap
    std::size_t run_count;
    std::size_t run_length;        // in groups of 3 channels
    const std::uint8_t* patterns;  // (blocks of 16 filters, runs * run_length, 16)
    std::size_t first;             // the first filter, a multiple of 64
    const float* scale;            // of all filters, then zeros up to a multiple of 64
    const float* middle;           // likewise, or null
    const float* bias;             // likewise, or null
    const float* sums;             // of each place: the sum of its inputs; null if there is no middle
    const Finish* finish;
};

constexpr std::size_t kSumPart = 96;

struct Kernels {
    const char* name;
    bool (*runs_here)();

    // How many bits of two rows differ.
    std::uint32_t (*count_differences)(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);
    // The sum of each place's signs, of `channels` that have so many words.
    void (*add_signs)(const std::uint64_t* words, std::size_t places, std::size_t channels, std::int32_t* sums);

    void (*add_up)(const Sum& sum);

    // Finishes n <= 64 filters from `first` on, a multiple of 64, of a place.
    void (*finish)(const Finish& finish, std::size_t place, std::size_t first, std::size_t n, const float* values);

    // Spreads bits to a byte for 4 of them; null, as what follows, where there are no tables.
    void (*spread)(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out);
    // out = 16 (17 a + b).
    void (*pair_up)(const std::uint8_t* a, const std::uint8_t* b, std::size_t count, std::uint16_t* out);
    void (*look_up)(const TableJob& job);

    // Makes the four sums of each 3 channels, the last ones filled up with zeros.
    void (*make_sums)(const float* x, std::size_t channels, float* out);
    void (*add_sums)(const SumJob& job);

    // The largest of `count` numbers in each of `channels` channels; of equal ones the first.
    void (*largest)(const float* const* x, std::size_t count, std::size_t channels, float* y);
};

// All sets that were built, the fastest first; the last one runs everywhere. Ends with a null pointer.
extern const Kernels* const kAllKernels[];

extern const Kernels kAvx2Kernels;
extern const Kernels kNeonKernels;
extern const Kernels kPortableKernels;

// The set of this name, or null if there is none, or if it does not run here; without a name, the fastest that runs.
const Kernels* find_kernels(const char* name);

}  // namespace dabnet
