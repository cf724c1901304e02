// How a layer's work is divided.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "../network.h"

namespace dabnet {

constexpr std::size_t kBlock = 64;  // filters

// Filters in blocks, and for each block the positions, a few at a time: a piece. Blocks come one after the other, so
// that a block's weights stay at hand.
struct Blocks {
    std::size_t blocks;
    std::size_t units;  // of positions, for each block
    std::size_t units_per_piece;

    std::size_t pieces_per_block() const { return (units + units_per_piece - 1) / units_per_piece; }
    std::uint64_t pieces() const { return std::uint64_t{blocks} * pieces_per_block(); }

    // Calls visit(block, from, to) for the units of pieces [from, to), at most `most` units at a time.
    template <typename Visit>
    void each(std::size_t from, std::size_t to, std::size_t most, Visit visit) const {
        const std::size_t per_block = pieces_per_block();
        for (std::size_t block = from / per_block; block * per_block < to; ++block) {
            const std::size_t first = std::max(from, block * per_block) - block * per_block;
            const std::size_t last = std::min(to, (block + 1) * per_block) - block * per_block;
            const std::size_t end = std::min(last * units_per_piece, units);
            for (std::size_t unit = first * units_per_piece; unit < end; unit += most) {
                if (!visit(block, unit, std::min(unit + most, end))) return;
            }
        }
    }

    // The units whose input a job has to get ready: with one block its own, and else all of them, once.
    struct Range {
        std::size_t from, to;
    };
    Range to_prepare(const Job& job) const {
        if (blocks == 1) return {job.from * units_per_piece, std::min(job.to * units_per_piece, units)};
        return {0, job.is_used ? 0 : units};
    }
};

// How many units of work, each so large, may be done between two looks at whether to go on.
inline std::size_t units_at_once(std::uint64_t work_per_unit) {
    constexpr std::uint64_t kMostWork = std::uint64_t{1} << 20;
    return static_cast<std::size_t>(std::max<std::uint64_t>(kMostWork / std::max<std::uint64_t>(work_per_unit, 1), 1));
}

// Calls visit(from, to) for all pieces of a job, some at a time, until the run has to end.
template <typename Visit>
void run_in_blocks(const Job& job, std::uint64_t work_per_piece, Visit visit) {
    const std::size_t most = units_at_once(work_per_piece);
    for (std::size_t from = job.from; from < job.to;) {
        const std::size_t to = job.to - from > most ? from + most : job.to;
        if (job.is_stopped((to - from) * work_per_piece)) return;
        visit(from, to);
        from = to;
    }
}

// Numbers, one for each filter, and zeros up to whole blocks; nothing for a null pointer.
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
