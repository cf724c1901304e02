// Asks the processor itself. `__builtin_cpu_supports` would do, but MSVC has none, and in a library that Zig links it
// finds no table to look at.
#include "x86_features.h"

#if defined(__x86_64__) || defined(_M_X64)

#include <cstdint>

#ifdef _MSC_VER
#include <immintrin.h>
#include <intrin.h>
#else
#include <cpuid.h>
#endif

namespace dabnet {
namespace {

struct Registers {
    std::uint32_t a, b, c, d;
};

Registers cpuid(std::uint32_t leaf) {
    Registers found{};
#ifdef _MSC_VER
    int values[4];
    __cpuidex(values, static_cast<int>(leaf), 0);
    found = {static_cast<std::uint32_t>(values[0]), static_cast<std::uint32_t>(values[1]),
             static_cast<std::uint32_t>(values[2]), static_cast<std::uint32_t>(values[3])};
#else
    __cpuid_count(leaf, 0, found.a, found.b, found.c, found.d);
#endif
    return found;
}

// Which registers the system keeps when it turns to another thread.
std::uint32_t kept_registers() {
#ifdef _MSC_VER
    return static_cast<std::uint32_t>(_xgetbv(0));
#else
    std::uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
#endif
}

bool has_bit(std::uint32_t word, int bit) { return (word >> bit & 1) != 0; }

bool find_avx2() {
    if (cpuid(0).a < 7) return false;
    const std::uint32_t base = cpuid(1).c;
    const bool popcnt = has_bit(base, 23), xgetbv = has_bit(base, 27), avx = has_bit(base, 28);
    constexpr std::uint32_t kXmmAndYmm = 6;
    return popcnt && xgetbv && avx && (kept_registers() & kXmmAndYmm) == kXmmAndYmm && has_bit(cpuid(7).b, 5);
}

bool find_avx512() {
    constexpr std::uint32_t kAllVectors = 0xe6;
    if (!find_avx2() || (kept_registers() & kAllVectors) != kAllVectors) return false;
    const Registers found = cpuid(7);
    const bool f = has_bit(found.b, 16), dq = has_bit(found.b, 17), bw = has_bit(found.b, 30),
               vl = has_bit(found.b, 31);
    const bool vbmi = has_bit(found.c, 1), vnni = has_bit(found.c, 11), vpopcntdq = has_bit(found.c, 14);
    return f && dq && bw && vl && vbmi && vnni && vpopcntdq;
}

}  // namespace

bool x86_has_avx2() {
    static const bool found = find_avx2();
    return found;
}

bool x86_has_avx512() {
    static const bool found = find_avx512();
    return found;
}

}  // namespace dabnet

#endif
