// The inner loops, one set for each kind of processor. Plain numbers and pointers only: files that are compiled for one
// kind of processor include this, and share templates only over a type of their own (vectors.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace dabnet {

// A number, and the weights of all filters that it is multiplied by.
struct Term {
    float x;
    const float* weights;
};

// sums = bias + the sum of all parts, each the sum of its terms; a long sum in parts loses less to rounding. `ends`
// says where in `terms` each part ends.
struct FloatConvJob {
    const Term* terms;
    const std::size_t* ends;
    std::size_t parts;
    std::size_t filters;
    const float* bias;
    float* sums;
};

// The same where the terms are known by bits: of each tap, whether its number is not 0. A word of them is a part.
struct InkConvJob {
    const std::uint64_t* ink;
    std::size_t parts;
    const float* x;              // all numbers of the map
    std::size_t first;           // where the top left tap stands among them, modulo what a size_t can hold
    const std::size_t* offsets;  // of each tap from there
    const float* weights;        // (taps, filters)
    std::size_t filters;
    const float* bias;
    float* sums;
};

// scale x + shift, each rounded; a scale of null is 1, and without a shift there is no affine at all.
struct AffineArrays {
    const float* scale;
    const float* shift;
};

// Signs of numbers: +1 where a number is at least the threshold, or, where `flip` has a bit, where it is not.
struct SignArrays {
    const float* threshold;
    const std::uint8_t* flip;  // one bit per filter
    std::uint64_t* out;        // (positions, words)
};

constexpr std::size_t kMostSigns = 8;

// Whole numbers of real ones: scale x, clamped, rounded to the nearest, of two the even one. A byte is the number less
// `low`.
struct Quantization {
    float scale, low, high;
    std::uint8_t* out;  // (positions, filters)
};

constexpr std::size_t kMostQuantized = 4;

// What is done with a convolution's numbers before they are written, from the plan to the kernel:
//
//     sum = number + added;  the first `early_signs` signs are taken of it
//     value = after(activation(before(sum)));  the other signs and all whole numbers are taken of that, and it is
//                                              written to `real`
//
// The plan fills in everything but `added`, `real` and `out`, which are a run's, and may leave arrays null; the kernels
// get arrays that are filled up with zeros to a multiple of 64 filters, none of them null but those that say so.
struct Epilogue {
    std::size_t filters = 0;
    bool adds = false;                                    // a second input
    bool makes_real = true;                               // and not only signs
    const float* added = nullptr;                         // (positions, filters), or null
    AffineArrays before{}, after{};                       // with null pointers if there is none
    const float* slope = nullptr;                         // of PReLU, or null
    float low = -std::numeric_limits<float>::infinity();  // what real numbers are clamped to where there is no slope
    float high = std::numeric_limits<float>::infinity();
    SignArrays signs[kMostSigns] = {};
    std::size_t signs_count = 0, early_signs = 0;
    Quantization quantized[kMostQuantized] = {};
    std::size_t quantized_count = 0;
    float* real = nullptr;  // (positions, filters), or null
};

// Two positions that are computed together.
struct Pair {
    std::uint32_t start;          // where their top left tap is in the input
    std::uint32_t first, second;  // their numbers; the same if there is only one
};

// A convolution of signs by lookup tables, at some positions and for up to 64 filters.
//
// It works on nibbles, the bits of 4 channels. The input is paired: for each nibble a of a position it has
// 16 (17 a + b), where b is the nibble that the pair's second position sees when its first sees a. That is the offset
// of their row in the table. Padding has 16 for its nibble.
//
// Nibbles that lie side by side are taken six at a time, what is left of them two at a time: `sixes` and `twos` say
// where. The weights of 64 filters lie together, 64 bytes for two nibbles: a filter's byte has the first nibble in its
// lower half and the second in its upper. Of each 32 filters, number i is at byte 2 i, or, from 16 on, at byte
// 2 (i - 16) + 1.
struct LutConvJob {
    const std::uint16_t* input;
    const Pair* pairs;
    std::size_t pair_count;
    const std::uint32_t *sixes, *twos;  // offsets from the top left tap
    std::size_t six_count, two_count;
    const std::uint8_t* weights;  // (3 six_count + two_count, 64), at a multiple of 32
    std::size_t first_filter;     // a multiple of 64
    const float* scale;           // of all filters, then zeros up to a multiple of 64
    const float* offset;          // likewise, or null
    const float* bias;            // likewise, or null
    const std::int16_t* bases;    // of each position: its dot products are base - 2 (count of differing bits)
    const std::int32_t* sums;     // of each position: the sum of its inputs; null if there is no offset
    const Epilogue* epilogue;
};

// A convolution of signs by counting the bits of words, at some positions and for up to 64 filters.
//
// The input has each position's bits in whole bytes. What stands side by side is a run, in words of 64 bits; of the
// last one of a run only some bits count. Channels in groups have a map for each group; 8 filters are of the same
// group.
struct CountConvJob {
    const std::uint8_t* input;
    const std::uint32_t* groups;  // of each 8 filters, from the first of all on; null if there is only one
    std::size_t group_bytes;      // from one group's map to the next
    std::size_t group_positions;  // from one group's sums to the next
    const std::uint32_t* starts;  // where the top left tap of each position stands
    std::size_t first_position, positions;
    const std::size_t* runs;  // offsets of taps that stand side by side, from the top left tap
    std::size_t run_count;
    std::size_t run_words;         // of a run
    std::uint64_t last;            // the bits of a run's last word that count
    const std::uint64_t* weights;  // (run_count * run_words, 64), at a multiple of 64 bytes
    std::size_t first_filter;      // a multiple of 64
    const float* scale;            // of all filters, then zeros up to a multiple of 64
    const float* offset;           // likewise, or null
    const float* bias;             // likewise, or null
    const std::int32_t* bases;     // dot products are base - 2 (count of differing bits); for each filter, up to a
                                   // multiple of 64, and each kind of position
    const std::uint32_t* kinds;    // of each position: where its bases start
    const std::int32_t* sums;      // of each group and position: the sum of its inputs; null if there is no offset
    const Epilogue* epilogue;
};

// A convolution of real numbers with one-bit weights, at some positions and for up to 64 filters.
//
// The input has, for each triple of channels x, y, z of a position, the sums (x + y) + z, (x - y) + z, (x + y) - z,
// (x - y) - z, and then their opposites, if the set wants 8 sums. A filter's weights are a pattern for each: which sum
// it is in the lower 2 bits, and in the third and the highest whether it is subtracted. Sums are added up in parts of
// kSumPart; a run ends a part.
struct SumConvJob {
    const float* input;
    const std::uint32_t* starts;  // where the top left tap of each position stands
    std::size_t first_position, positions;
    const std::size_t* runs;  // offsets of taps that stand side by side, from the top left tap
    std::size_t run_count;
    std::size_t run_length;        // in triples of channels
    const std::uint8_t* patterns;  // (blocks of 16 filters, runs * run_length, 16)
    std::size_t first_filter;      // a multiple of 64
    const float* scale;            // of all filters, then zeros up to a multiple of 64
    const float* offset;           // likewise, or null
    const float* bias;             // likewise, or null
    const float* sums;             // of each position: the sum of its inputs; null if there is no offset
    const Epilogue* epilogue;
};

constexpr std::size_t kSumPart = 96;

// A convolution of whole numbers with one-bit weights, at some positions and for up to 64 filters:
//
//     dot = 2 (sum of the inputs whose weight is +1) - (sum of all inputs), which is exact
//     number = (scale dot + offset (sum of all inputs)) + bias
//
// Inputs are bytes, of which `zero` stands for 0, padding included. They come as tables: for each 4 channels of a
// position a row of 16 bytes, the sums of the channels that each of the 16 patterns of weights has. Four such sums of
// numbers up to 15 fit in a byte. Numbers of 8 bits are two numbers of 4 bits, the tables of the upper halves in a
// second plane.
//
// Rows that stand side by side are a run; a run has an even number of them. The weights of 64 filters stand together as
// for a LutConvJob.
//
// Wide tables, of the sets that have them, are four such tables in a row of 64 bytes. With numbers of 4 bits these are
// of 16 channels; with 8 bits, of the lower and upper halves of 4 channels, then of 4 others. The weights of a filter
// are 4 bytes for each row, which look up one in each table: 16 times the table's number, plus the pattern.
struct SubsetConvJob {
    const std::uint8_t* tables;
    std::size_t plane;            // bytes from the lower halves to the upper ones; 0 if there are none, or wide tables
    bool has_halves;              // numbers of 8 bits
    const std::uint32_t* starts;  // the row of each position's top left tap
    std::size_t first_position, positions;
    const std::size_t* runs;  // the rows at which runs start, from the top left tap
    std::size_t run_count;
    std::size_t run_length;             // in rows
    const std::uint8_t* weights;        // (runs * run_length / 2, 64), or (runs * run_length, 256), at a multiple of 64
    std::size_t first_filter;           // a multiple of 64
    const float* scale;                 // of all filters, then zeros up to a multiple of 64
    const float* offset;                // likewise, or null
    const float* bias;                  // likewise, or null
    const std::int32_t* byte_sums;      // of each position: the sum of the bytes that it sees
    const std::int32_t* filter_shifts;  // of each filter: what its dot product of bytes is too large by, or null for 0
    std::int32_t sum_shift;             // what a position's sum of bytes is too large by
    const Epilogue* epilogue;
};

// A convolution of signs in small groups, at positions that follow one another in a row. Each byte of the input is +1,
// -1, or 0 where there is padding; `length` of them, one for each filter, stand together.
struct ByteConvJob {
    const std::int8_t* input;  // where the top left tap of the first position stands
    std::size_t step;          // from one position to the next
    std::size_t first_position, positions;
    const std::size_t* offsets;  // from the top left tap
    std::size_t taps;            // at most 127
    const std::int8_t* weights;  // (taps, length), +1 or -1
    std::size_t length;          // the filters, up to a multiple of 32
    const float* scale;          // of all filters, then zeros up to a multiple of 64
    const float* offset;         // likewise, or null
    const float* bias;           // likewise, or null
    const Epilogue* epilogue;
};

// A convolution of real numbers in which every filter has numbers of its own: bias + the sum of all parts, each the sum
// of its products. At positions that follow one another in a row and see the same taps.
struct DepthwiseConvJob {
    const float* const* x;        // of each tap, the numbers of all filters at the first position
    const float* const* weights;  // of each tap, those of all filters, then zeros up to a multiple of 64
    const std::size_t* ends;      // where each part ends among the taps
    std::size_t parts;            // at least one
    std::size_t step;             // from one position's numbers to the next one's
    const float* bias;            // as the weights
    std::size_t first_position, positions;
    const Epilogue* epilogue;
};

struct Kernels {
    const char* name;
    bool (*runs_here)();

    // How many bits of two rows differ.
    std::uint32_t (*count_differences)(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);
    // The sum of each position's signs, of `channels` that have so many words.
    void (*sum_signs)(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums);

    void (*float_conv)(const FloatConvJob& job);

    // Runs the epilogue for n <= 64 filters of a position, from `first` on, a multiple of 64; `values` are theirs.
    void (*float_epilogue)(const Epilogue& epilogue, std::size_t position, std::size_t first, std::size_t n,
                           const float* values);

    // Spreads bits: a byte for each nibble. Null, like the next two, where the set has no lut_conv.
    void (*spread_bits)(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out);
    // out = 16 (17 a + b).
    void (*pair_nibbles)(const std::uint8_t* a, const std::uint8_t* b, std::size_t count, std::uint16_t* out);
    void (*lut_conv)(const LutConvJob& job);

    // Makes the sums of each triple of channels, the last one filled up with zeros, of positions side by side.
    void (*make_sums)(const float* x, std::size_t positions, std::size_t channels, float* out);
    void (*sum_conv)(const SumConvJob& job);

    // Makes the tables of positions of so many channels, filled up with zeros to a multiple of 8, and the sum of each
    // position's bytes; `upper` is null for numbers of 4 bits. Null, as what follows, where there are no tables.
    void (*make_subset_sums)(const std::uint8_t* bytes, std::size_t positions, std::size_t channels,
                             std::uint8_t* lower, std::uint8_t* upper, std::int32_t* sums);
    void (*subset_conv)(const SubsetConvJob& job);

    // The largest of `count` numbers in each of `channels` channels; of equal ones the first.
    void (*float_max)(const float* const* x, std::size_t count, std::size_t channels, float* y);

    // What follows is null where a set has nothing faster than the portable one.

    // Makes a byte of each sign, +1 or -1; what comes after the channels, up to a multiple of 32, may be anything.
    void (*spread_signs)(const std::uint64_t* words, std::size_t channels, std::int8_t* out) = nullptr;
    void (*byte_conv)(const ByteConvJob& job) = nullptr;
    void (*depthwise_conv)(const DepthwiseConvJob& job) = nullptr;

    // Null where bits are counted by count_differences. A set that has lut_conv takes this for groups only.
    void (*count_conv)(const CountConvJob& job) = nullptr;

    // As make_subset_sums, but wide tables; channels are filled up to whole rows. Where a set has this, its subset_conv
    // takes wide tables.
    void (*make_wide_sums)(const std::uint8_t* bytes, std::size_t positions, std::size_t channels, bool has_halves,
                           std::uint8_t* tables, std::int32_t* sums) = nullptr;

    // As float_conv; null where that is as fast.
    void (*ink_conv)(const InkConvJob& job) = nullptr;

    // The largest of `count` bytes, each in a row of `length`.
    void (*byte_max)(const std::uint8_t* const* x, std::size_t count, std::size_t length, std::uint8_t* y) = nullptr;

    // How many sums of a triple make_sums makes and sum_conv takes: 4, or 8 with their opposites.
    std::size_t sums_per_triple = 4;
};

// What the AVX-512 set has of the AVX2 one, since wider registers would gain nothing.
namespace avx2 {
std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words);
void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums);
void spread_signs(const std::uint64_t* words, std::size_t channels, std::int8_t* out);
void byte_conv(const ByteConvJob& job);
}  // namespace avx2

// All sets that were built, the fastest first; the last one runs everywhere. Ends with a null pointer.
extern const Kernels* const kAllKernels[];

extern const Kernels kAvx512Kernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kNeonKernels;
extern const Kernels kWasmKernels;
extern const Kernels kPortableKernels;

// The set of this name, or null if there is none, or if it does not run here; without a name, the fastest that runs.
const Kernels* find_kernels(const char* name);

}  // namespace dabnet
