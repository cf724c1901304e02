// How a convolution's work is divided.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../network.h"

namespace dabnet {

constexpr std::size_t kBlock = 64;  // filters

// Filters in blocks, and for each block the places, a few at a time: a piece. Blocks come one after the other, so that
// a block's weights stay at hand.
struct Blocks {
    std::size_t blocks;
    std::size_t units;    // of places, for each block
    std::size_t a_piece;  // units

    std::size_t pieces_a_block() const { return (units + a_piece - 1) / a_piece; }
    std::size_t pieces() const { return blocks * pieces_a_block(); }

    // Calls visit(block, from, to) for the units of pieces [from, to).
    template <typename Visit>
    void each(std::size_t from, std::size_t to, Visit visit) const {
        const std::size_t a_block = pieces_a_block();
        for (std::size_t block = from / a_block; block * a_block < to; ++block) {
            const std::size_t first = std::max(from, block * a_block) - block * a_block;
            const std::size_t end = std::min(to, (block + 1) * a_block) - block * a_block;
            visit(block, first * a_piece, std::min(end * a_piece, units));
        }
    }

    // The units whose input a job has to get ready: with one block its own, and else all of them, once.
    struct Range {
        std::size_t from, to;
    };
    Range to_prepare(const Job& job) const {
        if (blocks == 1) return {job.from * a_piece, std::min(job.to * a_piece, units)};
        return {0, job.is_used ? 0 : units};
    }
};

// Numbers, one a filter, and zeros up to whole blocks; nothing for a null pointer.
inline std::vector<float> filled_up(const float* numbers, std::size_t filters) {
    std::vector<float> filled;
    if (numbers == nullptr) return filled;
    filled.resize((filters + kBlock - 1) / kBlock * kBlock);
    std::copy(numbers, numbers + filters, filled.begin());
    return filled;
}

inline const float* data_or_null(const std::vector<float>& numbers) {
    return numbers.empty() ? nullptr : numbers.data();
}

}  // namespace dabnet
