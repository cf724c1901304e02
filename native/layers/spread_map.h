// Convolutions whose input is first spread out: to a padded map of sums or tables, much larger than the input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "../network.h"
#include "../scratch.h"
#include "blocks.h"
#include "window.h"

namespace dabnet {

// What there is beside the map: where the top left tap of each position stands in it; and if wanted, each position's
// sum of its inputs, the sums of columns, and what a window sums to.
template <typename Number>
struct SpreadScratch {
    std::uint32_t* starts;
    bool has_sums;
    Number *position_sums, *column_sums, *sums;

    SpreadScratch(Carver& carver, const Window& window, const PaddedMap& map, bool wants_sums)
        : starts(carver.take<std::uint32_t>(window.positions())),
          has_sums(wants_sums),
          position_sums(carver.take<Number>(wants_sums ? std::uint64_t{map.rows} * map.columns : 0)),
          column_sums(carver.take<Number>(wants_sums ? map.columns : 0)),
          sums(carver.take<Number>(wants_sums ? window.positions() : 0)) {}
};

// Runs such a convolution. make_row(row, at) makes a row of the padded map and its sums, as number `at` in memory;
// move_rows(from, count) moves rows from there to the start of memory; convolve(block, from, to) does at most `most`
// units, and says whether to go on.
//
// All of a layer is done a few rows at a time, whose part of the map stays in the second cache, where the next ones
// take its place: a row has `row_bytes`.
template <typename Number, typename MakeRow, typename MoveRows, typename Convolve>
void run_spread_out(const Job& job, const Blocks& work, const Window& window, const PaddedMap& map,
                    const SpreadScratch<Number>& scratch, std::size_t row_bytes, std::size_t most, MakeRow make_row,
                    MoveRows move_rows, Convolve convolve) {
    const auto& [height, width] = window;
    std::size_t base = 0, next = 0;  // the row at the start of memory, and the first one that is not made
    const auto prepare = [&](std::size_t first_row, std::size_t end_row) {
        const bool goes_on = each_row_seen(height, first_row, end_row, [&](std::size_t row) {
            if (height.dilation == 1 && row < next) return true;
            if (job.is_stopped(map.columns * map.per_position)) return false;
            make_row(row, row - base);
            next = row + 1;
            return true;
        });
        if (!goes_on) return false;
        for (std::size_t row = first_row; row < end_row; ++row) {
            if (job.is_stopped((height.kernel + 1) * map.columns / 8)) return false;
            const std::size_t top = (row * height.stride - base) * map.columns, position = row * width.positions;
            for (std::size_t column = 0; column < width.positions; ++column) {
                const std::size_t start = (top + column * width.stride) * map.per_position;
                scratch.starts[position + column] = static_cast<std::uint32_t>(start);
            }
            if (!scratch.has_sums) continue;
            sum_windows(window, map.columns, scratch.position_sums + top, 0, scratch.column_sums,
                        scratch.sums + position);
        }
        return true;
    };
    if (job.from != 0 || job.to != work.pieces()) {
        const auto [first, end] = work.to_prepare(job);
        if (first < end && !prepare(first / width.positions, (end - 1) / width.positions + 1)) return;
        return work.each(job.from, job.to, most, convolve);
    }
    constexpr std::size_t kBytes = std::size_t{1} << 18;  // a part of the second cache
    const std::size_t rows = std::max<std::size_t>(kBytes / row_bytes / height.stride, 1);
    for (std::size_t row = 0, end; row < height.positions; row = end) {
        end = std::min(row + rows, height.positions);
        if (const std::size_t top = row * height.stride; height.dilation == 1 && top != base) {
            const std::size_t kept = next > top ? next - top : 0;
            move_rows(top - base, kept);
            if (scratch.has_sums) {
                const Number* from = scratch.position_sums + (top - base) * map.columns;
                std::copy(from, from + kept * map.columns, scratch.position_sums);
            }
            base = top;
        }
        if (!prepare(row, end)) return;
        const std::size_t end_unit = end * width.positions;
        for (std::size_t block = 0; block < work.blocks; ++block) {
            for (std::size_t unit = row * width.positions; unit < end_unit; unit += most) {
                if (!convolve(block, unit, std::min(unit + most, end_unit))) return;
            }
        }
    }
}

}  // namespace dabnet
