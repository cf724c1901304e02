// A window that slides over maps, and which of its taps lie on the map.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace dabnet {

// Along one axis. A tap t of place p looks at p * stride + t * dilation - before.
struct Axis {
    std::size_t size;    // of the map
    std::size_t places;  // of the window
    std::size_t kernel;
    std::size_t stride;
    std::size_t before;  // padding
    std::size_t dilation;

    // The taps of a place from `first` to before `end` lie on the map.
    std::size_t first(std::size_t place) const {
        const std::size_t at = place * stride;
        return at >= before ? 0 : std::min(kernel, (before - at + dilation - 1) / dilation);
    }
    std::size_t end(std::size_t place) const {
        const std::size_t at = place * stride;
        if (at >= size + before) return first(place);
        return std::max(first(place), std::min(kernel, (size + before - at - 1) / dilation + 1));
    }
    // Where a tap on the map looks.
    std::size_t at(std::size_t place, std::size_t tap) const { return place * stride + tap * dilation - before; }

    // How much of the padded map all places cover.
    std::size_t extent() const { return (places - 1) * stride + (kernel - 1) * dilation + 1; }
};

struct Window {
    Axis down;
    Axis across;

    std::size_t places() const { return down.places * across.places; }
    std::size_t taps() const { return down.kernel * across.kernel; }
};

// A map with its padding, in which a window's taps stand side by side in runs, `length` numbers a place. Its rows may
// be longer than the window needs.
struct PaddedMap {
    std::size_t rows, columns;
    std::size_t length;
    std::vector<std::size_t> runs;  // where each starts, from the top left tap
    std::size_t run_length;

    PaddedMap(const Window& window, std::size_t numbers_a_place, std::size_t more_columns = 0)
        : rows(window.down.extent()), columns(window.across.extent() + more_columns), length(numbers_a_place) {
        const auto& [down, across] = window;
        const bool are_joined = across.dilation == 1;  // nothing lies between taps
        run_length = are_joined ? across.kernel * length : length;
        for (std::size_t i = 0; i < down.kernel; ++i) {
            for (std::size_t j = 0; j < (are_joined ? 1 : across.kernel); ++j) {
                runs.push_back((i * down.dilation * columns + j * across.dilation) * length);
            }
        }
    }

    std::size_t size() const { return rows * columns * length; }

    // Where the top left tap of a place stands.
    std::size_t start(const Window& window, std::size_t row, std::size_t column) const {
        return (row * window.down.stride * columns + column * window.across.stride) * length;
    }
};

// Calls visit(row) for each row of a padded map that rows [from, to) of a window's places see.
template <typename Visit>
void each_row_seen(const Axis& down, std::size_t from, std::size_t to, Visit visit) {
    std::size_t next = 0;
    for (std::size_t row = from; row < to; ++row) {
        if (down.dilation == 1) {
            const std::size_t first = row * down.stride, end = first + down.kernel;
            for (next = std::max(next, first); next < end; ++next) visit(next);
        } else {
            for (std::size_t i = 0; i < down.kernel; ++i) visit(row * down.stride + i * down.dilation);
        }
    }
}

// Adds up what a row of windows sees of numbers, one for each place of a padded map: first columns, then across.
template <typename Number>
void add_windows(const Window& window, std::size_t columns, const Number* numbers, std::size_t row, Number* column_sums,
                 Number* sums) {
    const auto& [down, across] = window;
    std::fill(column_sums, column_sums + columns, Number{0});
    for (std::size_t i = 0; i < down.kernel; ++i) {
        const Number* line = numbers + (row * down.stride + i * down.dilation) * columns;
        for (std::size_t column = 0; column < columns; ++column) column_sums[column] += line[column];
    }
    std::fill(sums, sums + across.places, Number{0});
    for (std::size_t j = 0; j < across.kernel; ++j) {
        const Number* tap = column_sums + j * across.dilation;
        for (std::size_t column = 0; column < across.places; ++column) sums[column] += tap[column * across.stride];
    }
}

}  // namespace dabnet
