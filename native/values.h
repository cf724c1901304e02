// Passes over an array of floats, written so that compilers turn them into vector code.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace dabnet {

struct Extent {
    float least;
    float most;
};

// The least and the most of some values, in lanes that vector code can fill.
inline Extent extent(const float* values, std::size_t m) {
    constexpr std::size_t kLanes = 8;
    float least[kLanes], most[kLanes];
    std::fill(least, least + kLanes, values[0]);
    std::fill(most, most + kLanes, values[0]);
    const auto take = [&](float value, std::size_t lane) {
        least[lane] = value < least[lane] ? value : least[lane];
        most[lane] = value > most[lane] ? value : most[lane];
    };
    std::size_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
    }
    for (; i < m; ++i) take(values[i], 0);
    return {*std::min_element(least, least + kLanes), *std::max_element(most, most + kLanes)};
}

// Whether none is NaN or infinite: those have all bits of the exponent set.
inline bool are_finite(const float* values, std::size_t m) {
    constexpr std::uint32_t kExponent = 0x7f800000;
    std::uint32_t found = 0;
    for (std::size_t i = 0; i < m; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        found |= (bits & kExponent) == kExponent;
    }
    return found == 0;
}

// The sum of some function of the values, in lanes too: the order of additions is the same on every machine.
template <typename Function>
double sum(const float* values, std::size_t m, Function function) {
    constexpr std::size_t kLanes = 8;
    double lanes[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += function(values[i + lane]);
    }
    for (; i < m; ++i) lanes[0] += function(values[i]);
    double total = 0;
    for (double lane : lanes) total += lane;
    return total;
}

// Copies the values in [from, to) to `out`, which has room for all of them; returns how many there were. Few are: so
// the comparisons are made first, 256 at a time as vector code, and then eight answers are looked at together.
inline std::size_t gather(const float* values, std::size_t m, float from, float to, float* out) {
    constexpr std::size_t kBlock = 256, kWord = 8;
    constexpr std::uint64_t kAllInside = 0x0101010101010101;
    std::uint8_t inside[kBlock];
    std::size_t found = 0;
    for (std::size_t start = 0; start < m; start += kBlock) {
        const float* block = values + start;
        const std::size_t size = std::min(kBlock, m - start);
        for (std::size_t i = 0; i < size; ++i) inside[i] = (block[i] >= from) & (block[i] < to);
        for (std::size_t i = size; i % kWord != 0; ++i) inside[i] = 0;
        for (std::size_t i = 0; i < size; i += kWord) {
            std::uint64_t word;
            std::memcpy(&word, inside + i, kWord);
            if (word == 0) continue;
            if (word == kAllInside) {
                std::memcpy(out + found, block + i, kWord * sizeof(float));
                found += kWord;
                continue;
            }
            for (std::size_t j = i; j < i + kWord && j < size; ++j) {
                out[found] = block[j];
                found += inside[j];
            }
        }
    }
    return found;
}

inline void grow(std::vector<float>& buffer, std::size_t size) {
    if (buffer.size() < size) buffer.resize(size);
}

}  // namespace dabnet
