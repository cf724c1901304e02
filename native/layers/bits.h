// Rows of bits in bytes, the first in the lowest bit of the first byte.
#pragma once

#include <cstddef>
#include <cstdint>
#ifdef _MSC_VER
#include <intrin.h>
#endif

namespace dabnet {

// The number of the lowest bit that is set; there has to be one.
inline std::size_t lowest_bit(std::uint64_t word) {
#ifdef _MSC_VER
    unsigned long number;
    _BitScanForward64(&number, word);
    return number;
#else
    return static_cast<std::size_t>(__builtin_ctzll(word));
#endif
}

// Up to 8 bits of a row from bit `at` on; the row has at least at + count bits, and no byte behind them is touched.
inline unsigned bits_at(const std::uint8_t* row, std::uint64_t at, std::size_t count) {
    const std::uint8_t* byte = row + static_cast<std::size_t>(at / 8);
    const unsigned shift = at % 8;
    unsigned bits = static_cast<unsigned>(byte[0]) >> shift;
    if (shift + count > 8) bits |= static_cast<unsigned>(byte[1]) << (8 - shift);
    return bits & ((1u << count) - 1);
}

}  // namespace dabnet
