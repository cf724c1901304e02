// Equal bins for floats, and the exact float at which a bin begins.
#pragma once

#include <cstdint>
#include <cstring>

namespace dabnet {

// Maps a weight to one of equal bins; the first and the last also take what lies beyond. Rounding keeps the order, so
// each bin holds neighbours in sorted order, and equal weights share a bin, whatever the values are.
struct Binning {
    double origin;
    double scale;
    double last;
    std::int32_t operator()(float weight) const {
        double position = (weight - origin) * scale;
        position = position > 0 ? position : 0;
        position = position < last ? position : last;
        return static_cast<std::int32_t>(position);
    }
};

// Floats in their order as integers, so that the space between two can be halved.
inline std::int64_t to_rank(float value) {
    std::int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : -static_cast<std::int64_t>(bits & 0x7fffffff);
}

inline float from_rank(std::int64_t rank) {
    const auto magnitude = static_cast<std::int32_t>(rank >= 0 ? rank : -rank);
    float value;
    std::memcpy(&value, &magnitude, sizeof value);
    return rank >= 0 ? value : -value;
}

// The smallest float that falls into `bin` or a later one, given that `least` does not and `most` does. It is close to
// where arithmetic puts it, so step away from there by 1, 2, 4, ... until it is enclosed, then halve.
inline float lower_edge(const Binning& binning, int bin, float least, float most) {
    const auto reached = [&](std::int64_t rank) { return binning(from_rank(rank)) >= bin; };
    std::int64_t before = to_rank(least), after = to_rank(most);
    const auto guess = to_rank(static_cast<float>(binning.origin + bin / binning.scale));
    if (before < guess && guess < after) {
        if (reached(guess)) {
            after = guess;
            for (std::int64_t step = 1; after - step > before; step *= 2) {
                if (!reached(after - step)) {
                    before = after - step;
                    break;
                }
                after -= step;
            }
        } else {
            before = guess;
            for (std::int64_t step = 1; before + step < after; step *= 2) {
                if (reached(before + step)) {
                    after = before + step;
                    break;
                }
                before += step;
            }
        }
    }
    while (after - before > 1) {
        const std::int64_t middle = before + (after - before) / 2;
        (reached(middle) ? after : before) = middle;
    }
    return from_rank(after);
}

}  // namespace dabnet
