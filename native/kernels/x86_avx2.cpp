// For x86 processors with AVX2. Only what is here is compiled for them, so nothing here is a template or an inline
// function that other files could come to share.
//
// The tables: `vpshufb` looks 32 bytes up in a table of 16. For 4 channels of a place, the row of the 16 counts
// popcount(a ^ w), w = 0 .. 15, is the table, and the 4-bit weights of 32 filters are what is looked up: 32 filters, 4
// channels each, in one instruction. A padded tap has a row of 2s, which is no difference on balance.
#include <immintrin.h>

#include <cstring>

#include "kernels.h"

namespace dabnet {
namespace {

bool runs_here() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt"); }

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < words; ++i) count += static_cast<std::uint64_t>(_mm_popcnt_u64(a[i] ^ b[i]));
    return static_cast<std::uint32_t>(count);
}

// As the portable one, with the sums of 8 * `Eights` filters in registers.
template <int Eights>
void add_up_block(const Sum& job, std::size_t first) {
    __m256 sums[Eights];
    for (int i = 0; i < Eights; ++i) sums[i] = _mm256_loadu_ps(job.bias + first + 8 * i);
    for (std::size_t part = 0, term = 0; part < job.parts; ++part) {
        __m256 inner[Eights];
        for (int i = 0; i < Eights; ++i) inner[i] = _mm256_setzero_ps();
        for (; term < job.ends[part]; ++term) {
            const __m256 x = _mm256_set1_ps(job.terms[term].x);
            const float* weights = job.terms[term].weights + first;
#pragma GCC unroll 8
            for (int i = 0; i < Eights; ++i) {
                inner[i] = _mm256_add_ps(inner[i], _mm256_mul_ps(x, _mm256_loadu_ps(weights + 8 * i)));
            }
        }
        for (int i = 0; i < Eights; ++i) sums[i] = _mm256_add_ps(sums[i], inner[i]);
    }
    for (int i = 0; i < Eights; ++i) _mm256_storeu_ps(job.sums + first + 8 * i, sums[i]);
}

void add_up(const Sum& job) {
    std::size_t filter = 0;
    for (; filter + 64 <= job.filters; filter += 64) add_up_block<8>(job, filter);
    for (; filter + 32 <= job.filters; filter += 32) add_up_block<4>(job, filter);
    for (; filter + 8 <= job.filters; filter += 8) add_up_block<1>(job, filter);
    for (; filter < job.filters; ++filter) {
        float sum = job.bias[filter];
        for (std::size_t part = 0, term = 0; part < job.parts; ++part) {
            float inner = 0;
            for (; term < job.ends[part]; ++term) inner += job.terms[term].x * job.terms[term].weights[filter];
            sum += inner;
        }
        job.sums[filter] = sum;
    }
}

void spread(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out) {
    const __m128i low = _mm_set1_epi8(15);
    for (std::size_t start = 0; start < nibbles; start += 16, ++words) {
        const __m128i bytes = _mm_cvtsi64_si128(static_cast<long long>(*words));
        const __m128i halves =
            _mm_unpacklo_epi8(_mm_and_si128(bytes, low), _mm_and_si128(_mm_srli_epi16(bytes, 4), low));
        const __m128i doubled = _mm_add_epi8(halves, halves);
        if (nibbles - start >= 16) {
            _mm_storeu_si128(reinterpret_cast<__m128i*>(out + start), doubled);
        } else {
            alignas(16) std::uint8_t last[16];
            _mm_store_si128(reinterpret_cast<__m128i*>(last), doubled);
            std::memcpy(out + start, last, nibbles - start);
        }
    }
}

// The first `count` of 8 numbers; the others are 0, or stay as they are.
inline __m256 load(const float* numbers, std::size_t count) {
    if (count == 8) return _mm256_loadu_ps(numbers);
    alignas(32) float some[8] = {};
    std::memcpy(some, numbers, count * sizeof(float));
    return _mm256_load_ps(some);
}

inline void store(float* numbers, std::size_t count, __m256 values) {
    if (count == 8) return _mm256_storeu_ps(numbers, values);
    alignas(32) float some[8];
    _mm256_store_ps(some, values);
    std::memcpy(numbers, some, count * sizeof(float));
}

// As the portable one, 8 filters at a time.
void finish(const Finish& job, std::size_t place, std::size_t first, std::size_t n, const float* values) {
    const __m256 low = _mm256_set1_ps(job.low), high = _mm256_set1_ps(job.high);
    const std::size_t at = place * job.filters + first;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < n; i += 8) {
        const std::size_t count = n - i < 8 ? n - i : 8;
        __m256 value = load(values + i, count);
        if (job.added != nullptr) value = _mm256_add_ps(value, load(job.added + at + i, count));
        if (job.signs != nullptr) {
            const __m256 is_above = _mm256_cmp_ps(value, _mm256_loadu_ps(job.threshold + first + i), _CMP_GE_OQ);
            bits |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm256_movemask_ps(is_above))) << i;
        }
        if (job.real == nullptr) continue;
        if (job.slope != nullptr) {
            const __m256 below = _mm256_mul_ps(_mm256_loadu_ps(job.slope + first + i), value);
            const __m256 is_positive = _mm256_cmp_ps(value, _mm256_setzero_ps(), _CMP_GT_OQ);
            value = _mm256_blendv_ps(below, value, is_positive);
        } else {
            value = _mm256_min_ps(_mm256_max_ps(value, low), high);
        }
        store(job.real + at + i, count, value);
    }
    if (job.signs == nullptr) return;
    if (n < 64) bits &= (std::uint64_t{1} << n) - 1;
    job.signs[place * ((job.filters + 63) / 64) + first / 64] = bits ^ job.flip[first / 64];
}

struct Tables {
    alignas(64) std::uint8_t rows[17][16];
    constexpr Tables() : rows{} {
        for (int a = 0; a < 16; ++a) {
            for (int w = 0; w < 16; ++w) {
                const int differing = a ^ w;
                rows[a][w] = static_cast<std::uint8_t>((differing & 1) + (differing >> 1 & 1) + (differing >> 2 & 1) +
                                                       (differing >> 3 & 1));
            }
        }
        for (int w = 0; w < 16; ++w) rows[16][w] = 2;
    }
};
constexpr Tables kTables;

inline __m256i table_of(const std::uint8_t* spread_nibble) {
    const std::uint8_t* row = &kTables.rows[0][0] + std::size_t{*spread_nibble} * 8;
    return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(row)));
}

// A byte holds 63 counts of up to 4.
constexpr std::size_t kNibblesABatch = 62;

// The counts of `Places` places and 32 * `Halves` filters.
template <int Places, int Halves>
struct Tile {
    __m256i bytes[Places][Halves];
    alignas(32) std::uint16_t counts[Places][64];

    void run(const TableRow& row, const std::uint8_t* input, const std::uint8_t* weights) {
        std::memset(counts, 0, sizeof counts);
        clear();
        std::size_t pending = 0;
        for (std::size_t r = 0; r < row.run_count; ++r) {
            const std::uint8_t* taps = input + row.runs[r];
            for (std::size_t from = 0; from < row.run_bytes;) {
                std::size_t to = from + (kNibblesABatch - pending);
                if (to > row.run_bytes) to = row.run_bytes;
                look_up(taps, row.place_step, from, to, weights);
                weights += (to - from) * 32;
                pending += to - from;
                from = to;
                if (pending == kNibblesABatch) {
                    widen();
                    pending = 0;
                }
            }
        }
        widen();
    }

    void clear() {
        for (int i = 0; i < Places; ++i) {
            for (int h = 0; h < Halves; ++h) bytes[i][h] = _mm256_setzero_si256();
        }
    }

    // Adds the counts of nibbles [from, to), two at a time.
    inline __attribute__((always_inline)) void look_up(const std::uint8_t* taps, std::size_t step, std::size_t from,
                                                       std::size_t to, const std::uint8_t* weights) {
        const __m256i low = _mm256_set1_epi8(15);
        __m256i sums[Places][Halves];
        std::memcpy(sums, bytes, sizeof sums);
        for (std::size_t at = from; at < to; at += 2, weights += 64) {
            __m256i both[Halves], nibble[Halves];
            for (int h = 0; h < Halves; ++h) {
                both[h] = _mm256_load_si256(reinterpret_cast<const __m256i*>(weights) + h);
                nibble[h] = _mm256_and_si256(both[h], low);
            }
#pragma GCC unroll 8
            for (int i = 0; i < Places; ++i) {
                const __m256i table = table_of(taps + i * step + at);
                for (int h = 0; h < Halves; ++h) {
                    sums[i][h] = _mm256_add_epi8(sums[i][h], _mm256_shuffle_epi8(table, nibble[h]));
                }
            }
            for (int h = 0; h < Halves; ++h) nibble[h] = _mm256_and_si256(_mm256_srli_epi16(both[h], 4), low);
#pragma GCC unroll 8
            for (int i = 0; i < Places; ++i) {
                const __m256i table = table_of(taps + i * step + at + 1);
                for (int h = 0; h < Halves; ++h) {
                    sums[i][h] = _mm256_add_epi8(sums[i][h], _mm256_shuffle_epi8(table, nibble[h]));
                }
            }
        }
        std::memcpy(bytes, sums, sizeof sums);
    }

    // Moves the bytes' counts to 16 bits: even bytes are filters 0 to 15, odd ones 16 to 31.
    void widen() {
        const __m256i byte = _mm256_set1_epi16(255);
        for (int i = 0; i < Places; ++i) {
            for (int h = 0; h < Halves; ++h) {
                auto* count = reinterpret_cast<__m256i*>(counts[i] + 32 * h);
                count[0] = _mm256_add_epi16(count[0], _mm256_and_si256(bytes[i][h], byte));
                count[1] = _mm256_add_epi16(count[1], _mm256_srli_epi16(bytes[i][h], 8));
            }
        }
        clear();
    }
};

// scale (s . x) + middle sum(x) + bias of one place and up to 64 filters from `first` on, each step rounded.
void finish_place(const TableRow& row, std::size_t place, std::size_t first, const std::uint16_t* counts) {
    const std::size_t n = row.filters - first < 64 ? row.filters - first : 64;
    const __m256i base = _mm256_set1_epi32(row.bases[place]);
    const __m256 sum = _mm256_set1_ps(row.middle == nullptr ? 0.0f : static_cast<float>(row.sums[place]));
    alignas(32) float values[64];
    for (std::size_t i = 0; i < n; i += 8) {
        const __m256i count = _mm256_cvtepu16_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(counts + i)));
        const __m256 dot = _mm256_cvtepi32_ps(_mm256_sub_epi32(base, _mm256_slli_epi32(count, 1)));
        __m256 value = _mm256_mul_ps(_mm256_loadu_ps(row.scale + first + i), dot);
        if (row.middle != nullptr) {
            value = _mm256_add_ps(value, _mm256_mul_ps(_mm256_loadu_ps(row.middle + first + i), sum));
        }
        if (row.bias != nullptr) value = _mm256_add_ps(value, _mm256_loadu_ps(row.bias + first + i));
        _mm256_store_ps(values + i, value);
    }
    finish(*row.finish, row.first_place + place, first, n, values);
}

template <int Places, int Halves>
void run_tile(const TableRow& row, std::size_t place, std::size_t block) {
    Tile<Places, Halves> tile;
    const std::size_t bytes_a_block = row.run_count * row.run_bytes * 32;
    tile.run(row, row.input + place * row.place_step, row.weights + block * bytes_a_block);
    for (int i = 0; i < Places; ++i) finish_place(row, place + static_cast<std::size_t>(i), block * 64, tile.counts[i]);
}

void table_row(const TableRow& row) {
    for (std::size_t block = 0; block * 64 < row.filters; ++block) {
        std::size_t place = 0;
        if (row.filters - block * 64 <= 32) {
            for (; place + 4 <= row.places; place += 4) run_tile<4, 1>(row, place, block);
            for (; place < row.places; ++place) run_tile<1, 1>(row, place, block);
        } else {
            for (; place + 4 <= row.places; place += 4) run_tile<4, 2>(row, place, block);
            for (; place + 2 <= row.places; place += 2) run_tile<2, 2>(row, place, block);
            for (; place < row.places; ++place) run_tile<1, 2>(row, place, block);
        }
    }
}

}  // namespace

extern const Kernels kAvx2Kernels{"x86_avx2", runs_here, count_differences, add_up, finish, spread, table_row};

}  // namespace dabnet
