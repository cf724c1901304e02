// Rows of bits in bytes, the first in the lowest bit of the first byte.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// Up to 8 bits of a row from bit `at` on; the row has at least at + count bits, and no byte behind them is touched.
inline unsigned bits_at(const std::uint8_t* row, std::uint64_t at, std::size_t count) {
    const std::uint8_t* byte = row + static_cast<std::size_t>(at / 8);
    const unsigned shift = at % 8;
    unsigned bits = static_cast<unsigned>(byte[0]) >> shift;
    if (shift + count > 8) bits |= static_cast<unsigned>(byte[1]) << (8 - shift);
    return bits & ((1u << count) - 1);
}

}  // namespace dabnet
