// For x86 processors with AVX2. Only this file is compiled for them, so it shares no template or inline function with
// others, but for those over `Lanes` (vectors.h): a linker keeps one copy of these, and it might be the one that needs
// AVX2.
//
// A convolution of signs (`lut_conv`, docs/kernels.md): `vpshufb` looks 32 bytes up in a table of 16. For a nibble, 4
// channels, at two positions, with bits a and b, the table has popcount(a ^ w) + 16 popcount(b ^ w) for w = 0 .. 15,
// and the nibbles of 32 filters' weights are looked up in it: 256 products in one instruction. A padded nibble counts 2
// differing bits, half of its 4, so that it adds nothing to the dot product.
#ifdef DABNET_AVX2

#include <immintrin.h>

#include <cstring>

#include "kernels.h"
#include "tables.h"
#include "vectors.h"
#include "x86_features.h"

namespace dabnet {
namespace {

bool runs_here() { return x86_has_avx2(); }

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < words; ++i) count += static_cast<std::uint64_t>(_mm_popcnt_u64(a[i] ^ b[i]));
    return static_cast<std::uint32_t>(count);
}

void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums) {
    const std::size_t count = (channels + 63) / 64;
    for (std::size_t position = 0; position < positions; ++position, words += count) {
        std::int32_t ones = 0;
        for (std::size_t i = 0; i < count; ++i) ones += static_cast<std::int32_t>(_mm_popcnt_u64(words[i]));
        sums[position] = 2 * ones - static_cast<std::int32_t>(channels);
    }
}

void spread_bits(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out) {
    const __m128i low = _mm_set1_epi8(15);
    for (std::size_t start = 0; start < nibbles; start += 16, ++words) {
        const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(*words));
        const __m128i halves =
            _mm_unpacklo_epi8(_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
        if (nibbles - start >= 16) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(out + start), halves);
        } else {
            alignas(16) std::uint8_t last[16];
            _mm_store_si128(reinterpret_cast<__m128i*>(last), halves);
            std::memcpy(out + start, last, nibbles - start);
        }
    }
}

void pair_nibbles(const std::uint8_t* a, const std::uint8_t* b, std::size_t count, std::uint16_t* out) {
    const __m256i factor = _mm256_set1_epi16(17 * 16);
    std::size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const __m256i first = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + i)));
        const __m256i second = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(b + i)));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i),
                            _mm256_add_epi16(_mm256_mullo_epi16(first, factor), _mm256_slli_epi16(second, 4)));
    }
    for (; i < count; ++i) out[i] = static_cast<std::uint16_t>(16 * (17 * a[i] + b[i]));
}

// The numbers of 8 filters.
struct Lanes {
    using Floats = __m256;
    static constexpr std::size_t kFloats = 8;
    static constexpr bool kUnrolls = true;
    static constexpr bool kMasks = false;

    static Floats load(const float* numbers) { return _mm256_loadu_ps(numbers); }
    static Floats load(const float* numbers, std::size_t count) {
        if (count == 8) return load(numbers);
        alignas(32) float some[8] = {};
        std::memcpy(some, numbers, count * sizeof(float));
        return _mm256_load_ps(some);
    }
    static void store(float* numbers, std::size_t count, Floats values) {
        if (count == 8) return _mm256_storeu_ps(numbers, values);
        alignas(32) float some[8];
        _mm256_store_ps(some, values);
        std::memcpy(numbers, some, count * sizeof(float));
    }
    static Floats splat(float number) { return _mm256_set1_ps(number); }
    static Floats add(Floats a, Floats b) { return _mm256_add_ps(a, b); }
    static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
    static Floats clamp(Floats x, Floats low, Floats high) { return _mm256_min_ps(_mm256_max_ps(x, low), high); }
    static Floats above_zero(Floats x, Floats below) {
        return _mm256_blendv_ps(below, x, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_GT_OQ));
    }
    static std::uint64_t at_least(Floats x, Floats y) {
        return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GE_OQ)));
    }
    static DABNET_INLINE void quantize(const Quantization& job, std::size_t at, std::size_t count, Floats x) {
        const Floats low = splat(job.low), value = clamp(mul(splat(job.scale), x), low, splat(job.high));
        const __m256i numbers = _mm256_sub_epi32(_mm256_cvtps_epi32(value), _mm256_cvtps_epi32(low));
        const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(numbers), _mm256_extracti128_si256(numbers, 1));
        const __m128i bytes = _mm_packus_epi16(words, words);
        if (count == 8) return _mm_storel_epi64(reinterpret_cast<__m128i*>(job.out + at), bytes);
        alignas(16) std::uint8_t some[16];
        _mm_store_si128(reinterpret_cast<__m128i*>(some), bytes);
        std::memcpy(job.out + at, some, count);
    }
};

inline __m256i table_at(std::uint16_t offset) {
    const std::uint8_t* row = &kTables.rows[0][0] + offset;
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(row)));
}

// Counts the differing bits of `Pairs` pairs of positions and 32 * `Halves` filters.
//
// A byte that was looked up holds two counts of up to 4, so three of them add up without a carry from one to the other.
// `both` is the sum of all such bytes, modulo 256, and `second` the sum of their upper halves, so that the first
// position's count is both - 16 second. Both counts stay below 256 for 63 nibbles; then they move on to 16
// bits.
template <int Pairs, int Halves>
struct Tile {
    static constexpr std::size_t kMost = 63;

    __m256i both[Pairs][Halves], second[Pairs][Halves];
    alignas(32) std::uint16_t counts[2 * Pairs][64];

    void run(const LutConvJob& job, const Pair* pairs) {
        clear();
        const std::uint16_t* taps[Pairs];
        for (int p = 0; p < Pairs; ++p) taps[p] = job.input + pairs[p].start;
        const std::uint8_t* weights = job.weights;
        std::size_t pending = 0;
        bool is_first = true;
        const auto make_room = [&](std::size_t nibbles) {
            if (pending + nibbles <= kMost) return;
            widen(is_first);
            is_first = false;
            pending = 0;
        };
        for (std::size_t done = 0, times; done < job.six_count; done += times) {
            make_room(6);
            times = (kMost - pending) / 6 < job.six_count - done ? (kMost - pending) / 6 : job.six_count - done;
            accumulate<6, 3>(taps, job.sixes + done, weights, times);
            weights += times * 6 * 32;
            pending += times * 6;
        }
        for (std::size_t done = 0, times; done < job.two_count; done += times) {
            make_room(2);
            times = (kMost - pending) / 2 < job.two_count - done ? (kMost - pending) / 2 : job.two_count - done;
            accumulate<2, 2>(taps, job.twos + done, weights, times);
            weights += times * 2 * 32;
            pending += times * 2;
        }
        widen(is_first);
    }

    void clear() {
        for (int p = 0; p < Pairs; ++p) {
            for (int h = 0; h < Halves; ++h) both[p][h] = second[p][h] = _mm256_setzero_si256();
        }
    }

    // Adds the counts of `times` times `Nibbles` nibbles, `Part` at a time.
    template <int Nibbles, int Part>
    inline __attribute__((always_inline)) void accumulate(const std::uint16_t* const* taps,
                                                          const std::uint32_t* offsets, const std::uint8_t* weights,
                                                          std::size_t times) {
        const __m256i low = _mm256_set1_epi8(15);
        __m256i all[Pairs][Halves], upper[Pairs][Halves];
        std::memcpy(all, both, sizeof all);
        std::memcpy(upper, second, sizeof upper);
        for (; times != 0; --times, ++offsets, weights += 32 * Nibbles) {
            const std::uint16_t* at[Pairs];
            for (int p = 0; p < Pairs; ++p) at[p] = taps[p] + *offsets;
#pragma GCC unroll 2
            for (int start = 0; start < Nibbles; start += Part) {
                __m256i part[Pairs][Halves];
#pragma GCC unroll 3
                for (int nibble = start; nibble < start + Part; ++nibble) {
                    __m256i weight[Halves];
                    for (int h = 0; h < Halves; ++h) {
                        const __m256i byte =
                            _mm256_load_si256(reinterpret_cast<const __m256i*>(weights) + nibble / 2 * 2 + h);
                        weight[h] = _mm256_and_si256(nibble % 2 == 0 ? byte : _mm256_srli_epi16(byte, 4), low);
                    }
#pragma GCC unroll 4
                    for (int p = 0; p < Pairs; ++p) {
                        const __m256i table = table_at(at[p][nibble]);
                        for (int h = 0; h < Halves; ++h) {
                            const __m256i found = _mm256_shuffle_epi8(table, weight[h]);
                            part[p][h] = nibble == start ? found : _mm256_add_epi8(part[p][h], found);
                        }
                    }
                }
#pragma GCC unroll 4
                for (int p = 0; p < Pairs; ++p) {
                    for (int h = 0; h < Halves; ++h) {
                        const __m256i half = _mm256_and_si256(_mm256_srli_epi16(part[p][h], 4), low);
                        all[p][h] = _mm256_add_epi8(all[p][h], part[p][h]);
                        upper[p][h] = _mm256_add_epi8(upper[p][h], half);
                    }
                }
            }
        }
        std::memcpy(both, all, sizeof all);
        std::memcpy(second, upper, sizeof upper);
    }

    // Moves the counts on to 16 bits; the first ones are put there, later ones added.
    void widen(bool is_first) {
        const __m256i upper_halves = _mm256_set1_epi8(static_cast<char>(0xf0));
        for (int p = 0; p < Pairs; ++p) {
            for (int h = 0; h < Halves; ++h) {
                const __m256i sixteen = _mm256_and_si256(_mm256_slli_epi16(second[p][h], 4), upper_halves);
                move_bytes(counts[2 * p] + 32 * h, _mm256_sub_epi8(both[p][h], sixteen), is_first);
                move_bytes(counts[2 * p + 1] + 32 * h, second[p][h], is_first);
            }
        }
        clear();
    }

    // Even bytes are filters 0 to 15, odd ones 16 to 31.
    static void move_bytes(std::uint16_t* counts, __m256i bytes, bool is_first) {
        auto* count = reinterpret_cast<__m256i*>(counts);
        const __m256i even = _mm256_and_si256(bytes, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(bytes, 8);
        count[0] = is_first ? even : _mm256_add_epi16(count[0], even);
        count[1] = is_first ? odd : _mm256_add_epi16(count[1], odd);
    }
};

// scale (s . x) + offset sum(x) + bias of one position and up to 64 filters, each step rounded.
template <typename Kind>
void epilogue_of_counts(const LutConvJob& shared, std::size_t position, std::size_t n, const std::uint16_t* counts) {
    const LutConvJob job = shared;  // which is known not to change by what is written
    const __m128i base = _mm_set1_epi16(job.bases[position]);
    const __m256 sum = _mm256_set1_ps(job.offset == nullptr ? 0.0f : static_cast<float>(job.sums[position]));
    run_epilogue<Lanes, Kind>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            const __m128i count = _mm_load_si128(reinterpret_cast<const __m128i*>(counts + i));
            const __m128i dots = _mm_sub_epi16(base, _mm_add_epi16(count, count));
            const std::size_t filter = job.first_filter + i;
            return scaled<Lanes>(job, filter, _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(dots)), sum);
        });
}

using CountsEpilogue = void (*)(const LutConvJob& job, std::size_t position, std::size_t n,
                                const std::uint16_t* counts);

template <int Pairs, int Halves>
void run_tile(const LutConvJob& job, const Pair* pairs, std::size_t n, CountsEpilogue epilogue_at) {
    Tile<Pairs, Halves> tile;
    tile.run(job, pairs);
    const std::uint16_t (*counts)[64] = tile.counts;
    for (const Pair* pair = pairs; pair != pairs + Pairs; ++pair, counts += 2) {
        epilogue_at(job, pair->first, n, counts[0]);
        if (pair->second != pair->first) epilogue_at(job, pair->second, n, counts[1]);
    }
}

void lut_conv(const LutConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    const CountsEpilogue epilogue_at = choose_after_signs<Lanes>(
        *job.epilogue, [](auto kind) -> CountsEpilogue { return epilogue_of_counts<decltype(kind)>; });
    const Pair *pair = job.pairs, *end = job.pairs + job.pair_count;
    if (n <= 32) {
        for (; end - pair >= 4; pair += 4) run_tile<4, 1>(job, pair, n, epilogue_at);
        for (; pair != end; ++pair) run_tile<1, 1>(job, pair, n, epilogue_at);
    } else {
        for (; end - pair >= 2; pair += 2) run_tile<2, 2>(job, pair, n, epilogue_at);
        for (; pair != end; ++pair) run_tile<1, 2>(job, pair, n, epilogue_at);
    }
}

// The differing bits of a position and 8 filters, from number `first` of their block on.
inline __attribute__((always_inline)) void count_eight(const CountConvJob& job, const std::uint8_t* taps,
                                                       std::size_t first, std::uint64_t* counts) {
    const std::uint64_t* weights = job.weights + first;
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const std::uint8_t* at = taps + job.runs[run];
        for (std::size_t word = 1; word <= job.run_words; ++word, weights += 64, at += 8) {
            std::uint64_t x;
            std::memcpy(&x, at, sizeof x);
            if (word == job.run_words) x &= job.last;
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) counts[i] += static_cast<std::uint64_t>(_mm_popcnt_u64(x ^ weights[i]));
        }
    }
}

// There is no vector popcount: this is for groups, whose filters have few words each.
void count_conv(const CountConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    for (std::size_t position = job.first_position; position < job.first_position + job.positions; ++position) {
        const std::int32_t* bases = job.bases + job.kinds[position] + job.first_filter;
        alignas(32) std::int32_t dots[64] = {};
        alignas(32) float sums[64] = {};
        for (std::size_t first = 0; first < n; first += 8) {
            const std::size_t group = job.groups == nullptr ? 0 : job.groups[(job.first_filter + first) / 8];
            const std::uint8_t* taps = job.input + group * job.group_bytes + job.starts[position];
            std::uint64_t counts[8] = {};
            count_eight(job, taps, first, counts);
            for (std::size_t i = first; i < first + 8; ++i) {
                dots[i] = bases[i] - 2 * static_cast<std::int32_t>(counts[i - first]);
                if (job.sums != nullptr) {
                    sums[i] = static_cast<float>(job.sums[group * job.group_positions + position]);
                }
            }
        }
        run_epilogue<Lanes, AnyEpilogue<>>(
            *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
                const std::size_t filter = job.first_filter + i;
                const __m256i dot = _mm256_load_si256(reinterpret_cast<const __m256i*>(dots + i));
                return scaled<Lanes>(job, filter, _mm256_cvtepi32_ps(dot), Lanes::load(sums + i));
            });
    }
}

// The sums of 2 triples at a time.
void make_sums(const float* channels, std::size_t positions, std::size_t count, float* out) {
    const __m256i x = _mm256_setr_epi32(0, 0, 0, 0, 3, 3, 3, 3), one = _mm256_set1_epi32(1);
    const __m256i y = _mm256_add_epi32(x, one), z = _mm256_add_epi32(y, one);
    const __m256 minus_y = _mm256_castsi256_ps(_mm256_set1_epi64x(INT64_MIN));
    const __m256 minus_z =
        _mm256_castsi256_ps(_mm256_setr_epi32(0, 0, INT32_MIN, INT32_MIN, 0, 0, INT32_MIN, INT32_MIN));
    const auto sums_of = [&](__m256 six) {
        const __m256 sum =
            _mm256_add_ps(_mm256_permutevar8x32_ps(six, x), _mm256_xor_ps(_mm256_permutevar8x32_ps(six, y), minus_y));
        return _mm256_add_ps(sum, _mm256_xor_ps(_mm256_permutevar8x32_ps(six, z), minus_z));
    };
    for (; positions != 0; --positions, channels += count) {
        std::size_t i = 0;
        for (; i + 8 <= count; i += 6, out += 8) _mm256_storeu_ps(out, sums_of(_mm256_loadu_ps(channels + i)));
        for (; i < count; i += 6) {
            const std::size_t left = count - i < 6 ? count - i : 6, sums = left > 3 ? 8 : 4;
            Lanes::store(out, sums, sums_of(Lanes::load(channels + i, left)));
            out += sums;
        }
    }
}

// The sums of `Positions` positions and 16 filters: `vpermilps` picks one of four sums for each filter.
template <int Positions>
void sum_conv_tile(const SumConvJob& job, std::size_t position, const std::uint8_t* patterns, float (*totals)[64]) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 total[Positions][2];
    for (int p = 0; p < Positions; ++p) total[p][0] = total[p][1] = _mm256_setzero_ps();
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const float* taps[Positions];
        for (int p = 0; p < Positions; ++p) {
            taps[p] = job.input + job.starts[position + static_cast<std::size_t>(p)] + job.runs[run];
        }
        for (std::size_t from = 0; from < job.run_length; from += kSumPart) {
            const std::size_t to = job.run_length - from < kSumPart ? job.run_length : from + kSumPart;
            __m256 part[Positions][2];
            for (int p = 0; p < Positions; ++p) part[p][0] = part[p][1] = _mm256_setzero_ps();
            for (std::size_t triple = from; triple < to; ++triple, patterns += 16) {
                __m256i which[2];
                __m256 minus[2];
                for (int h = 0; h < 2; ++h) {
                    const auto* bytes = reinterpret_cast<const __m128i*>(patterns + 8 * h);
                    which[h] = _mm256_cvtepi8_epi32(_mm_loadl_epi64(bytes));
                    minus[h] = _mm256_and_ps(_mm256_castsi256_ps(which[h]), sign);
                }
#pragma GCC unroll 4
                for (int p = 0; p < Positions; ++p) {
                    const __m256 sums = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(taps[p] + 4 * triple));
                    for (int h = 0; h < 2; ++h) {
                        const __m256 sum = _mm256_xor_ps(_mm256_permutevar_ps(sums, which[h]), minus[h]);
                        part[p][h] = _mm256_add_ps(part[p][h], sum);
                    }
                }
            }
            for (int p = 0; p < Positions; ++p) {
                for (int h = 0; h < 2; ++h) total[p][h] = _mm256_add_ps(total[p][h], part[p][h]);
            }
        }
    }
    for (int p = 0; p < Positions; ++p) {
        for (int h = 0; h < 2; ++h) _mm256_store_ps(totals[p] + 8 * h, total[p][h]);
    }
}

template <int Positions>
void sum_conv_at(const SumConvJob& job, std::size_t position, std::size_t n) {
    alignas(32) float totals[Positions][64];  // a tile fills 16 columns of it
    const std::size_t block = job.run_count * job.run_length * 16;
    for (std::size_t i = 0; i < n; i += 16) {
        sum_conv_tile<Positions>(job, position, job.patterns + i / 16 * block,
                                 reinterpret_cast<float (*)[64]>(totals[0] + i));
    }
    for (int p = 0; p < Positions; ++p, ++position) {
        const __m256 sum = _mm256_set1_ps(job.offset == nullptr ? 0.0f : job.sums[position]);
        for (std::size_t i = 0; i < n; i += 8) {
            const std::size_t filter = job.first_filter + i;
            _mm256_store_ps(totals[p] + i, scaled<Lanes>(job, filter, Lanes::load(totals[p] + i), sum));
        }
        float_epilogue<Lanes>(*job.epilogue, position, job.first_filter, n, totals[p]);
    }
}

void sum_conv(const SumConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    std::size_t position = job.first_position;
    const std::size_t end = position + job.positions;
    for (; position + 4 <= end; position += 4) sum_conv_at<4>(job, position, n);
    for (; position < end; ++position) sum_conv_at<1>(job, position, n);
}

// Two tables, of 8 channels, which stand there four times.
inline __attribute__((always_inline)) void put_subset_sums(__m256i channels, std::uint8_t* out) {
    const auto* indices = reinterpret_cast<const __m256i*>(kSubsetIndices.of);
    const __m256i second_half = _mm256_setr_epi64x(0, -1, 0, -1);
    const __m256i next = _mm256_and_si256(_mm256_srli_epi16(channels, 8), second_half);
    const __m256i numbers = _mm256_add_epi8(channels, next);
    const __m256i sums = _mm256_add_epi8(_mm256_shuffle_epi8(numbers, indices[0]),  //
                                         _mm256_shuffle_epi8(numbers, indices[1]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), sums);
}

void make_subset_sums(const std::uint8_t* bytes, std::size_t positions, std::size_t channels, std::uint8_t* lower,
                      std::uint8_t* upper, std::int32_t* sums) {
    const __m256i low = _mm256_set1_epi8(15);
    for (std::size_t position = 0; position < positions; ++position, bytes += channels) {
        __m128i sum = _mm_setzero_si128();
        for (std::size_t c = 0; c < channels; c += 8, lower += 32) {
            long long some = 0;
            std::memcpy(&some, bytes + c, channels - c < 8 ? channels - c : 8);
            const __m256i eight = _mm256_set1_epi64x(some);
            sum = _mm_add_epi64(sum, _mm_sad_epu8(_mm256_castsi256_si128(eight), _mm_setzero_si128()));
            if (upper == nullptr) {
                put_subset_sums(eight, lower);
                continue;
            }
            put_subset_sums(_mm256_and_si256(eight, low), lower);
            put_subset_sums(_mm256_and_si256(_mm256_srli_epi16(eight, 4), low), upper);
            upper += 32;
        }
        sums[position] = _mm_cvtsi128_si32(sum);
    }
}

// The sums of `Entries` positions, or of planes of them, and 32 * `Halves` filters.
//
// A byte that was looked up is at most 60, so four of them add up in a byte. Such bytes are added up two at a time, as
// 16 bits (`all`), and those at odd positions once more on their own (`odd`), so that the sum of the even ones is
// all - 256 odd. After 273 times 240 that moves on to 32 bits.
template <int Entries, int Halves>
struct SubsetTile {
    static constexpr std::size_t kMost = 273;

    __m256i all[Entries][Halves], odd[Entries][Halves];
    alignas(32) std::uint32_t sums[Entries][64];

    void run(const SubsetConvJob& job, const std::uint8_t* const* taps) {
        clear();
        const std::uint8_t* weights = job.weights;
        std::size_t room = kMost;
        bool is_first = true;
        const auto make_room = [&] {
            if (room != 0) return;
            widen(is_first);
            is_first = false;
            room = kMost;
        };
        for (std::size_t run = 0; run < job.run_count; ++run) {
            const std::uint8_t* at[Entries];
            for (int e = 0; e < Entries; ++e) at[e] = taps[e] + 16 * job.runs[run];
            for (std::size_t left = job.run_length / 4, times; left != 0; left -= times) {
                make_room();
                times = left < room ? left : room;
                accumulate<4>(at, weights, times);
                room -= times;
            }
            if (job.run_length % 4 == 0) continue;
            make_room();
            accumulate<2>(at, weights, 1);
            --room;
        }
        widen(is_first);
    }

    void clear() {
        for (int e = 0; e < Entries; ++e) {
            for (int h = 0; h < Halves; ++h) all[e][h] = odd[e][h] = _mm256_setzero_si256();
        }
    }

    // Adds the sums of `times` times `Rows` rows.
    template <int Rows>
    inline __attribute__((always_inline)) void accumulate(const std::uint8_t** taps, const std::uint8_t*& weights,
                                                          std::size_t times) {
        const __m256i low = _mm256_set1_epi8(15);
        __m256i both[Entries][Halves], odds[Entries][Halves];
        std::memcpy(both, all, sizeof both);
        std::memcpy(odds, odd, sizeof odds);
        const std::uint8_t* at[Entries];
        for (int e = 0; e < Entries; ++e) at[e] = taps[e];
        const std::uint8_t* lines = weights;
        for (std::size_t time = 0; time < times; ++time, lines += 32 * Rows) {
            __m256i part[Entries][Halves];
#pragma GCC unroll 4
            for (int row = 0; row < Rows; ++row) {
                __m256i nibble[Halves];
                for (int h = 0; h < Halves; ++h) {
                    const __m256i byte = _mm256_load_si256(reinterpret_cast<const __m256i*>(lines) + row / 2 * 2 + h);
                    nibble[h] = _mm256_and_si256(row % 2 == 0 ? byte : _mm256_srli_epi16(byte, 4), low);
                }
#pragma GCC unroll 4
                for (int e = 0; e < Entries; ++e) {
                    const __m256i table =
                        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(at[e]) + row));
                    for (int h = 0; h < Halves; ++h) {
                        const __m256i found = _mm256_shuffle_epi8(table, nibble[h]);
                        part[e][h] = row == 0 ? found : _mm256_add_epi8(part[e][h], found);
                    }
                }
            }
#pragma GCC unroll 4
            for (int e = 0; e < Entries; ++e) {
                at[e] += 16 * Rows;
                for (int h = 0; h < Halves; ++h) {
                    both[e][h] = _mm256_add_epi16(both[e][h], part[e][h]);
                    odds[e][h] = _mm256_add_epi16(odds[e][h], _mm256_srli_epi16(part[e][h], 8));
                }
            }
        }
        weights = lines;
        for (int e = 0; e < Entries; ++e) taps[e] = at[e];
        std::memcpy(all, both, sizeof both);
        std::memcpy(odd, odds, sizeof odds);
    }

    // Moves the sums on to 32 bits; the first ones are put there, later ones added. Even bytes are filters 0 to 15, odd
    // ones 16 to 31.
    void widen(bool is_first) {
        for (int e = 0; e < Entries; ++e) {
            for (int h = 0; h < Halves; ++h) {
                const __m256i even = _mm256_sub_epi16(all[e][h], _mm256_slli_epi16(odd[e][h], 8));
                move_words(sums[e] + 32 * h, even, is_first);
                move_words(sums[e] + 32 * h + 16, odd[e][h], is_first);
            }
        }
        clear();
    }

    static void move_words(std::uint32_t* sums, __m256i words, bool is_first) {
        auto* sum = reinterpret_cast<__m256i*>(sums);
        const __m256i wide[2] = {_mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)),
                                 _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1))};
        for (int i = 0; i < 2; ++i) sum[i] = is_first ? wide[i] : _mm256_add_epi32(sum[i], wide[i]);
    }
};

// (scale (s . x) + offset sum(x)) + bias of one position and up to 64 filters, each step rounded; `upper` is null for
// numbers of 4 bits.
template <typename Kind>
void epilogue_of_subsets(const SubsetConvJob& shared, std::size_t position, std::size_t n, const std::uint32_t* lower,
                         const std::uint32_t* upper) {
    const SubsetConvJob job = shared;  // which is known not to change by what is written
    const __m256i all = _mm256_set1_epi32(job.byte_sums[position]);
    const __m256 sum = _mm256_set1_ps(static_cast<float>(job.byte_sums[position] - job.sum_shift));
    run_epilogue<Lanes, Kind>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            const std::size_t filter = job.first_filter + i;
            __m256i subset = _mm256_load_si256(reinterpret_cast<const __m256i*>(lower + i));
            if (upper != nullptr) {
                const __m256i halves = _mm256_load_si256(reinterpret_cast<const __m256i*>(upper + i));
                subset = _mm256_add_epi32(subset, _mm256_slli_epi32(halves, 4));
            }
            __m256i dots = _mm256_sub_epi32(_mm256_add_epi32(subset, subset), all);
            if (job.filter_shifts != nullptr) {
                dots = _mm256_sub_epi32(
                    dots, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(job.filter_shifts + filter)));
            }
            return scaled<Lanes>(job, filter, _mm256_cvtepi32_ps(dots), sum);
        });
}

using SubsetsEpilogue = void (*)(const SubsetConvJob& job, std::size_t position, std::size_t n,
                                 const std::uint32_t* lower, const std::uint32_t* upper);

template <int Positions, int Planes, int Halves>
void run_subset_tile(const SubsetConvJob& job, std::size_t position, std::size_t n, SubsetsEpilogue epilogue_at) {
    const std::uint8_t* taps[Positions * Planes];
    for (std::size_t i = 0; i < Positions * Planes; ++i) {
        taps[i] = job.tables + std::size_t{16} * job.starts[position + i / Planes] + i % Planes * job.plane;
    }
    SubsetTile<Positions * Planes, Halves> tile;
    tile.run(job, taps);
    for (std::size_t i = 0; i < Positions; ++i) {
        epilogue_at(job, position + i, n, tile.sums[i * Planes], Planes == 2 ? tile.sums[i * Planes + 1] : nullptr);
    }
}

template <int Planes>
void subset_conv_of(const SubsetConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    const SubsetsEpilogue epilogue_at = choose_after_numbers<Lanes>(
        *job.epilogue, [](auto kind) -> SubsetsEpilogue { return epilogue_of_subsets<decltype(kind)>; });
    std::size_t position = job.first_position;
    const std::size_t end = position + job.positions;
    if (n <= 32) {
        constexpr int kPositions = 4 / Planes;
        for (; position + kPositions <= end; position += kPositions) {
            run_subset_tile<kPositions, Planes, 1>(job, position, n, epilogue_at);
        }
        for (; position < end; ++position) run_subset_tile<1, Planes, 1>(job, position, n, epilogue_at);
    } else {
        constexpr int kPositions = 2 / Planes;
        for (; position + kPositions <= end; position += kPositions) {
            run_subset_tile<kPositions, Planes, 2>(job, position, n, epilogue_at);
        }
        for (; position < end; ++position) run_subset_tile<1, Planes, 2>(job, position, n, epilogue_at);
    }
}

void subset_conv(const SubsetConvJob& job) { job.plane == 0 ? subset_conv_of<1>(job) : subset_conv_of<2>(job); }

void byte_max(const std::uint8_t* const* x, std::size_t count, std::size_t length, std::uint8_t* y) {
    std::size_t i = 0;
    for (; i + 32 <= length; i += 32) {
        __m256i most = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x[0] + i));
        for (std::size_t row = 1; row < count; ++row) {
            most = _mm256_max_epu8(most, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x[row] + i)));
        }
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(y + i), most);
    }
    for (; i < length; ++i) {
        y[i] = x[0][i];
        for (std::size_t row = 1; row < count; ++row) y[i] = x[row][i] > y[i] ? x[row][i] : y[i];
    }
}

void float_max(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    std::size_t c = 0;
    for (; c + 16 <= channels; c += 16) {
        __m256 most[2] = {_mm256_loadu_ps(x[0] + c), _mm256_loadu_ps(x[0] + c + 8)};
        for (std::size_t i = 1; i < count; ++i) {
            most[0] = _mm256_max_ps(_mm256_loadu_ps(x[i] + c), most[0]);
            most[1] = _mm256_max_ps(_mm256_loadu_ps(x[i] + c + 8), most[1]);
        }
        _mm256_storeu_ps(y + c, most[0]);
        _mm256_storeu_ps(y + c + 8, most[1]);
    }
    for (; c < channels; ++c) {
        float most = x[0][c];
        for (std::size_t i = 1; i < count; ++i) most = x[i][c] > most ? x[i][c] : most;
        y[c] = most;
    }
}

// Each byte gets the byte of 32 signs that its own is in, and keeps that one.
void spread_signs(const std::uint64_t* words, std::size_t channels, std::int8_t* out) {
    const __m256i which = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i own = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
    for (std::size_t c = 0; c < channels; c += 32) {
        const auto half = static_cast<int>(words[c / 64] >> (c % 64));
        const __m256i bits = _mm256_and_si256(_mm256_shuffle_epi8(_mm256_set1_epi32(half), which), own);
        const __m256i is_minus = _mm256_cmpeq_epi8(bits, _mm256_setzero_si256());  // -1 where it is, and else 0
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + c), _mm256_or_si256(is_minus, _mm256_set1_epi8(1)));
    }
}

// The sums of 32 * `Halves` filters at a position.
template <int Halves, bool Sums>
inline __attribute__((always_inline)) void byte_conv_tile(const ByteConvJob& job, const std::int8_t* taps,
                                                          std::size_t first, std::int8_t* dots, std::int8_t* sums) {
    __m256i dot[Halves], sum[Halves];
    for (int h = 0; h < Halves; ++h) dot[h] = sum[h] = _mm256_setzero_si256();
    const std::int8_t* weights = job.weights + first;
    for (std::size_t tap = 0; tap < job.taps; ++tap, weights += job.length) {
        const std::int8_t* at = taps + job.offsets[tap] + first;
        for (int h = 0; h < Halves; ++h) {
            const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at) + h);
            const __m256i weight = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights) + h);
            dot[h] = _mm256_add_epi8(dot[h], _mm256_sign_epi8(x, weight));
            if (Sums) sum[h] = _mm256_add_epi8(sum[h], x);
        }
    }
    for (int h = 0; h < Halves; ++h) {
        _mm256_store_si256(reinterpret_cast<__m256i*>(dots) + h, dot[h]);
        if (Sums) _mm256_store_si256(reinterpret_cast<__m256i*>(sums) + h, sum[h]);
    }
}

template <bool Sums>
void byte_conv_rows(const ByteConvJob& job) {
    alignas(32) std::int8_t dots[64], sums[64];
    const auto widened = [](const std::int8_t* bytes) __attribute__((always_inline)) {
        return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
    };
    for (std::size_t i = 0; i < job.positions; ++i) {
        const std::int8_t* taps = job.input + i * job.step;
        for (std::size_t first = 0; first < job.epilogue->filters; first += 64) {
            const std::size_t n = job.epilogue->filters - first < 64 ? job.epilogue->filters - first : 64;
            n > 32 ? byte_conv_tile<2, Sums>(job, taps, first, dots, sums)
                   : byte_conv_tile<1, Sums>(job, taps, first, dots, sums);
            run_epilogue<Lanes, AnyEpilogue<>>(
                *job.epilogue, job.first_position + i, first, n, [&](std::size_t f) __attribute__((always_inline)) {
                    const std::size_t filter = first + f;
                    return scaled<Lanes>(job, filter, widened(dots + f), Sums ? widened(sums + f) : Lanes::splat(0));
                });
        }
    }
}

void byte_conv(const ByteConvJob& job) {
    job.offset == nullptr ? byte_conv_rows<false>(job) : byte_conv_rows<true>(job);
}

// Sums 16 filters from `first` on, of which there are `count`, at `Positions` positions from number `p` of the job's
// on.
template <int Positions>
inline __attribute__((always_inline)) void depthwise_conv_tile(const DepthwiseConvJob& job, std::size_t p,
                                                               std::size_t first, std::size_t count,
                                                               float (*totals)[64]) {
    for (std::size_t part = 0, tap = 0; part < job.parts; ++part) {
        __m256 sums[Positions][2];
        for (int j = 0; j < Positions; ++j) sums[j][0] = sums[j][1] = _mm256_setzero_ps();
        for (const std::size_t end = job.ends[part]; tap < end; ++tap) {
            const float *x = job.x[tap] + p * job.step + first, *weights = job.weights[tap] + first;
            const __m256 weight[2] = {_mm256_loadu_ps(weights), _mm256_loadu_ps(weights + 8)};
#pragma GCC unroll 4
            for (int j = 0; j < Positions; ++j, x += job.step) {
                const __m256 lower = count >= 8 ? Lanes::load(x) : Lanes::load(x, count);
                const __m256 upper = count >= 16 ? Lanes::load(x + 8)
                                     : count > 8 ? Lanes::load(x + 8, count - 8)
                                                 : lower;
                sums[j][0] = _mm256_add_ps(sums[j][0], _mm256_mul_ps(lower, weight[0]));
                sums[j][1] = _mm256_add_ps(sums[j][1], _mm256_mul_ps(upper, weight[1]));
            }
        }
        for (int j = 0; j < Positions; ++j) {
            const float* before = part == 0 ? job.bias + first : totals[j];
            for (int h = 0; h < 2; ++h) {
                _mm256_store_ps(totals[j] + 8 * h, _mm256_add_ps(_mm256_loadu_ps(before + 8 * h), sums[j][h]));
            }
        }
    }
}

template <int Positions>
void depthwise_conv_at(const DepthwiseConvJob& job, std::size_t p) {
    alignas(32) float totals[Positions][64];  // a tile fills 16 columns of it
    for (std::size_t first = 0; first < job.epilogue->filters; first += 64) {
        const std::size_t n = job.epilogue->filters - first < 64 ? job.epilogue->filters - first : 64;
        for (std::size_t i = 0; i < n; i += 16) {
            auto* columns = reinterpret_cast<float (*)[64]>(totals[0] + i);
            n - i >= 16 ? depthwise_conv_tile<Positions>(job, p, first + i, 16, columns)
                        : depthwise_conv_tile<Positions>(job, p, first + i, n - i, columns);
        }
        for (std::size_t j = 0; j < Positions; ++j) {
            float_epilogue<Lanes>(*job.epilogue, job.first_position + p + j, first, n, totals[j]);
        }
    }
}

void depthwise_conv(const DepthwiseConvJob& job) {
    std::size_t p = 0;
    for (; p + 4 <= job.positions; p += 4) depthwise_conv_at<4>(job, p);
    for (; p < job.positions; ++p) depthwise_conv_at<1>(job, p);
}

}  // namespace

namespace avx2 {
std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    return dabnet::count_differences(a, b, words);
}
void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums) {
    dabnet::sum_signs(words, positions, channels, sums);
}
void spread_signs(const std::uint64_t* words, std::size_t channels, std::int8_t* out) {
    dabnet::spread_signs(words, channels, out);
}
void byte_conv(const ByteConvJob& job) { dabnet::byte_conv(job); }
}  // namespace avx2

extern const Kernels kAvx2Kernels{"x86_avx2",
                                  runs_here,
                                  count_differences,
                                  sum_signs,
                                  float_conv<Lanes, 8, 4>,
                                  float_epilogue<Lanes>,
                                  spread_bits,
                                  pair_nibbles,
                                  lut_conv,
                                  make_sums,
                                  sum_conv,
                                  make_subset_sums,
                                  subset_conv,
                                  float_max,
                                  spread_signs,
                                  byte_conv,
                                  depthwise_conv,
                                  count_conv,
                                  nullptr,
                                  nullptr,
                                  byte_max};

}  // namespace dabnet

#endif
