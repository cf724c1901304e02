// The table of a convolution of signs: for two positions, with bits a and b in 4 channels, popcount(a ^ w) + 16
// popcount(b ^ w) for w = 0 .. 15. Padding counts 2 whatever w is. Each file that includes this has one of its own.
#pragma once

#include <cstdint>

namespace dabnet {
namespace {

constexpr int kStates = 17;  // of 4 channels at a position: their bits, or padding

struct Tables {
    alignas(64) std::uint8_t rows[kStates * kStates][16];
    constexpr Tables() : rows{} {
        for (int a = 0; a < kStates; ++a) {
            for (int b = 0; b < kStates; ++b) {
                for (int w = 0; w < 16; ++w) {
                    rows[kStates * a + b][w] = static_cast<std::uint8_t>(differing(a, w) + 16 * differing(b, w));
                }
            }
        }
    }
    static constexpr int differing(int bits, int w) {
        if (bits == 16) return 2;
        const int differ = bits ^ w;
        return (differ & 1) + (differ >> 1 & 1) + (differ >> 2 & 1) + (differ >> 3 & 1);
    }
};
constexpr Tables kTables;

// Of a convolution of whole numbers: which of 16 bytes go into the sums of two tables, of 4 channels each. The bytes
// are the numbers of 8 channels, then at even positions the sums of each two. A pattern's sum is that of its first two
// channels (of[0]) plus that of its last two; where it has neither, the index is one that gives 0.
struct SubsetIndices {
    alignas(32) std::uint8_t of[2][32];
    constexpr SubsetIndices() : of{} {
        for (int two = 0; two < 2; ++two) {
            for (int i = 0; i < 32; ++i) {
                const int first = i / 16 * 4 + 2 * two, pattern = i % 16 >> 2 * two & 3;
                const int index = pattern == 0 ? 0x80 : pattern == 3 ? first + 8 : first + pattern - 1;
                of[two][i] = static_cast<std::uint8_t>(index);
            }
        }
    }
};
constexpr SubsetIndices kSubsetIndices;

}  // namespace
}  // namespace dabnet
