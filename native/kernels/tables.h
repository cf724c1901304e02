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

}  // namespace
}  // namespace dabnet
