// For x86 processors with AVX-512, VPOPCNTDQ, VBMI and VNNI. As x86_avx2.cpp, it shares no template or inline function
// with others, but for those over `Lanes` (vectors.h). docs/kernels.md explains it.
//
// Signs are counted: 8 filters in a register, a word of 64 channels of each, which takes an XOR, a `vpopcntq` and an
// addition for 512 products. Whole numbers are looked up: `vpermb` looks 64 bytes up in a table of 64, which is four
// tables of 16.
#ifdef DABNET_AVX512

#include <immintrin.h>

#include <cstring>

#include "kernels.h"
#include "vectors.h"
#include "x86_features.h"

namespace dabnet {
namespace {

constexpr std::size_t kSums = 8;  // of a triple of real numbers

// These also ask whether the system saves the wide registers.
bool runs_here() { return x86_has_avx512(); }

// The first `count` of 16 numbers.
inline __mmask16 first_of(std::size_t count) {
    return static_cast<__mmask16>(count < 16 ? (1u << count) - 1 : 0xffffu);
}

// The terms of a part of a sum: visit(x, weights) gets each of them.
template <typename Visit>
inline __attribute__((always_inline)) void each_term(const FloatConvJob& job, std::size_t part, Visit visit) {
    for (std::size_t term = part == 0 ? 0 : job.ends[part - 1]; term < job.ends[part]; ++term) {
        visit(job.terms[term].x, job.terms[term].weights);
    }
}
template <typename Visit>
inline __attribute__((always_inline)) void each_term(const InkConvJob& job, std::size_t part, Visit visit) {
    for (std::uint64_t ink = job.ink[part]; ink != 0; ink &= ink - 1) {
        const std::size_t tap = 64 * part + static_cast<std::size_t>(__builtin_ctzll(ink));
        visit(job.x[job.first + job.offsets[tap]], job.weights + tap * job.filters);
    }
}

// As the portable one, for 16 * `Sixteens` filters from `first` on, of the last 16 only some; the sums of a part are in
// registers.
template <int Sixteens, typename Job>
void masked_conv_block(const Job& job, std::size_t first, __mmask16 last) {
    const auto some = [&](int i) { return i + 1 < Sixteens ? static_cast<__mmask16>(0xffff) : last; };
    __m512 sums[Sixteens];
    for (int i = 0; i < Sixteens; ++i) sums[i] = _mm512_maskz_loadu_ps(some(i), job.bias + first + 16 * i);
    for (std::size_t part = 0; part < job.parts; ++part) {
        __m512 inner[Sixteens];
        for (int i = 0; i < Sixteens; ++i) inner[i] = _mm512_setzero_ps();
        each_term(job, part, [&](float number, const float* weights) __attribute__((always_inline)) {
            const __m512 x = _mm512_set1_ps(number);
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) {
                const __m512 weight = _mm512_maskz_loadu_ps(some(i), weights + first + 16 * i);
                inner[i] = _mm512_add_ps(inner[i], _mm512_mul_ps(x, weight));
            }
        });
        for (int i = 0; i < Sixteens; ++i) sums[i] = _mm512_add_ps(sums[i], inner[i]);
    }
    for (int i = 0; i < Sixteens; ++i) _mm512_mask_storeu_ps(job.sums + first + 16 * i, some(i), sums[i]);
}

template <typename Job>
void masked_conv(const Job& job) {
    std::size_t filter = 0;
    for (; filter + 64 <= job.filters; filter += 64) masked_conv_block<4>(job, filter, 0xffff);
    for (; filter + 32 <= job.filters; filter += 32) masked_conv_block<2>(job, filter, 0xffff);
    for (; filter < job.filters; filter += 16) masked_conv_block<1>(job, filter, first_of(job.filters - filter));
}

// The numbers of 16 filters.
struct Lanes {
    using Floats = __m512;
    static constexpr std::size_t kFloats = 16;
    static constexpr bool kUnrolls = true;
    static constexpr bool kMasks = true;

    static Floats load(const float* numbers) { return _mm512_loadu_ps(numbers); }
    static Floats load(const float* numbers, std::size_t count) {
        return _mm512_maskz_loadu_ps(first_of(count), numbers);
    }
    static void store(float* numbers, std::size_t count, Floats values) {
        _mm512_mask_storeu_ps(numbers, first_of(count), values);
    }
    static Floats splat(float number) { return _mm512_set1_ps(number); }
    static Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
    static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
    static Floats clamp(Floats x, Floats low, Floats high) { return _mm512_min_ps(_mm512_max_ps(x, low), high); }
    static Floats above_zero(Floats x, Floats below) {
        return _mm512_mask_mov_ps(below, _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GT_OQ), x);
    }
    static std::uint64_t at_least(Floats x, Floats y) { return _mm512_cmp_ps_mask(x, y, _CMP_GE_OQ); }
    static DABNET_INLINE void quantize(const Quantization& job, std::size_t at, std::size_t count, Floats x) {
        const Floats low = splat(job.low), value = clamp(mul(splat(job.scale), x), low, splat(job.high));
        const __m512i numbers = _mm512_sub_epi32(_mm512_cvtps_epi32(value), _mm512_cvtps_epi32(low));
        _mm_mask_storeu_epi8(job.out + at, first_of(count), _mm512_cvtepi32_epi8(numbers));
    }
};

// Keeps a number in its register: g++ would load a table once for each use, and reorder long sums until they do not
// fit.
inline __attribute__((always_inline)) __m512i pinned(__m512i number) {
    asm("" : "+v"(number));
    return number;
}

// The differing bits of `Positions` positions and 8 * `Eights` filters, 64 bits of 8 filters in a register.
template <int Positions, int Eights, bool Grouped>
struct CountTile {
    __m512i counts[Positions][Eights];

    inline __attribute__((always_inline)) void run(const CountConvJob& job, std::size_t position) {
        __m512i sums[Positions][Eights];
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
#pragma GCC unroll 8
            for (int i = 0; i < Eights; ++i) sums[p][i] = _mm512_setzero_si512();
        }
        const std::uint64_t* weights = job.weights;
        std::size_t maps[Eights] = {};
        for (int i = 0; Grouped && i < Eights; ++i) {
            maps[i] = job.group_bytes * job.groups[job.first_filter / 8 + static_cast<std::size_t>(i)];
        }
        for (std::size_t run = 0; run < job.run_count; ++run) {
            const std::uint8_t* at[Positions];
#pragma GCC unroll 8
            for (int p = 0; p < Positions; ++p) {
                at[p] = job.input + job.starts[position + static_cast<std::size_t>(p)] + job.runs[run];
            }
            for (std::size_t word = 1; word < job.run_words; ++word, weights += 64) {
                add(at, maps, weights, sums, [](__m512i weight, __m512i x) __attribute__((always_inline)) {
                    return _mm512_xor_si512(weight, x);
                });
            }
            const __m512i last = _mm512_set1_epi64(static_cast<long long>(job.last));
            add(at, maps, weights, sums, [&](__m512i weight, __m512i x) __attribute__((always_inline)) {
                return _mm512_ternarylogic_epi64(weight, x, last, 0x28);  // (weight ^ x) & last
            });
            weights += 64;
        }
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
#pragma GCC unroll 8
            for (int i = 0; i < Eights; ++i) counts[p][i] = sums[p][i];
        }
    }

    static inline __attribute__((always_inline)) __m512i word_at(const std::uint8_t* at) {
        long long word;
        std::memcpy(&word, at, sizeof word);
        return pinned(_mm512_set1_epi64(word));
    }

    // Adds the differing bits of the next word.
    template <typename Differ>
    static inline __attribute__((always_inline)) void add(const std::uint8_t** at, const std::size_t* maps,
                                                          const std::uint64_t* weights, __m512i (*sums)[Eights],
                                                          Differ differ) {
        __m512i x[Positions];
#pragma GCC unroll 8
        for (int p = 0; p < Positions && !Grouped; ++p) x[p] = word_at(at[p]);
#pragma GCC unroll 8
        for (int i = 0; i < Eights; ++i) {
            const __m512i weight = pinned(_mm512_load_si512(weights + 8 * i));
#pragma GCC unroll 8
            for (int p = 0; p < Positions; ++p) {
                const __m512i different = differ(weight, Grouped ? word_at(at[p] + maps[i]) : x[p]);
                sums[p][i] = pinned(_mm512_add_epi64(sums[p][i], _mm512_popcnt_epi64(different)));
            }
        }
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) at[p] += 8;
    }
};

// The dot products of 16 filters, from the counts of each 8.
inline __attribute__((always_inline)) __m512 dots_of(const __m512i* counts, const std::int32_t* bases) {
    const __m512i halves = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i count = _mm512_permutex2var_epi32(counts[0], halves, counts[1]);
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(_mm512_loadu_si512(bases), _mm512_add_epi32(count, count)));
}

template <typename Kind>
void epilogue_of_counts(const CountConvJob& shared, std::size_t position, std::size_t n, const __m512i* counts) {
    const CountConvJob job = shared;  // which is known not to change by what is written
    const __m512 sum = _mm512_set1_ps(job.offset == nullptr ? 0.0f : static_cast<float>(job.sums[position]));
    const std::int32_t* bases = job.bases + job.kinds[position] + job.first_filter;
    run_epilogue<Lanes, Kind>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            return scaled<Lanes>(job, job.first_filter + i, dots_of(counts + i / 8, bases + i), sum);
        });
}

// The same where each 8 filters have sums of their own, those of their group.
void epilogue_of_grouped_counts(const CountConvJob& job, std::size_t position, std::size_t n, const __m512i* counts) {
    const std::int32_t* bases = job.bases + job.kinds[position] + job.first_filter;
    const auto sum = [&](std::size_t eight) {
        return _mm512_set1_ps(static_cast<float>(job.sums[job.groups[eight] * job.group_positions + position]));
    };
    run_epilogue<Lanes, AnyEpilogue<>>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            const std::size_t filter = job.first_filter + i;
            const __m512 sums = _mm512_mask_mov_ps(sum(filter / 8), 0xff00, sum(filter / 8 + 1));
            return scaled<Lanes>(job, filter, dots_of(counts + i / 8, bases + i), sums);
        });
}

using CountsEpilogue = void (*)(const CountConvJob& job, std::size_t position, std::size_t n, const __m512i* counts);

CountsEpilogue choose_counts_epilogue(const Epilogue& epilogue) {
    return choose_after_signs<Lanes>(epilogue,
                                     [](auto kind) -> CountsEpilogue { return epilogue_of_counts<decltype(kind)>; });
}

template <int Positions, int Eights, bool Grouped>
void run_count_tile(const CountConvJob& job, std::size_t position, std::size_t n, CountsEpilogue epilogue_at) {
    CountTile<Positions, Eights, Grouped> tile;
    tile.run(job, position);
    for (std::size_t i = 0; i < Positions; ++i) epilogue_at(job, position + i, n, tile.counts[i]);
}

template <int Positions, int Eights, bool Grouped = false>
void count_conv_tiles(const CountConvJob& job, std::size_t n) {
    const CountsEpilogue epilogue_at =
        Grouped && job.offset != nullptr ? epilogue_of_grouped_counts : choose_counts_epilogue(*job.epilogue);
    std::size_t position = job.first_position;
    const std::size_t end = position + job.positions;
    for (; position + Positions <= end; position += Positions) {
        run_count_tile<Positions, Eights, Grouped>(job, position, n, epilogue_at);
    }
    for (; position < end; ++position) run_count_tile<1, Eights, Grouped>(job, position, n, epilogue_at);
}

void count_conv(const CountConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    if (job.groups != nullptr) {
        return n > 32 ? count_conv_tiles<2, 8, true>(job, n) : count_conv_tiles<4, 4, true>(job, n);
    }
    if (n > 32) return count_conv_tiles<2, 8>(job, n);
    n > 16 ? count_conv_tiles<4, 4>(job, n) : count_conv_tiles<7, 2>(job, n);
}

// The sums of 4 triples at a time, and their opposites.
void make_sums(const float* channels, std::size_t positions, std::size_t count, float* out) {
    const __m512i x = _mm512_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3, 6, 6, 6, 6, 9, 9, 9, 9), one = _mm512_set1_epi32(1);
    const __m512i y = _mm512_add_epi32(x, one), z = _mm512_add_epi32(y, one);
    const __m512i first_two = _mm512_setr_epi32(0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7);
    const __m512i last_two = _mm512_add_epi32(first_two, _mm512_set1_epi32(8));
    const __m512 minus = _mm512_set1_ps(-0.0f);
    const __m512 minus_y = _mm512_maskz_mov_ps(0xaaaa, minus), minus_z = _mm512_maskz_mov_ps(0xcccc, minus),
                 opposite = _mm512_maskz_mov_ps(0xf0f0, minus);
    const auto make = [&](__m512 some, __m512& lower, __m512& upper) __attribute__((always_inline)) {
        const __m512 sum =
            _mm512_add_ps(_mm512_permutexvar_ps(x, some), _mm512_xor_ps(_mm512_permutexvar_ps(y, some), minus_y));
        const __m512 sums = _mm512_add_ps(sum, _mm512_xor_ps(_mm512_permutexvar_ps(z, some), minus_z));
        lower = _mm512_xor_ps(_mm512_permutexvar_ps(first_two, sums), opposite);
        upper = _mm512_xor_ps(_mm512_permutexvar_ps(last_two, sums), opposite);
    };
    const std::size_t left = count % 12, sums_left = (left + 2) / 3 * kSums;
    __m512 lower, upper;
    for (; positions != 0; --positions) {
        for (std::size_t i = left; i < count; i += 12, channels += 12, out += 32) {
            make(_mm512_maskz_loadu_ps(0xfff, channels), lower, upper);
            _mm512_storeu_ps(out, lower);
            _mm512_storeu_ps(out + 16, upper);
        }
        make(_mm512_maskz_loadu_ps(first_of(left), channels), lower, upper);
        _mm512_mask_storeu_ps(out, first_of(sums_left), lower);
        _mm512_mask_storeu_ps(out + 16, first_of(sums_left > 16 ? sums_left - 16 : 0), upper);
        channels += left;
        out += sums_left;
    }
}

// The patterns of a part as `vpermps` wants them, in 32 bits: spread once for several positions.
struct alignas(64) SpreadPatterns {
    std::uint32_t of[kSumPart][64];  // by triple and filter

    void fill(const std::uint8_t* patterns, std::size_t block, std::size_t triples, std::size_t sixteens) {
        for (std::size_t triple = 0; triple < triples; ++triple) {
            for (std::size_t i = 0; i < sixteens; ++i) {
                const auto* bytes = reinterpret_cast<const __m128i*>(patterns + i * block + 16 * triple);
                _mm512_store_si512(of[triple] + 16 * i, _mm512_cvtepu8_epi32(_mm_loadu_si128(bytes)));
            }
        }
    }
};

// Adds a part to the totals of `Positions` positions, and 16 * `Sixteens` filters: `vpermps` picks one of a triple's
// sums and their opposites for each of 16 filters. Every second sum is added by a multiply-add with 1, which comes to
// the same number: that keeps other units of the processor busy than additions do.
template <int Positions, int Sixteens>
inline __attribute__((always_inline)) void add_sum_part(const float* const* starts, std::size_t triples,
                                                        const SpreadPatterns& patterns, __m512 (*totals)[4]) {
    __m512 one = _mm512_set1_ps(1);
    asm("" : "+v"(one));  // or the compiler would make additions of them
    const float* taps[Positions];
    __m512 part[Positions][Sixteens];
#pragma GCC unroll 8
    for (int p = 0; p < Positions; ++p) {
        taps[p] = starts[p];
#pragma GCC unroll 4
        for (int i = 0; i < Sixteens; ++i) part[p][i] = _mm512_setzero_ps();
    }
    for (std::size_t triple = 0; triple < triples; ++triple) {
        __m512i which[Sixteens];
#pragma GCC unroll 4
        for (int i = 0; i < Sixteens; ++i) which[i] = _mm512_load_si512(patterns.of[triple] + 16 * i);
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
            const __m512 sums = _mm512_castps256_ps512(_mm256_loadu_ps(taps[p] + kSums * triple));
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) {
                const __m512 sum = _mm512_permutexvar_ps(which[i], sums);
                part[p][i] = (p + i) % 2 == 0 ? _mm512_add_ps(part[p][i], sum) : _mm512_fmadd_ps(sum, one, part[p][i]);
            }
        }
    }
#pragma GCC unroll 8
    for (int p = 0; p < Positions; ++p) {
#pragma GCC unroll 4
        for (int i = 0; i < Sixteens; ++i) totals[p][i] = _mm512_add_ps(totals[p][i], part[p][i]);
    }
}

template <typename Kind>
void epilogue_of_sums(const SumConvJob& shared, std::size_t position, std::size_t n, const __m512* totals) {
    const SumConvJob job = shared;  // which is known not to change by what is written
    const __m512 sum = _mm512_set1_ps(job.offset == nullptr ? 0.0f : job.sums[position]);
    run_epilogue<Lanes, Kind>(*job.epilogue, position, job.first_filter, n,
                              [&](std::size_t i) __attribute__((always_inline)) {
                                  return scaled<Lanes>(job, job.first_filter + i, totals[i / 16], sum);
                              });
}

using SumsEpilogue = void (*)(const SumConvJob& job, std::size_t position, std::size_t n, const __m512* totals);

// A few positions from `first` on, `Positions` at a time; the epilogue comes when their last part is added.
constexpr std::size_t kSumPositions = 32;

template <int Positions, int Sixteens>
void sum_conv_at(const SumConvJob& job, std::size_t first, std::size_t count, std::size_t n, SumsEpilogue epilogue_at) {
    SpreadPatterns spread;
    __m512 totals[kSumPositions][4];
    std::memset(totals, 0, count * sizeof totals[0]);
    const std::uint8_t* patterns = job.patterns;
    const std::size_t block = job.run_count * job.run_length * 16;
    for (std::size_t run = 0; run < job.run_count; ++run) {
        for (std::size_t from = 0, triples; from < job.run_length; from += triples, patterns += 16 * triples) {
            triples = job.run_length - from < kSumPart ? job.run_length - from : kSumPart;
            const bool is_last = run + 1 == job.run_count && from + triples == job.run_length;
            spread.fill(patterns, block, triples, Sixteens);
            const float* taps[kSumPositions];
            for (std::size_t i = 0; i < count; ++i) {
                taps[i] = job.input + job.starts[first + i] + job.runs[run] + kSums * from;
            }
            for (std::size_t i = 0, end; i < count; i = end) {
                end = i + Positions <= count ? i + Positions : i + 1;
                end - i == Positions ? add_sum_part<Positions, Sixteens>(taps + i, triples, spread, totals + i)
                                     : add_sum_part<1, Sixteens>(taps + i, triples, spread, totals + i);
                for (std::size_t p = i; p < end && is_last; ++p) epilogue_at(job, first + p, n, totals[p]);
            }
        }
    }
}

template <int Positions, int Sixteens>
void sum_conv_tiles(const SumConvJob& job, std::size_t n) {
    const SumsEpilogue epilogue_at =
        makes_only_real<Lanes>(*job.epilogue) ? epilogue_of_sums<OnlyReal> : epilogue_of_sums<AnyEpilogue<>>;
    for (std::size_t done = 0, count; done < job.positions; done += count) {
        count = job.positions - done < kSumPositions ? job.positions - done : kSumPositions;
        sum_conv_at<Positions, Sixteens>(job, job.first_position + done, count, n, epilogue_at);
    }
}

void sum_conv(const SumConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    if (n > 32) return sum_conv_tiles<4, 4>(job, n);
    n > 16 ? sum_conv_tiles<8, 2>(job, n) : sum_conv_tiles<8, 1>(job, n);
}

// A pattern's sum is that of its first two channels, plus that of its last two. Of 64 bytes, this says which one is
// either: the numbers of 16 channels stand there, then at even bytes the sums of each two; or those of the lower halves
// of 8 channels, then their sums, then the same of upper halves. A pattern without both channels has no bit in
// `is_any`.
struct WideIndices {
    alignas(64) std::uint8_t of[2][64] = {};
    std::uint64_t is_any[2] = {};
    constexpr explicit WideIndices(bool has_halves) {
        for (int two = 0; two < 2; ++two) {
            for (int i = 0; i < 64; ++i) {
                const int table = i / 16, pattern = i % 16 >> 2 * two & 3;
                const int first = (has_halves ? table % 2 * 16 + table / 2 * 4 : table * 4) + 2 * two;
                const int sums = has_halves ? 8 : 16;
                of[two][i] = static_cast<std::uint8_t>(first + (pattern == 3 ? sums : pattern == 2 ? 1 : 0));
                is_any[two] |= std::uint64_t{pattern != 0} << i;
            }
        }
    }
};
constexpr WideIndices kWideIndices[] = {WideIndices(false), WideIndices(true)};

inline std::int32_t sum_bytes(const std::uint8_t* bytes, std::size_t count) {
    __m512i sum = _mm512_setzero_si512();
    for (std::size_t i = 0; i < count; i += 64) {
        const __mmask64 some = count - i < 64 ? (__mmask64{1} << (count - i)) - 1 : ~__mmask64{0};
        const __m512i numbers = _mm512_maskz_loadu_epi8(some, bytes + i);
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(numbers, _mm512_setzero_si512()));
    }
    return static_cast<std::int32_t>(_mm512_reduce_add_epi64(sum));
}

// Rows of 64 bytes, of 16 channels, or of the halves of 8.
template <bool HasHalves>
void make_wide_sums_of(const std::uint8_t* bytes, std::size_t positions, std::size_t channels, std::uint8_t* tables,
                       std::int32_t* sums) {
    constexpr std::size_t kChannels = HasHalves ? 8 : 16;
    constexpr const WideIndices& indices = kWideIndices[HasHalves];
    const __m512i first = _mm512_load_si512(indices.of[0]), second = _mm512_load_si512(indices.of[1]);
    const auto put = [&](__m128i some, std::uint8_t* table) __attribute__((always_inline)) {
        __m512i numbers = HasHalves ? _mm512_broadcastq_epi64(some) : _mm512_broadcast_i32x4(some);
        if (HasHalves) {
            numbers = _mm512_mask_srli_epi16(numbers, 0x0000ff00, numbers, 4);
            numbers = _mm512_and_si512(numbers, _mm512_set1_epi8(15));
        }
        numbers =
            _mm512_mask_add_epi8(numbers, HasHalves ? 0xff00ff00 : 0xffff0000, numbers, _mm512_srli_epi16(numbers, 8));
        _mm512_store_si512(table, _mm512_add_epi8(_mm512_maskz_permutexvar_epi8(indices.is_any[0], first, numbers),
                                                  _mm512_maskz_permutexvar_epi8(indices.is_any[1], second, numbers)));
    };
    for (std::size_t position = 0; position < positions; ++position, bytes += channels) {
        std::size_t c = 0;
        for (; c + kChannels <= channels; c += kChannels, tables += 64) {
            const auto* whole = reinterpret_cast<const __m128i*>(bytes + c);
            put(HasHalves ? _mm_loadl_epi64(whole) : _mm_loadu_si128(whole), tables);
        }
        if (c < channels) {
            put(_mm_maskz_loadu_epi8(first_of(channels - c), bytes + c), tables);
            tables += 64;
        }
        sums[position] = sum_bytes(bytes, channels);
    }
}

void make_wide_sums(const std::uint8_t* bytes, std::size_t positions, std::size_t channels, bool has_halves,
                    std::uint8_t* tables, std::int32_t* sums) {
    has_halves ? make_wide_sums_of<true>(bytes, positions, channels, tables, sums)
               : make_wide_sums_of<false>(bytes, positions, channels, tables, sums);
}

// The sums of `Positions` positions and 16 * `Sixteens` filters.
//
// A byte that was looked up is at most 60, so four of them add up in a byte. A filter's four bytes, one of each table,
// are then added to its sum of 32 bits, those of upper halves 16 times.
template <int Positions, int Sixteens>
struct SubsetTile {
    // Adds rows that start at each position's `at`; those of the weights are 256 bytes apart, the sums of positions 4.
    static inline __attribute__((always_inline)) void run(const std::uint8_t* const* starts, std::size_t rows,
                                                          const std::uint8_t* weights, __m512i factors, __m512i* sums) {
        const std::uint8_t* at[Positions];
        __m512i all[Positions][Sixteens];
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
            at[p] = starts[p];
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) all[p][i] = sums[4 * p + i];
        }
        std::size_t row = 0;
        for (; row + 4 <= rows; row += 4, weights += 4 * 256) add<4>(at, 64 * row, weights, factors, all);
        for (; row < rows; ++row, weights += 256) add<1>(at, 64 * row, weights, factors, all);
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) sums[4 * p + i] = all[p][i];
        }
    }

    template <int Rows>
    static inline __attribute__((always_inline)) void add(const std::uint8_t* const* at, std::size_t offset,
                                                          const std::uint8_t* weights, __m512i factors,
                                                          __m512i (*all)[Sixteens]) {
        __m512i part[Positions][Sixteens];
#pragma GCC unroll 4
        for (int row = 0; row < Rows; ++row) {
            __m512i weight[Sixteens];
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) weight[i] = _mm512_load_si512(weights + 256 * row + 64 * i);
#pragma GCC unroll 8
            for (int p = 0; p < Positions; ++p) {
                const __m512i table = pinned(_mm512_load_si512(at[p] + offset + 64 * static_cast<std::size_t>(row)));
#pragma GCC unroll 4
                for (int i = 0; i < Sixteens; ++i) {
                    const __m512i found = _mm512_permutexvar_epi8(weight[i], table);
                    part[p][i] = pinned(row == 0 ? found : _mm512_add_epi8(part[p][i], found));
                }
            }
        }
#pragma GCC unroll 8
        for (int p = 0; p < Positions; ++p) {
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) {
                all[p][i] = pinned(_mm512_dpbusd_epi32(all[p][i], part[p][i], factors));
            }
        }
    }
};

// (scale (s . x) + offset sum(x)) + bias of one position and up to 64 filters, each step rounded.
template <typename Kind>
void epilogue_of_subsets(const SubsetConvJob& shared, std::size_t position, std::size_t n, const __m512i* subsets) {
    const SubsetConvJob job = shared;  // which is known not to change by what is written
    const __m512i all = _mm512_set1_epi32(job.byte_sums[position]);
    const __m512 sum = _mm512_set1_ps(static_cast<float>(job.byte_sums[position] - job.sum_shift));
    run_epilogue<Lanes, Kind>(*job.epilogue, position, job.first_filter, n,
                              [&](std::size_t i) __attribute__((always_inline)) {
                                  const std::size_t filter = job.first_filter + i;
                                  const __m512i subset = subsets[i / 16];
                                  __m512i dots = _mm512_sub_epi32(_mm512_add_epi32(subset, subset), all);
                                  if (job.filter_shifts != nullptr)
                                      dots = _mm512_sub_epi32(dots, _mm512_loadu_si512(job.filter_shifts + filter));
                                  return scaled<Lanes>(job, filter, _mm512_cvtepi32_ps(dots), sum);
                              });
}

using SubsetsEpilogue = void (*)(const SubsetConvJob& job, std::size_t position, std::size_t n, const __m512i* subsets);

// 16 * `Sixteens` filters at a time, `Times` times, of so many rows of tables that these stay in the first cache.
template <int Positions, int Sixteens, int Times>
void run_subset_tile(const SubsetConvJob& job, std::size_t position, std::size_t n, SubsetsEpilogue epilogue_at) {
    constexpr std::size_t kRows = 96;
    const __m512i factors = _mm512_set1_epi32(job.has_halves ? 0x10011001 : 0x01010101);
    __m512i sums[Positions][4];
    for (auto& four : sums) four[0] = four[1] = four[2] = four[3] = _mm512_setzero_si512();
    const std::uint8_t* weights = job.weights;
    for (std::size_t run = 0; run < job.run_count; ++run) {
        for (std::size_t from = 0, rows; from < job.run_length; from += rows, weights += 256 * rows) {
            rows = job.run_length - from < kRows ? job.run_length - from : kRows;
            const std::uint8_t* at[Positions];
            for (std::size_t p = 0; p < Positions; ++p) {
                at[p] = job.tables + 64 * (job.starts[position + p] + job.runs[run] + from);
            }
            for (int time = 0; time < Times; ++time) {
                SubsetTile<Positions, Sixteens>::run(at, rows, weights + 64 * Sixteens * time, factors,
                                                     sums[0] + Sixteens * time);
            }
        }
    }
    for (std::size_t i = 0; i < Positions; ++i) epilogue_at(job, position + i, n, sums[i]);
}

template <int Positions, int Sixteens, int Times>
void subset_conv_tiles(const SubsetConvJob& job, std::size_t n) {
    const SubsetsEpilogue epilogue_at = choose_after_numbers<Lanes>(
        *job.epilogue, [](auto kind) -> SubsetsEpilogue { return epilogue_of_subsets<decltype(kind)>; });
    std::size_t position = job.first_position;
    const std::size_t end = position + job.positions;
    for (; position + Positions <= end; position += Positions) {
        run_subset_tile<Positions, Sixteens, Times>(job, position, n, epilogue_at);
    }
    for (; position + 2 <= end; position += 2) run_subset_tile<2, Sixteens, Times>(job, position, n, epilogue_at);
    if (position < end) run_subset_tile<1, Sixteens, Times>(job, position, n, epilogue_at);
}

void subset_conv(const SubsetConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    if (n > 32) return subset_conv_tiles<7, 2, 2>(job, n);
    n > 16 ? subset_conv_tiles<7, 2, 1>(job, n) : subset_conv_tiles<7, 1, 1>(job, n);
}

void byte_max(const std::uint8_t* const* x, std::size_t count, std::size_t length, std::uint8_t* y) {
    for (std::size_t i = 0; i < length; i += 64) {
        const __mmask64 some = length - i < 64 ? (__mmask64{1} << (length - i)) - 1 : ~__mmask64{0};
        __m512i most = _mm512_maskz_loadu_epi8(some, x[0] + i);
        for (std::size_t row = 1; row < count; ++row) {
            most = _mm512_max_epu8(most, _mm512_maskz_loadu_epi8(some, x[row] + i));
        }
        _mm512_mask_storeu_epi8(y + i, some, most);
    }
}

void float_max(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    for (std::size_t c = 0; c < channels; c += 16) {
        const __mmask16 some = first_of(channels - c);
        __m512 most = _mm512_maskz_loadu_ps(some, x[0] + c);
        for (std::size_t i = 1; i < count; ++i) most = _mm512_max_ps(_mm512_maskz_loadu_ps(some, x[i] + c), most);
        _mm512_mask_storeu_ps(y + c, some, most);
    }
}

// At `Positions` positions from number `p` of the job's on, for n <= 16 * `Sixteens` filters from `first` on.
template <int Positions, int Sixteens>
void depthwise_conv_tile(const DepthwiseConvJob& job, std::size_t p, std::size_t first, std::size_t n) {
    alignas(64) float values[Positions][16 * Sixteens];
    __mmask16 some[Sixteens];
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Sixteens; ++i) some[i] = first_of(n > 16 * i ? n - 16 * i : 0);
    for (std::size_t part = 0, tap = 0; part < job.parts; ++part) {
        __m512 sums[Positions][Sixteens];
#pragma GCC unroll 8
        for (int j = 0; j < Positions; ++j) {
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) sums[j][i] = _mm512_setzero_ps();
        }
        for (const std::size_t end = job.ends[part]; tap < end; ++tap) {
            const float *x = job.x[tap] + p * job.step + first, *weights = job.weights[tap] + first;
            __m512 weight[Sixteens];
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) weight[i] = _mm512_loadu_ps(weights + 16 * i);
#pragma GCC unroll 8
            for (int j = 0; j < Positions; ++j, x += job.step) {
#pragma GCC unroll 4
                for (int i = 0; i < Sixteens; ++i) {
                    const __m512 numbers = _mm512_maskz_loadu_ps(some[i], x + 16 * i);
                    sums[j][i] = _mm512_add_ps(sums[j][i], _mm512_mul_ps(numbers, weight[i]));
                }
            }
        }
#pragma GCC unroll 8
        for (int j = 0; j < Positions; ++j) {
            const float* before = part == 0 ? job.bias + first : values[j];
#pragma GCC unroll 4
            for (int i = 0; i < Sixteens; ++i) {
                _mm512_store_ps(values[j] + 16 * i, _mm512_add_ps(_mm512_loadu_ps(before + 16 * i), sums[j][i]));
            }
        }
    }
    for (std::size_t j = 0; j < Positions; ++j) {
        float_epilogue<Lanes>(*job.epilogue, job.first_position + p + j, first, n, values[j]);
    }
}

template <int Positions, int Sixteens>
void depthwise_conv_tiles(const DepthwiseConvJob& job, std::size_t first, std::size_t n) {
    std::size_t p = 0;
    for (; p + Positions <= job.positions; p += Positions) {
        depthwise_conv_tile<Positions, Sixteens>(job, p, first, n);
    }
    for (; p + 2 <= job.positions; p += 2) depthwise_conv_tile<2, Sixteens>(job, p, first, n);
    for (; p < job.positions; ++p) depthwise_conv_tile<1, Sixteens>(job, p, first, n);
}

void depthwise_conv(const DepthwiseConvJob& job) {
    for (std::size_t first = 0; first < job.epilogue->filters; first += 64) {
        const std::size_t n = job.epilogue->filters - first < 64 ? job.epilogue->filters - first : 64;
        n > 32 ? depthwise_conv_tiles<4, 4>(job, first, n) : depthwise_conv_tiles<4, 2>(job, first, n);
    }
}

}  // namespace

extern const Kernels kAvx512Kernels{"x86_avx512",
                                    runs_here,
                                    avx2::count_differences,
                                    avx2::sum_signs,
                                    masked_conv<FloatConvJob>,
                                    float_epilogue<Lanes>,
                                    nullptr,
                                    nullptr,
                                    nullptr,
                                    make_sums,
                                    sum_conv,
                                    nullptr,
                                    subset_conv,
                                    float_max,
                                    avx2::spread_signs,
                                    avx2::byte_conv,
                                    depthwise_conv,
                                    count_conv,
                                    make_wide_sums,
                                    masked_conv<InkConvJob>,
                                    byte_max,
                                    kSums};

}  // namespace dabnet

#endif
