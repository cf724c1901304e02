// For WebAssembly with 128-bit SIMD, which every engine has had since 2021.
//
// The tables are the same: `i8x16.swizzle` looks 16 bytes up in a table of 16. For 4 channels at two positions, with
// bits a and b, the table has popcount(a ^ w) + 16 popcount(b ^ w) for w = 0 .. 15, and the 4-bit weights of 16 filters
// are what is looked up: 128 products in one instruction. Padding counts 2, which is no difference on balance.
//
// Where one number or another is kept, a comparison chooses, as in plain C++: pmax(a, b) is a < b ? b : a, and
// pmin(a, b) is b < a ? b : a. `max` and `min` would treat NaN otherwise.
#include <wasm_simd128.h>

#include <cstring>

#include "kernels.h"
#include "subsets.h"
#include "tables.h"
#include "vectors.h"

namespace dabnet {
namespace {

bool runs_here() { return true; }

std::int32_t count_ones(std::uint64_t word) { return __builtin_popcountll(word); }

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    v128_t counts = wasm_i32x4_splat(0);
    std::size_t i = 0;
    for (; i + 2 <= words; i += 2) {
        const v128_t ones = wasm_i8x16_popcnt(wasm_v128_xor(wasm_v128_load(a + i), wasm_v128_load(b + i)));
        counts = wasm_i32x4_add(counts, wasm_u32x4_extadd_pairwise_u16x8(wasm_u16x8_extadd_pairwise_u8x16(ones)));
    }
    const std::uint32_t count = wasm_u32x4_extract_lane(counts, 0) + wasm_u32x4_extract_lane(counts, 1) +
                                wasm_u32x4_extract_lane(counts, 2) + wasm_u32x4_extract_lane(counts, 3);
    return count + (i < words ? static_cast<std::uint32_t>(count_ones(a[i] ^ b[i])) : 0);
}

void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums) {
    const std::size_t count = (channels + 63) / 64;
    for (std::size_t position = 0; position < positions; ++position, words += count) {
        std::int32_t ones = 0;
        for (std::size_t i = 0; i < count; ++i) ones += count_ones(words[i]);
        sums[position] = 2 * ones - static_cast<std::int32_t>(channels);
    }
}

void spread_bits(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out) {
    for (std::size_t start = 0; start < nibbles; start += 16, ++words) {
        const v128_t bytes = wasm_v128_load64_zero(words);
        const v128_t halves = wasm_v128_and(
            wasm_i8x16_shuffle(bytes, wasm_u16x8_shr(bytes, 4), 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
            wasm_i8x16_splat(15));
        if (nibbles - start >= 16) {
            wasm_v128_store(out + start, halves);
        } else {
            std::uint8_t last[16];
            wasm_v128_store(last, halves);
            std::memcpy(out + start, last, nibbles - start);
        }
    }
}

void pair_nibbles(const std::uint8_t* a, const std::uint8_t* b, std::size_t count, std::uint16_t* out) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const v128_t x = wasm_u16x8_load8x8(a + i), y = wasm_u16x8_load8x8(b + i);
        const v128_t states = wasm_i16x8_add(wasm_i16x8_add(wasm_i16x8_shl(x, 4), x), y);
        wasm_v128_store(out + i, wasm_i16x8_shl(states, 4));
    }
    for (; i < count; ++i) out[i] = static_cast<std::uint16_t>(16 * (17 * a[i] + b[i]));
}

// The numbers of 8 filters.
struct Lanes {
    struct Floats {
        v128_t half[2];
    };
    static constexpr std::size_t kFloats = 8;
    static constexpr bool kUnrolls = false;
    static constexpr bool kMasks = false;

    template <typename Function>
    static DABNET_INLINE Floats each(Function function) {
        return {{function(0), function(1)}};
    }

    static Floats load(const float* numbers) { return {{wasm_v128_load(numbers), wasm_v128_load(numbers + 4)}}; }
    static Floats load(const float* numbers, std::size_t count) {
        if (count == 8) return load(numbers);
        float some[8] = {};
        std::memcpy(some, numbers, count * sizeof(float));
        return load(some);
    }
    static void store(float* numbers, std::size_t count, const Floats& values) {
        float some[8];
        float* to = count == 8 ? numbers : some;
        wasm_v128_store(to, values.half[0]);
        wasm_v128_store(to + 4, values.half[1]);
        if (count != 8) std::memcpy(numbers, some, count * sizeof(float));
    }
    static Floats splat(float number) { return {{wasm_f32x4_splat(number), wasm_f32x4_splat(number)}}; }
    static Floats add(const Floats& a, const Floats& b) {
        return each([&](int h) { return wasm_f32x4_add(a.half[h], b.half[h]); });
    }
    static Floats mul(const Floats& a, const Floats& b) {
        return each([&](int h) { return wasm_f32x4_mul(a.half[h], b.half[h]); });
    }
    static Floats clamp(const Floats& x, const Floats& low, const Floats& high) {
        return each([&](int h) { return wasm_f32x4_pmin(high.half[h], wasm_f32x4_pmax(low.half[h], x.half[h])); });
    }
    static Floats above_zero(const Floats& x, const Floats& below) {
        return each([&](int h) {
            return wasm_v128_bitselect(x.half[h], below.half[h], wasm_f32x4_gt(x.half[h], wasm_f32x4_splat(0)));
        });
    }
    static std::uint64_t at_least(const Floats& x, const Floats& y) {
        return wasm_i32x4_bitmask(wasm_f32x4_ge(x.half[0], y.half[0])) |
               wasm_i32x4_bitmask(wasm_f32x4_ge(x.half[1], y.half[1])) << 4;
    }
    static void quantize(const Quantization& job, std::size_t at, std::size_t count, const Floats& x) {
        const Floats low = splat(job.low), value = clamp(mul(x, splat(job.scale)), low, splat(job.high));
        v128_t halves[2];
        for (int h = 0; h < 2; ++h) {
            const v128_t number = wasm_f32x4_sub(wasm_f32x4_nearest(value.half[h]), low.half[h]);
            halves[h] = wasm_i32x4_trunc_sat_f32x4(number);
        }
        const v128_t words = wasm_i16x8_narrow_i32x4(halves[0], halves[1]);
        const v128_t bytes = wasm_u8x16_narrow_i16x8(words, words);
        if (count == 8) return wasm_v128_store64_lane(job.out + at, bytes, 0);
        std::uint8_t some[16];
        wasm_v128_store(some, bytes);
        std::memcpy(job.out + at, some, count);
    }

    using Bytes = v128_t;
    using Words = v128_t;
    static constexpr int kQuarters = 2;

    static Bytes bytes(const std::uint8_t* at) { return wasm_v128_load(at); }
    static void store_bytes(std::uint8_t* at, Bytes x) { wasm_v128_store(at, x); }
    static Bytes eight_bytes(std::uint64_t x) { return wasm_i64x2_make(static_cast<std::int64_t>(x), 0); }
    static Bytes with_sums_of_two(Bytes x) {
        return wasm_i64x2_shuffle(x, wasm_i8x16_add(x, wasm_u16x8_shr(x, 8)), 0, 2);
    }
    static Bytes add_bytes(Bytes a, Bytes b) { return wasm_i8x16_add(a, b); }
    static Bytes lookup(Bytes table, Bytes which) { return wasm_i8x16_swizzle(table, which); }
    static Bytes low_halves(Bytes x) { return wasm_v128_and(x, wasm_i8x16_splat(15)); }
    static Bytes high_halves(Bytes x) { return low_halves(wasm_u16x8_shr(x, 4)); }  // u8x16.shr is slower in V8
    static Words zero_words() { return wasm_i16x8_splat(0); }
    static Words add_words(Words a, Bytes b) { return wasm_i16x8_add(a, b); }
    static Words add_odd(Words a, Bytes b) { return wasm_i16x8_add(a, wasm_u16x8_shr(b, 8)); }
    static void store_even(std::uint16_t* at, Words all, Words odd) {
        wasm_v128_store(at, wasm_i16x8_sub(all, wasm_i16x8_shl(odd, 8)));
    }
    static void store_words(std::uint16_t* at, Words x) { wasm_v128_store(at, x); }
    static Words add_each_two(Words a, Bytes b) { return wasm_i16x8_add(a, wasm_u16x8_extadd_pairwise_u8x16(b)); }
    static std::int32_t sum_words(Words x) {
        const v128_t sums = wasm_u32x4_extadd_pairwise_u16x8(x);
        return wasm_i32x4_extract_lane(sums, 0) + wasm_i32x4_extract_lane(sums, 1) + wasm_i32x4_extract_lane(sums, 2) +
               wasm_i32x4_extract_lane(sums, 3);
    }
    static DABNET_INLINE Floats dots(const SubsetConvJob& job, std::size_t filter, const std::uint32_t* lower,
                                     const std::uint32_t* upper, std::int32_t all) {
        return each([&](int h) {
            v128_t subset = wasm_v128_load(lower + 4 * h);
            if (upper != nullptr) subset = wasm_i32x4_add(subset, wasm_i32x4_shl(wasm_v128_load(upper + 4 * h), 4));
            v128_t dots = wasm_i32x4_sub(wasm_i32x4_add(subset, subset), wasm_i32x4_splat(all));
            if (job.filter_shifts != nullptr) {
                dots = wasm_i32x4_sub(dots, wasm_v128_load(job.filter_shifts + filter + 4 * h));
            }
            return wasm_f32x4_convert_i32x4(dots);
        });
    }
};

// The counts of `Pairs` pairs of positions and 16 * `Quarters` filters from quarter `from` on.
//
// A byte that was looked up holds two counts of up to 4, so three of them add up without a carry from one to the other.
// `both` is the sum of all such bytes, modulo 256, and `second` the sum of their upper halves, so that the first
// position's count is both - 16 second. Both counts stay below 256 for 63 nibbles; then they move on to 16
// bits.
template <int Pairs, int Quarters>
struct Tile {
    static constexpr std::size_t kMost = 63;

    v128_t both[Pairs][Quarters], second[Pairs][Quarters];
    std::uint16_t (*counts)[64];  // of the two positions of each pair

    void run(const LutConvJob& job, const Pair* pairs, std::size_t from) {
        clear();
        const std::uint16_t* taps[Pairs];
        for (int p = 0; p < Pairs; ++p) taps[p] = job.input + pairs[p].start;
        const std::uint8_t* weights = job.weights + 16 * from;
        std::size_t pending = 0;
        bool is_first = true;
        const auto make_room = [&](std::size_t nibbles) {
            if (pending + nibbles <= kMost) return;
            widen(from, is_first);
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
        widen(from, is_first);
    }

    void clear() {
        for (int p = 0; p < Pairs; ++p) {
            for (int q = 0; q < Quarters; ++q) both[p][q] = second[p][q] = wasm_i8x16_splat(0);
        }
    }

    // Adds the counts of `times` times `Nibbles` nibbles, `Part` at a time.
    template <int Nibbles, int Part>
    inline __attribute__((always_inline)) void accumulate(const std::uint16_t* const* taps,
                                                          const std::uint32_t* offsets, const std::uint8_t* weights,
                                                          std::size_t times) {
        const v128_t low = wasm_i8x16_splat(15);
        v128_t all[Pairs][Quarters], upper[Pairs][Quarters];
        std::memcpy(all, both, sizeof all);
        std::memcpy(upper, second, sizeof upper);
        for (; times != 0; --times, ++offsets, weights += 32 * Nibbles) {
            const std::uint16_t* at[Pairs];
            for (int p = 0; p < Pairs; ++p) at[p] = taps[p] + *offsets;
#pragma GCC unroll 2
            for (int start = 0; start < Nibbles; start += Part) {
                v128_t part[Pairs][Quarters];
#pragma GCC unroll 3
                for (int nibble = start; nibble < start + Part; ++nibble) {
                    v128_t weight[Quarters];
#pragma GCC unroll 4
                    for (int q = 0; q < Quarters; ++q) {
                        const v128_t byte = wasm_v128_load(weights + nibble / 2 * 64 + 16 * q);
                        weight[q] = wasm_v128_and(nibble % 2 == 0 ? byte : wasm_u16x8_shr(byte, 4), low);
                    }
#pragma GCC unroll 4
                    for (int p = 0; p < Pairs; ++p) {
                        const v128_t table = wasm_v128_load(&kTables.rows[0][0] + at[p][nibble]);
#pragma GCC unroll 4
                        for (int q = 0; q < Quarters; ++q) {
                            const v128_t found = wasm_i8x16_swizzle(table, weight[q]);
                            part[p][q] = nibble == start ? found : wasm_i8x16_add(part[p][q], found);
                        }
                    }
                }
#pragma GCC unroll 4
                for (int p = 0; p < Pairs; ++p) {
#pragma GCC unroll 4
                    for (int q = 0; q < Quarters; ++q) {
                        const v128_t half = wasm_v128_and(wasm_u16x8_shr(part[p][q], 4), low);
                        all[p][q] = wasm_i8x16_add(all[p][q], part[p][q]);
                        upper[p][q] = wasm_i8x16_add(upper[p][q], half);
                    }
                }
            }
        }
        std::memcpy(both, all, sizeof all);
        std::memcpy(second, upper, sizeof upper);
    }

    // Moves the counts on to 16 bits; the first ones are put there, later ones added.
    void widen(std::size_t from, bool is_first) {
        const v128_t upper_halves = wasm_i8x16_splat(static_cast<char>(0xf0));
        for (int p = 0; p < Pairs; ++p) {
            for (std::size_t q = 0; q < Quarters; ++q) {
                const std::size_t first = (from + q) / 2 * 32 + (from + q) % 2 * 8;
                const v128_t sixteen = wasm_v128_and(wasm_i16x8_shl(second[p][q], 4), upper_halves);
                move_bytes(counts[2 * p] + first, wasm_i8x16_sub(both[p][q], sixteen), is_first);
                move_bytes(counts[2 * p + 1] + first, second[p][q], is_first);
            }
        }
        clear();
    }

    // Even bytes are 8 filters, odd ones the 8 that come 16 later.
    static void move_bytes(std::uint16_t* to, v128_t bytes, bool is_first) {
        const v128_t even = wasm_v128_and(bytes, wasm_i16x8_splat(255)), odd = wasm_u16x8_shr(bytes, 8);
        wasm_v128_store(to, is_first ? even : wasm_i16x8_add(wasm_v128_load(to), even));
        wasm_v128_store(to + 16, is_first ? odd : wasm_i16x8_add(wasm_v128_load(to + 16), odd));
    }
};

template <typename Kind>
void epilogue_of_counts(const LutConvJob& job, std::size_t position, std::size_t n, const std::uint16_t* counts) {
    const v128_t base = wasm_i16x8_splat(job.bases[position]);
    const Lanes::Floats sum = Lanes::splat(job.offset == nullptr ? 0.0f : static_cast<float>(job.sums[position]));
    run_epilogue<Lanes, Kind>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            const v128_t dots = wasm_i16x8_sub(base, wasm_i16x8_shl(wasm_v128_load(counts + i), 1));
            const v128_t low = wasm_f32x4_convert_i32x4(wasm_i32x4_extend_low_i16x8(dots));
            const v128_t high = wasm_f32x4_convert_i32x4(wasm_i32x4_extend_high_i16x8(dots));
            const std::size_t filter = job.first_filter + i;
            return scaled<Lanes>(job, filter, {{low, high}}, sum);
        });
}

template <int Pairs>
void run_tile(const LutConvJob& job, const Pair* pairs, std::size_t n) {
    constexpr int kQuarters = 2;
    std::uint16_t counts[2 * Pairs][64];
    for (std::size_t from = 0; 16 * from < n; from += kQuarters) {
        Tile<Pairs, kQuarters> tile;
        tile.counts = counts;
        tile.run(job, pairs, from);
    }
    const std::uint16_t (*found)[64] = counts;
    for (const Pair* pair = pairs; pair != pairs + Pairs; ++pair, found += 2) {
        const auto epilogue_at =
            job.epilogue->signs_count == 1 ? epilogue_of_counts<AnyEpilogue<1>> : epilogue_of_counts<AnyEpilogue<>>;
        epilogue_at(job, pair->first, n, found[0]);
        if (pair->second != pair->first) epilogue_at(job, pair->second, n, found[1]);
    }
}

void lut_conv(const LutConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    std::size_t pair = 0;
    for (; pair + 2 <= job.pair_count; pair += 2) run_tile<2>(job, job.pairs + pair, n);
    if (pair < job.pair_count) run_tile<1>(job, job.pairs + pair, n);
}

void make_sums(const float* x, std::size_t positions, std::size_t channels, float* out) {
    for (; positions != 0; --positions, x += channels) {
        for (std::size_t i = 0; i < channels; i += 3, out += 4) {
            const float y = i + 1 < channels ? x[i + 1] : 0, z = i + 2 < channels ? x[i + 2] : 0;
            out[0] = (x[i] + y) + z;
            out[1] = (x[i] - y) + z;
            out[2] = (x[i] + y) - z;
            out[3] = (x[i] - y) - z;
        }
    }
}

// Adds the sums of `Positions` positions and 16 filters to their totals. A filter's pattern, four times, becomes the
// positions of a number's 4 bytes: a swizzle picks one of four sums for each filter.
template <int Positions>
void sum_conv_tile(const SumConvJob& job, std::size_t position, const std::uint8_t* patterns, float* totals) {
    const v128_t bytes_of_number = wasm_i32x4_splat(0x03020100), sign = wasm_i32x4_splat(INT32_MIN);
    const v128_t four_times = wasm_i8x16_const(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const float* taps[Positions];
        for (int p = 0; p < Positions; ++p) {
            taps[p] = job.input + job.starts[position + static_cast<std::size_t>(p)] + job.runs[run];
        }
        for (std::size_t from = 0; from < job.run_length; from += kSumPart) {
            const std::size_t to = job.run_length - from < kSumPart ? job.run_length : from + kSumPart;
            v128_t part[Positions][4];
            for (int p = 0; p < Positions; ++p) {
                for (int q = 0; q < 4; ++q) part[p][q] = wasm_f32x4_splat(0);
            }
            for (std::size_t triple = from; triple < to; ++triple, patterns += 16) {
                v128_t sums[Positions];
                for (int p = 0; p < Positions; ++p) sums[p] = wasm_v128_load(taps[p] + 4 * triple);
#pragma GCC unroll 4
                for (int q = 0; q < 4; ++q) {
                    const v128_t four = wasm_i8x16_swizzle(wasm_v128_load32_zero(patterns + 4 * q), four_times);
                    const v128_t number = wasm_i16x8_shl(wasm_v128_and(four, wasm_i8x16_splat(3)), 2);
                    const v128_t which = wasm_v128_or(bytes_of_number, number), minus = wasm_v128_and(four, sign);
#pragma GCC unroll 4
                    for (int p = 0; p < Positions; ++p) {
                        const v128_t sum = wasm_v128_xor(wasm_i8x16_swizzle(sums[p], which), minus);
                        part[p][q] = wasm_f32x4_add(part[p][q], sum);
                    }
                }
            }
            for (int p = 0; p < Positions; ++p) {
                for (int q = 0; q < 4; ++q) {
                    float* total = totals + 64 * p + 4 * q;
                    wasm_v128_store(total, wasm_f32x4_add(wasm_v128_load(total), part[p][q]));
                }
            }
        }
    }
}

template <int Positions>
void sum_conv_at(const SumConvJob& job, std::size_t position, std::size_t n) {
    float totals[Positions][64] = {};
    const std::size_t block = job.run_count * job.run_length * 16;
    for (std::size_t i = 0; i < n; i += 16) {
        sum_conv_tile<Positions>(job, position, job.patterns + i / 16 * block, totals[0] + i);
    }
    for (int p = 0; p < Positions; ++p, ++position) {
        const Lanes::Floats sum = Lanes::splat(job.offset == nullptr ? 0.0f : job.sums[position]);
        run_epilogue<Lanes, AnyEpilogue<>>(*job.epilogue, position, job.first_filter, n,
                                           [&](std::size_t i) __attribute__((always_inline)) {
                                               const std::size_t filter = job.first_filter + i;
                                               return scaled<Lanes>(job, filter, Lanes::load(totals[p] + i), sum);
                                           });
    }
}

void sum_conv(const SumConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    std::size_t position = job.first_position;
    const std::size_t end = position + job.positions;
    for (; position + 2 <= end; position += 2) sum_conv_at<2>(job, position, n);
    if (position < end) sum_conv_at<1>(job, position, n);
}

void float_max(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    std::size_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        v128_t most = wasm_v128_load(x[0] + c);
        for (std::size_t i = 1; i < count; ++i) most = wasm_f32x4_pmax(most, wasm_v128_load(x[i] + c));
        wasm_v128_store(y + c, most);
    }
    for (; c < channels; ++c) {
        float most = x[0][c];
        for (std::size_t i = 1; i < count; ++i) most = x[i][c] > most ? x[i][c] : most;
        y[c] = most;
    }
}

}  // namespace

extern const Kernels kWasmKernels{
    "wasm_simd",  runs_here, count_differences, sum_signs, float_conv<Lanes, 4, 2>, float_epilogue<Lanes>, spread_bits,
    pair_nibbles, lut_conv,  make_sums,         sum_conv,  make_subset_sums<Lanes>, subset_conv<Lanes>,    float_max};

}  // namespace dabnet
