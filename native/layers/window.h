// A window that slides over maps, and which of its taps lie on the map.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dabnet {

// Along one axis. Tap t of position p looks at p * stride + t * dilation - before.
struct Axis {
    std::size_t size;       // of the map
    std::size_t positions;  // of the window
    std::size_t kernel;
    std::size_t stride;
    std::size_t before;  // padding
    std::size_t dilation;

    // The taps of a position from `first` to before `end` lie on the map.
    std::size_t first(std::size_t position) const {
        const std::size_t at = position * stride;
        return at >= before ? 0 : std::min(kernel, divided(before - at + dilation - 1));
    }
    std::size_t end(std::size_t position) const {
        const std::size_t at = position * stride;
        if (at >= size + before) return first(position);
        return std::max(first(position), std::min(kernel, divided(size + before - at - 1) + 1));
    }
    // Where a tap on the map looks.
    std::size_t at(std::size_t position, std::size_t tap) const { return position * stride + tap * dilation - before; }

    // A division takes long, and is seldom needed.
    std::size_t divided(std::size_t distance) const { return dilation == 1 ? distance : distance / dilation; }

    // How much of the padded map all positions cover.
    std::size_t extent() const { return (positions - 1) * stride + (kernel - 1) * dilation + 1; }
};

struct Window {
    Axis height;
    Axis width;

    std::uint64_t positions() const { return std::uint64_t{height.positions} * width.positions; }
    std::uint64_t taps() const { return std::uint64_t{height.kernel} * width.kernel; }
    std::uint64_t extent() const { return std::uint64_t{height.extent()} * width.extent(); }
};

// A map with its padding, `per_position` numbers for each position, in which a window's taps lie side by side in runs.
// Its rows may be longer than the window needs.
struct PaddedMap {
    std::size_t rows, columns;
    std::size_t per_position;
    std::vector<std::size_t> runs;  // where each starts, from the top left tap
    std::size_t run_length;

    PaddedMap(const Window& window, std::size_t numbers_per_position, std::size_t more_columns = 0)
        : rows(window.height.extent()),
          columns(window.width.extent() + more_columns),
          per_position(numbers_per_position) {
        const auto& [height, width] = window;
        const bool are_adjacent = width.dilation == 1;  // nothing lies between taps
        run_length = are_adjacent ? width.kernel * per_position : per_position;
        for (std::size_t i = 0; i < height.kernel; ++i) {
            for (std::size_t j = 0; j < (are_adjacent ? 1 : width.kernel); ++j) {
                runs.push_back((i * height.dilation * columns + j * width.dilation) * per_position);
            }
        }
    }

    std::size_t size() const { return rows * columns * per_position; }

    // Where the top left tap of a position is.
    std::size_t start(const Window& window, std::size_t row, std::size_t column) const {
        return (row * window.height.stride * columns + column * window.width.stride) * per_position;
    }
};

// Calls visit(row) for each row of a padded map that rows [from, to) of a window's positions see, until it says to
// stop.
template <typename Visit>
bool each_row_seen(const Axis& height, std::size_t from, std::size_t to, Visit visit) {
    std::size_t next = 0;
    for (std::size_t row = from; row < to; ++row) {
        if (height.dilation == 1) {
            const std::size_t first = row * height.stride, end = first + height.kernel;
            for (next = std::max(next, first); next < end; ++next) {
                if (!visit(next)) return false;
            }
        } else {
            for (std::size_t i = 0; i < height.kernel; ++i) {
                if (!visit(row * height.stride + i * height.dilation)) return false;
            }
        }
    }
    return true;
}

// Sums what a row of windows sees of numbers, one for each position of a padded map: first columns, then rows.
template <typename Number>
void sum_windows(const Window& window, std::size_t columns, const Number* numbers, std::size_t row, Number* column_sums,
                 Number* sums) {
    const auto& [height, width] = window;
    std::fill(column_sums, column_sums + columns, Number{0});
    for (std::size_t i = 0; i < height.kernel; ++i) {
        const Number* line = numbers + (row * height.stride + i * height.dilation) * columns;
        for (std::size_t column = 0; column < columns; ++column) column_sums[column] += line[column];
    }
    std::fill(sums, sums + width.positions, Number{0});
    for (std::size_t j = 0; j < width.kernel; ++j) {
        const Number* tap = column_sums + j * width.dilation;
        for (std::size_t column = 0; column < width.positions; ++column) sums[column] += tap[column * width.stride];
    }
}

}  // namespace dabnet
