// A window that slides over maps, and which of its taps lie on the map.
#pragma once

#include <algorithm>
#include <cstddef>

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
};

struct Window {
    Axis down;
    Axis across;
};

}  // namespace dabnet
