// For 64-bit ARM processors, all of which have NEON.
//
// The tables are the same: `tbl` looks 16 bytes up in a table of 16. For 4 channels at two positions, with bits a and
// b, the table has popcount(a ^ w) + 16 popcount(b ^ w) for w = 0 .. 15, and the 4-bit weights of 16 filters are what
// is looked up: 128 products in one instruction. Padding counts 2, which is no difference on balance.
//
// Where one number or another is kept, a comparison chooses, as in plain C++: `fmax` would treat NaN otherwise.
#ifdef DABNET_NEON

#include <arm_neon.h>

#include <cstring>

#include "kernels.h"
#include "subsets.h"
#include "tables.h"
#include "vectors.h"

namespace dabnet {
namespace {

bool runs_here() { return true; }

std::uint32_t count_ones(std::uint64_t word) { return vaddv_u8(vcnt_u8(vcreate_u8(word))); }

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    uint32x4_t counts = vdupq_n_u32(0);
    std::size_t i = 0;
    for (; i + 2 <= words; i += 2) {
        const uint64x2_t differ = veorq_u64(vld1q_u64(a + i), vld1q_u64(b + i));
        counts = vpadalq_u16(counts, vpaddlq_u8(vcntq_u8(vreinterpretq_u8_u64(differ))));
    }
    return vaddvq_u32(counts) + (i < words ? count_ones(a[i] ^ b[i]) : 0);
}

void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums) {
    const std::size_t count = (channels + 63) / 64;
    for (std::size_t position = 0; position < positions; ++position, words += count) {
        std::int32_t ones = 0;
        for (std::size_t i = 0; i < count; ++i) ones += static_cast<std::int32_t>(count_ones(words[i]));
        sums[position] = 2 * ones - static_cast<std::int32_t>(channels);
    }
}

void spread_bits(const std::uint64_t* words, std::size_t nibbles, std::uint8_t* out) {
    for (std::size_t start = 0; start < nibbles; start += 16, ++words) {
        const uint8x8_t bytes = vcreate_u8(*words);
        const uint8x8x2_t halves{{vand_u8(bytes, vdup_n_u8(15)), vshr_n_u8(bytes, 4)}};
        if (nibbles - start >= 16) {
            vst2_u8(out + start, halves);
        } else {
            std::uint8_t last[16];
            vst2_u8(last, halves);
            std::memcpy(out + start, last, nibbles - start);
        }
    }
}

void pair_nibbles(const std::uint8_t* a, const std::uint8_t* b, std::size_t count, std::uint16_t* out) {
    std::size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        const uint16x8_t states = vaddw_u8(vmull_u8(vld1_u8(a + i), vdup_n_u8(17)), vld1_u8(b + i));
        vst1q_u16(out + i, vshlq_n_u16(states, 4));
    }
    for (; i < count; ++i) out[i] = static_cast<std::uint16_t>(16 * (17 * a[i] + b[i]));
}

// The numbers of 8 filters.
struct Lanes {
    using Floats = float32x4x2_t;
    static constexpr std::size_t kFloats = 8;
    static constexpr bool kUnrolls = false;
    static constexpr bool kMasks = false;

    template <typename Function>
    static DABNET_INLINE Floats each(Function function) {
        return {{function(0), function(1)}};
    }

    static Floats load(const float* numbers) { return {{vld1q_f32(numbers), vld1q_f32(numbers + 4)}}; }
    static Floats load(const float* numbers, std::size_t count) {
        if (count == 8) return load(numbers);
        float some[8] = {};
        std::memcpy(some, numbers, count * sizeof(float));
        return load(some);
    }
    static void store(float* numbers, std::size_t count, Floats values) {
        float some[8];
        float* to = count == 8 ? numbers : some;
        vst1q_f32(to, values.val[0]);
        vst1q_f32(to + 4, values.val[1]);
        if (count != 8) std::memcpy(numbers, some, count * sizeof(float));
    }
    static Floats splat(float number) { return {{vdupq_n_f32(number), vdupq_n_f32(number)}}; }
    static Floats add(Floats a, Floats b) {
        return each([&](int h) { return vaddq_f32(a.val[h], b.val[h]); });
    }
    static Floats mul(Floats a, Floats b) {
        return each([&](int h) { return vmulq_f32(a.val[h], b.val[h]); });
    }
    static Floats clamp(Floats x, Floats low, Floats high) {
        return each([&](int h) {
            const float32x4_t above = vbslq_f32(vcgtq_f32(x.val[h], low.val[h]), x.val[h], low.val[h]);
            return vbslq_f32(vcltq_f32(above, high.val[h]), above, high.val[h]);
        });
    }
    static Floats above_zero(Floats x, Floats below) {
        return each([&](int h) { return vbslq_f32(vcgtzq_f32(x.val[h]), x.val[h], below.val[h]); });
    }
    static std::uint64_t at_least(Floats x, Floats y) {
        static constexpr std::uint16_t kBits[8] = {1, 2, 4, 8, 16, 32, 64, 128};
        const uint16x4_t low = vmovn_u32(vcgeq_f32(x.val[0], y.val[0]));
        const uint16x4_t high = vmovn_u32(vcgeq_f32(x.val[1], y.val[1]));
        return vaddvq_u16(vandq_u16(vcombine_u16(low, high), vld1q_u16(kBits)));
    }
    static DABNET_INLINE void quantize(const Quantization& job, std::size_t at, std::size_t count, Floats x) {
        const Floats low = splat(job.low), value = clamp(mul(x, splat(job.scale)), low, splat(job.high));
        int16x4_t halves[2];
        for (int h = 0; h < 2; ++h) {
            halves[h] = vmovn_s32(vsubq_s32(vcvtnq_s32_f32(value.val[h]), vcvtq_s32_f32(low.val[h])));
        }
        const uint8x8_t bytes = vqmovun_s16(vcombine_s16(halves[0], halves[1]));
        if (count == 8) return vst1_u8(job.out + at, bytes);
        std::uint8_t some[8];
        vst1_u8(some, bytes);
        std::memcpy(job.out + at, some, count);
    }

    using Bytes = uint8x16_t;
    using Words = uint16x8_t;
    static constexpr int kQuarters = 2;

    static Bytes bytes(const std::uint8_t* at) { return vld1q_u8(at); }
    static void store_bytes(std::uint8_t* at, Bytes x) { vst1q_u8(at, x); }
    static Bytes eight_bytes(std::uint64_t x) { return vcombine_u8(vcreate_u8(x), vcreate_u8(0)); }
    static Bytes with_sums_of_two(Bytes x) {
        const Words words = vreinterpretq_u16_u8(x);
        return vcombine_u8(vget_low_u8(x), vget_low_u8(vreinterpretq_u8_u16(vsraq_n_u16(words, words, 8))));
    }
    static Bytes add_bytes(Bytes a, Bytes b) { return vaddq_u8(a, b); }
    static Bytes lookup(Bytes table, Bytes which) { return vqtbl1q_u8(table, which); }
    static Bytes low_halves(Bytes x) { return vandq_u8(x, vdupq_n_u8(15)); }
    static Bytes high_halves(Bytes x) { return vshrq_n_u8(x, 4); }
    static Words zero_words() { return vdupq_n_u16(0); }
    static Words add_words(Words a, Bytes b) { return vaddq_u16(a, vreinterpretq_u16_u8(b)); }
    static Words add_odd(Words a, Bytes b) { return vsraq_n_u16(a, vreinterpretq_u16_u8(b), 8); }
    static void store_even(std::uint16_t* at, Words all, Words odd) {
        vst1q_u16(at, vsubq_u16(all, vshlq_n_u16(odd, 8)));
    }
    static void store_words(std::uint16_t* at, Words x) { vst1q_u16(at, x); }
    static Words add_each_two(Words a, Bytes b) { return vpadalq_u8(a, b); }
    static std::int32_t sum_words(Words x) { return static_cast<std::int32_t>(vaddlvq_u16(x)); }
    static DABNET_INLINE Floats dots(const SubsetConvJob& job, std::size_t filter, const std::uint32_t* lower,
                                     const std::uint32_t* upper, std::int32_t all) {
        return each([&](int h) {
            uint32x4_t subset = vld1q_u32(lower + 4 * h);
            if (upper != nullptr) subset = vaddq_u32(subset, vshlq_n_u32(vld1q_u32(upper + 4 * h), 4));
            const int32x4_t dots = vsubq_s32(vreinterpretq_s32_u32(vaddq_u32(subset, subset)), vdupq_n_s32(all));
            if (job.filter_shifts == nullptr) return vcvtq_f32_s32(dots);
            return vcvtq_f32_s32(vsubq_s32(dots, vld1q_s32(job.filter_shifts + filter + 4 * h)));
        });
    }
};

// The counts of `Pairs` pairs of positions and 16 * `Quarters` filters.
//
// A byte that was looked up holds two counts of up to 4, so two of them add up without a carry from one to the other.
// (Three would too, but take more registers than there are.) `both` is the sum of all such bytes, modulo 256, and
// `second` the sum of their upper halves, so that the first position's count is both - 16 second. Both counts stay
// below 256 for 31 bytes of weights, two nibbles each; then they move on to 16 bits.
template <int Pairs, int Quarters>
struct Tile {
    static constexpr std::size_t kMost = 31;

    uint8x16_t both[Pairs][Quarters], second[Pairs][Quarters];
    std::uint16_t counts[2 * Pairs][64];

    void run(const LutConvJob& job, const Pair* pairs) {
        std::memset(counts, 0, sizeof counts);
        clear();
        const std::uint16_t* taps[Pairs];
        for (int p = 0; p < Pairs; ++p) taps[p] = job.input + pairs[p].start;
        std::size_t room = kMost;
        const std::uint8_t* weights = job.weights;
        weights = lut_all<3>(taps, job.sixes, job.six_count, weights, room);
        lut_all<1>(taps, job.twos, job.two_count, weights, room);
        widen();
    }

    // Goes through a list of positions where `Lines` times two nibbles stand; returns where the weights for them end.
    template <int Lines>
    const std::uint8_t* lut_all(const std::uint16_t* const* taps, const std::uint32_t* offsets, std::size_t count,
                                const std::uint8_t* weights, std::size_t& room) {
        for (std::size_t done = 0, times; done < count; done += times) {
            if (room < Lines) {
                widen();
                room = kMost;
            }
            times = room / Lines < count - done ? room / Lines : count - done;
            accumulate<Lines>(taps, offsets + done, weights, times);
            weights += 64 * Lines * times;
            room -= Lines * times;
        }
        return weights;
    }

    void clear() {
        for (int p = 0; p < Pairs; ++p) {
            for (int q = 0; q < Quarters; ++q) both[p][q] = second[p][q] = vdupq_n_u8(0);
        }
    }

    // Adds the counts of `times` times `Lines` times two nibbles.
    template <int Lines>
    inline __attribute__((always_inline)) void accumulate(const std::uint16_t* const* taps,
                                                          const std::uint32_t* offsets, const std::uint8_t* weights,
                                                          std::size_t times) {
        uint8x16_t all[Pairs][Quarters], upper[Pairs][Quarters];
        std::memcpy(all, both, sizeof all);
        std::memcpy(upper, second, sizeof upper);
        for (; times != 0; --times, ++offsets) {
            for (int line = 0; line < Lines; ++line, weights += 64) {
                uint8x16_t tables[Pairs][2];
                for (int p = 0; p < Pairs; ++p) {
                    const std::uint16_t* at = taps[p] + *offsets + 2 * line;
                    for (int i = 0; i < 2; ++i) tables[p][i] = vld1q_u8(&kTables.rows[0][0] + at[i]);
                }
#pragma GCC unroll 4
                for (int q = 0; q < Quarters; ++q) {
                    const uint8x16_t bytes = vld1q_u8(weights + 16 * q);
                    const uint8x16_t low = vandq_u8(bytes, vdupq_n_u8(15)), high = vshrq_n_u8(bytes, 4);
#pragma GCC unroll 4
                    for (int p = 0; p < Pairs; ++p) {
                        const uint8x16_t found =
                            vaddq_u8(vqtbl1q_u8(tables[p][0], low), vqtbl1q_u8(tables[p][1], high));
                        all[p][q] = vaddq_u8(all[p][q], found);
                        upper[p][q] = vsraq_n_u8(upper[p][q], found, 4);
                    }
                }
            }
        }
        std::memcpy(both, all, sizeof all);
        std::memcpy(second, upper, sizeof upper);
    }

    void widen() {
        for (int p = 0; p < Pairs; ++p) {
            for (int q = 0; q < Quarters; ++q) {
                const int first = q / 2 * 32 + q % 2 * 8;
                add_bytes(counts[2 * p] + first, vsubq_u8(both[p][q], vshlq_n_u8(second[p][q], 4)));
                add_bytes(counts[2 * p + 1] + first, second[p][q]);
            }
        }
        clear();
    }

    // Even bytes are 8 filters, odd ones the 8 that come 16 later.
    static void add_bytes(std::uint16_t* counts, uint8x16_t bytes) {
        const uint16x8_t two = vreinterpretq_u16_u8(bytes);
        vst1q_u16(counts, vaddq_u16(vld1q_u16(counts), vandq_u16(two, vdupq_n_u16(255))));
        vst1q_u16(counts + 16, vsraq_n_u16(vld1q_u16(counts + 16), two, 8));
    }
};

template <typename Kind>
void epilogue_of_counts(const LutConvJob& job, std::size_t position, std::size_t n, const std::uint16_t* counts) {
    const int16x8_t base = vdupq_n_s16(job.bases[position]);
    const Lanes::Floats sum = Lanes::splat(job.offset == nullptr ? 0.0f : static_cast<float>(job.sums[position]));
    run_epilogue<Lanes, Kind>(
        *job.epilogue, position, job.first_filter, n, [&](std::size_t i) __attribute__((always_inline)) {
            const int16x8_t dots = vsubq_s16(base, vreinterpretq_s16_u16(vshlq_n_u16(vld1q_u16(counts + i), 1)));
            const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(dots)));
            const float32x4_t high = vcvtq_f32_s32(vmovl_high_s16(dots));
            const std::size_t filter = job.first_filter + i;
            return scaled<Lanes>(job, filter, {{low, high}}, sum);
        });
}

template <int Pairs, int Quarters>
void run_tile(const LutConvJob& job, const Pair* pairs, std::size_t n) {
    Tile<Pairs, Quarters> tile;
    tile.run(job, pairs);
    const std::uint16_t (*counts)[64] = tile.counts;
    for (const Pair* pair = pairs; pair != pairs + Pairs; ++pair, counts += 2) {
        const auto epilogue_at =
            job.epilogue->signs_count == 1 ? epilogue_of_counts<AnyEpilogue<1>> : epilogue_of_counts<AnyEpilogue<>>;
        epilogue_at(job, pair->first, n, counts[0]);
        if (pair->second != pair->first) epilogue_at(job, pair->second, n, counts[1]);
    }
}

void lut_conv(const LutConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    std::size_t pair = 0;
    if (n <= 32) {
        for (; pair + 4 <= job.pair_count; pair += 4) run_tile<4, 2>(job, job.pairs + pair, n);
        for (; pair < job.pair_count; ++pair) run_tile<1, 2>(job, job.pairs + pair, n);
    } else {
        for (; pair + 2 <= job.pair_count; pair += 2) run_tile<2, 4>(job, job.pairs + pair, n);
        for (; pair < job.pair_count; ++pair) run_tile<1, 4>(job, job.pairs + pair, n);
    }
}

void make_sums(const float* channels, std::size_t positions, std::size_t count, float* out) {
    for (; positions != 0; --positions, channels += count) {
        std::size_t i = 0;
        for (; i + 12 <= count; i += 12, out += 16) {
            const float32x4x3_t xyz = vld3q_f32(channels + i);
            const float32x4_t plus = vaddq_f32(xyz.val[0], xyz.val[1]), minus = vsubq_f32(xyz.val[0], xyz.val[1]);
            const float32x4x4_t sums{{vaddq_f32(plus, xyz.val[2]), vaddq_f32(minus, xyz.val[2]),
                                      vsubq_f32(plus, xyz.val[2]), vsubq_f32(minus, xyz.val[2])}};
            vst4q_f32(out, sums);
        }
        for (; i < count; i += 3, out += 4) {
            const float x = channels[i], y = i + 1 < count ? channels[i + 1] : 0,
                        z = i + 2 < count ? channels[i + 2] : 0;
            out[0] = (x + y) + z;
            out[1] = (x - y) + z;
            out[2] = (x + y) - z;
            out[3] = (x - y) - z;
        }
    }
}

// Adds the sums of `Positions` positions and 16 filters to their totals. A filter's pattern, four times, becomes the
// positions of a number's 4 bytes: `tbl` picks one of four sums for each filter.
template <int Positions>
void sum_conv_tile(const SumConvJob& job, std::size_t position, const std::uint8_t* patterns, float* totals) {
    const uint8x16_t bytes_of_number = vreinterpretq_u8_u32(vdupq_n_u32(0x03020100));
    const uint8x16_t sign = vreinterpretq_u8_u32(vdupq_n_u32(0x80000000));
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const float* taps[Positions];
        for (int p = 0; p < Positions; ++p) {
            taps[p] = job.input + job.starts[position + static_cast<std::size_t>(p)] + job.runs[run];
        }
        for (std::size_t from = 0; from < job.run_length; from += kSumPart) {
            const std::size_t to = job.run_length - from < kSumPart ? job.run_length : from + kSumPart;
            float32x4_t part[Positions][4];
            for (int p = 0; p < Positions; ++p) {
                for (int q = 0; q < 4; ++q) part[p][q] = vdupq_n_f32(0);
            }
            for (std::size_t triple = from; triple < to; ++triple, patterns += 16) {
                uint8x16_t sums[Positions];
                for (int p = 0; p < Positions; ++p) sums[p] = vreinterpretq_u8_f32(vld1q_f32(taps[p] + 4 * triple));
                const uint8x16_t once = vandq_u8(vld1q_u8(patterns), vdupq_n_u8(0x83));
                const uint8x16x2_t twice = vzipq_u8(once, once);
#pragma GCC unroll 4
                for (int q = 0; q < 4; ++q) {
                    const uint8x16_t half = twice.val[q / 2];
                    const uint8x16_t four = q % 2 == 0 ? vzip1q_u8(half, half) : vzip2q_u8(half, half);
                    const uint8x16_t which = vsliq_n_u8(bytes_of_number, four, 2), minus = vandq_u8(four, sign);
#pragma GCC unroll 4
                    for (int p = 0; p < Positions; ++p) {
                        const uint8x16_t sum = veorq_u8(vqtbl1q_u8(sums[p], which), minus);
                        part[p][q] = vaddq_f32(part[p][q], vreinterpretq_f32_u8(sum));
                    }
                }
            }
            for (int p = 0; p < Positions; ++p) {
                for (int q = 0; q < 4; ++q) {
                    float* total = totals + 64 * p + 4 * q;
                    vst1q_f32(total, vaddq_f32(vld1q_f32(total), part[p][q]));
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
    for (; position + 4 <= end; position += 4) sum_conv_at<4>(job, position, n);
    for (; position < end; ++position) sum_conv_at<1>(job, position, n);
}

void float_max(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    std::size_t c = 0;
    for (; c + 4 <= channels; c += 4) {
        float32x4_t most = vld1q_f32(x[0] + c);
        for (std::size_t i = 1; i < count; ++i) {
            const float32x4_t other = vld1q_f32(x[i] + c);
            most = vbslq_f32(vcgtq_f32(other, most), other, most);
        }
        vst1q_f32(y + c, most);
    }
    for (; c < channels; ++c) {
        float most = x[0][c];
        for (std::size_t i = 1; i < count; ++i) most = x[i][c] > most ? x[i][c] : most;
        y[c] = most;
    }
}

}  // namespace

extern const Kernels kNeonKernels{
    "arm_neon",   runs_here, count_differences, sum_signs, float_conv<Lanes, 8, 2>, float_epilogue<Lanes>, spread_bits,
    pair_nibbles, lut_conv,  make_sums,         sum_conv,  make_subset_sums<Lanes>, subset_conv<Lanes>,    float_max};

}  // namespace dabnet

#endif
