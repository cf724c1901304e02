// Loops that several kinds of processors share, over a type `V` that each file has of its own: the numbers of a few
// filters side by side, and what is done with them. Where the file stands, `V` is in an unnamed namespace, so that no
// linker takes one file's copy of a template for another's: it might need instructions that the processor has not.
//
//     Floats, kFloats              8 or 16 real numbers
//     kUnrolls                     whether loops over 64 filters are unrolled
//     kMasks                       whether some numbers are loaded and stored as fast as all
//     load(p), load(p, count)      all of them, or the first ones; the others are 0
//     store(p, count, x)
//     splat(number), add, mul      each rounded
//     clamp(x, low, high)          low where x is not above it, NaN included; high where x is not below it
//     above_zero(x, below)         x > 0 ? x : below
//     at_least(x, y)               a bit for each number
//     quantize(job, at, count, x)  stores the first ones as bytes
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels.h"

namespace dabnet {

#define DABNET_INLINE inline __attribute__((always_inline))

// An epilogue whose kind is fixed at compile time, so that its branches are gone: how many signs are taken of the sum
// (`Early`) and at the end (`Late`), whether something is added, whether real numbers are kept, whether there are
// affines, and how many times whole numbers are made. `AnyEpilogue` looks at all of this at run time; with one sign,
// its bits are in a register.
template <std::size_t Early, std::size_t Late, bool Adds, bool Real, bool Affines, std::size_t Quantized = 0>
struct FixedEpilogue {
    static constexpr bool kIsAny = false;
    static constexpr std::size_t kQuantized = Quantized;
    static constexpr std::size_t kEarly = Early, kLate = Late, kSigns = Early + Late;
    static constexpr bool kAdds = Adds, kReal = Real, kAffines = Affines;
};
template <std::size_t Signs = kMostSigns>
struct AnyEpilogue {
    static constexpr bool kIsAny = true;
    static constexpr std::size_t kQuantized = kMostQuantized;
    static constexpr std::size_t kEarly = 0, kLate = 0, kSigns = Signs;
    static constexpr bool kAdds = true, kReal = true, kAffines = true;
};

// An epilogue at work on one position: `apply` takes the numbers of a few filters at a time, in registers, and collects
// their signs, which `write_signs` writes.
template <typename V, typename Kind>
struct RunningEpilogue {
    using Floats = typename V::Floats;
    static constexpr bool kIsAny = Kind::kIsAny;

    std::conditional_t<kIsAny, const Epilogue&, const Epilogue>
        job;  // a copy is known not to change by what is written
    std::size_t position, first;
    std::uint64_t bits[Kind::kSigns == 0 ? 1 : Kind::kSigns] = {};

    RunningEpilogue(const Epilogue& epilogue, std::size_t position_number, std::size_t first_filter)
        : job(epilogue), position(position_number), first(first_filter) {}

    std::size_t early() const { return kIsAny ? job.early_signs : Kind::kEarly; }
    std::size_t signs() const { return kIsAny && Kind::kSigns != 1 ? job.signs_count : Kind::kSigns; }

    DABNET_INLINE void take_sign(std::size_t set, std::size_t i, Floats value) {
        bits[set] |= V::at_least(value, V::load(job.signs[set].threshold + first + i)) << i;
    }

    DABNET_INLINE Floats affine(const AffineArrays& arrays, std::size_t i, Floats value) const {
        if (!Kind::kAffines || (kIsAny && arrays.shift == nullptr)) return value;
        if (arrays.scale != nullptr) value = V::mul(V::load(arrays.scale + first + i), value);
        return V::add(value, V::load(arrays.shift + first + i));
    }

    DABNET_INLINE Floats activation(std::size_t i, Floats value) const {
        if (job.slope == nullptr) return V::clamp(value, V::splat(job.low), V::splat(job.high));
        return V::above_zero(value, V::mul(V::load(job.slope + first + i), value));
    }

    DABNET_INLINE void apply(std::size_t i, std::size_t count, Floats value) {
        const std::size_t at = position * job.filters + first + i;
        if (Kind::kAdds && (!kIsAny || job.added != nullptr)) value = V::add(value, V::load(job.added + at, count));
        for (std::size_t set = 0; set < early(); ++set) take_sign(set, i, value);
        if (!Kind::kReal && Kind::kLate == 0 && Kind::kQuantized == 0) return;
        if (kIsAny && job.real == nullptr && job.early_signs == job.signs_count && job.quantized_count == 0) return;
        value = affine(job.after, i, activation(i, affine(job.before, i, value)));
        for (std::size_t set = early(); set < signs(); ++set) take_sign(set, i, value);
        for (std::size_t set = 0; set < (kIsAny ? job.quantized_count : Kind::kQuantized); ++set) {
            V::quantize(job.quantized[set], at, count, value);
        }
        if (Kind::kReal && (!kIsAny || job.real != nullptr)) V::store(job.real + at, count, value);
    }

    DABNET_INLINE void write_signs(std::size_t n) {
        const std::uint64_t all = n < 64 ? (std::uint64_t{1} << n) - 1 : ~std::uint64_t{0};
        const std::size_t word = position * ((job.filters + 63) / 64) + first / 64;
        for (std::size_t set = 0; set < signs(); ++set) {
            std::uint64_t flip;
            std::memcpy(&flip, job.signs[set].flip + first / 8, sizeof flip);
            job.signs[set].out[word] = (bits[set] & all) ^ flip;
        }
    }
};

// Runs the epilogue for `n` filters from `first` on; `value(i)` returns the numbers of those from first + i on.
template <typename V, typename Kind, typename Value>
DABNET_INLINE void run_epilogue(const Epilogue& job, std::size_t position, std::size_t first, std::size_t n,
                                Value value) {
    constexpr std::size_t kStep = V::kFloats;
    RunningEpilogue<V, Kind> running(job, position, first);
    std::size_t i = 0;
    if (V::kUnrolls && n == 64) {
#pragma GCC unroll 8
        for (; i < 64; i += kStep) running.apply(i, kStep, value(i));
    } else if (V::kMasks) {
        for (; i < n; i += kStep) running.apply(i, n - i < kStep ? n - i : kStep, value(i));
    } else {
        for (; i + kStep <= n; i += kStep) running.apply(i, kStep, value(i));
        if (i < n) running.apply(i, n - i, value(i));
    }
    running.write_signs(n);
}

template <typename V, typename Kind>
void epilogue_of_values(const Epilogue& job, std::size_t position, std::size_t first, std::size_t n,
                        const float* values) {
    run_epilogue<V, Kind>(job, position, first, n, [&](std::size_t i) __attribute__((always_inline)) {
        return V::load(values + i, n - i < V::kFloats ? n - i : V::kFloats);
    });
}

// What mostly becomes of real numbers.
using OnlyReal = FixedEpilogue<0, 0, false, true, false>;
template <typename V>
bool makes_only_real(const Epilogue& epilogue) {
    return epilogue.signs_count == 0 && epilogue.added == nullptr && epilogue.before.shift == nullptr &&
           epilogue.after.shift == nullptr && epilogue.quantized_count == 0;
}

template <typename V>
void float_epilogue(const Epilogue& job, std::size_t position, std::size_t first, std::size_t n, const float* values) {
    makes_only_real<V>(job) ? epilogue_of_values<V, OnlyReal>(job, position, first, n, values)
                            : epilogue_of_values<V, AnyEpilogue<>>(job, position, first, n, values);
}

// Chooses among functions for kinds of epilogues, which `of(kind)` returns: fixed ones after a convolution of signs,
// for the blocks that networks have. RPReLU is two affines with an activation between them.
template <typename V, typename Of>
auto choose_after_signs(const Epilogue& epilogue, Of of) {
    const bool adds = epilogue.added != nullptr, real = epilogue.real != nullptr;
    const std::size_t early = epilogue.early_signs, late = epilogue.signs_count - early;
    if (epilogue.quantized_count != 0) return of(AnyEpilogue<>());
    if (epilogue.before.shift != nullptr && epilogue.after.shift != nullptr) {
        if (!adds || !real || early + late > 1) return of(AnyEpilogue<>());
        if (early == 1) return of(FixedEpilogue<1, 0, true, true, true>());
        return late == 1 ? of(FixedEpilogue<0, 1, true, true, true>()) : of(FixedEpilogue<0, 0, true, true, true>());
    }
    if (epilogue.before.shift != nullptr || epilogue.after.shift != nullptr || late != 0 || early > 2) {
        return of(AnyEpilogue<>());
    }
    if (early == 2) {
        if (!adds) return of(AnyEpilogue<>());
        return real ? of(FixedEpilogue<2, 0, true, true, false>()) : of(FixedEpilogue<2, 0, true, false, false>());
    }
    if (early == 0) return adds ? of(FixedEpilogue<0, 0, true, true, false>()) : of(OnlyReal());
    if (adds) {
        return real ? of(FixedEpilogue<1, 0, true, true, false>()) : of(FixedEpilogue<1, 0, true, false, false>());
    }
    return real ? of(FixedEpilogue<1, 0, false, true, false>()) : of(FixedEpilogue<1, 0, false, false, false>());
}

// The same after a convolution of whole numbers.
template <typename V, typename Of>
auto choose_after_numbers(const Epilogue& epilogue, Of of) {
    const bool adds = epilogue.added != nullptr, real = epilogue.real != nullptr;
    const std::size_t quantized = epilogue.quantized_count;
    if (epilogue.signs_count != 0 || quantized > 1 || (quantized == 0 && !real)) return of(AnyEpilogue<>());
    if (epilogue.before.shift != nullptr && epilogue.after.shift != nullptr) {
        if (!adds || !real) return of(AnyEpilogue<>());
        return quantized == 0 ? of(FixedEpilogue<0, 0, true, true, true>())
                              : of(FixedEpilogue<0, 0, true, true, true, 1>());
    }
    if (epilogue.before.shift != nullptr || epilogue.after.shift != nullptr) return of(AnyEpilogue<>());
    if (quantized == 0) return adds ? of(FixedEpilogue<0, 0, true, true, false>()) : of(OnlyReal());
    if (adds) {
        return real ? of(FixedEpilogue<0, 0, true, true, false, 1>())
                    : of(FixedEpilogue<0, 0, true, false, false, 1>());
    }
    return real ? of(FixedEpilogue<0, 0, false, true, false, 1>()) : of(FixedEpilogue<0, 0, false, false, false, 1>());
}

// (scale x + offset sum) + bias of the filters from `filter` on, each step rounded.
template <typename V, typename Job>
DABNET_INLINE typename V::Floats scaled(const Job& job, std::size_t filter, typename V::Floats x,
                                        typename V::Floats sum) {
    typename V::Floats value = V::mul(V::load(job.scale + filter), x);
    if (job.offset != nullptr) value = V::add(value, V::mul(V::load(job.offset + filter), sum));
    return job.bias == nullptr ? value : V::add(value, V::load(job.bias + filter));
}

// As the portable one, for `Vectors` times so many filters from `first` on; the sums of a part are in registers.
template <typename V, int Vectors>
void float_conv_block(const FloatConvJob& job, std::size_t first) {
    using Floats = typename V::Floats;
    constexpr std::size_t kStep = V::kFloats;
    float* sums = job.sums + first;
    for (std::size_t i = 0; i < Vectors * kStep; ++i) sums[i] = job.bias[first + i];
    for (std::size_t part = 0, term = 0; part < job.parts; ++part) {
        Floats inner[Vectors];
        for (int i = 0; i < Vectors; ++i) inner[i] = V::splat(0);
        for (; term < job.ends[part]; ++term) {
            const Floats x = V::splat(job.terms[term].x);
            const float* weights = job.terms[term].weights + first;
#pragma GCC unroll 8
            for (std::size_t i = 0; i < Vectors; ++i) {
                inner[i] = V::add(inner[i], V::mul(x, V::load(weights + kStep * i)));
            }
        }
        for (std::size_t i = 0; i < Vectors; ++i) {
            V::store(sums + kStep * i, kStep, V::add(V::load(sums + kStep * i), inner[i]));
        }
    }
}

template <typename V, int Most, int Some>
void float_conv(const FloatConvJob& job) {
    constexpr std::size_t kStep = V::kFloats;
    std::size_t filter = 0;
    for (; filter + Most * kStep <= job.filters; filter += Most * kStep) float_conv_block<V, Most>(job, filter);
    for (; filter + Some * kStep <= job.filters; filter += Some * kStep) float_conv_block<V, Some>(job, filter);
    for (; filter + kStep <= job.filters; filter += kStep) float_conv_block<V, 1>(job, filter);
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

}  // namespace dabnet
