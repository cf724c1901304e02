// Numbers in rows, and what the stages of reading a picture share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace dabnet {

template <typename T>
struct Plane {
    int width = 0, height = 0;
    std::vector<T> values;

    Plane() = default;
    Plane(int width, int height, T value = T())
        : width(width),
          height(height),
          values(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), value) {}

    T* row(int y) { return values.data() + static_cast<std::ptrdiff_t>(y) * width; }
    const T* row(int y) const { return values.data() + static_cast<std::ptrdiff_t>(y) * width; }
    T& at(int x, int y) { return row(y)[x]; }
    T at(int x, int y) const { return row(y)[x]; }
    bool empty() const { return values.empty(); }
};

template <typename T>
Plane<T> transpose(const Plane<T>& plane) {
    constexpr int kTile = 16;
    Plane<T> result(plane.height, plane.width);
    for (int top = 0; top < plane.height; top += kTile) {
        for (int left = 0; left < plane.width; left += kTile) {
            for (int y = top; y < std::min(top + kTile, plane.height); ++y) {
                for (int x = left; x < std::min(left + kTile, plane.width); ++x) result.at(y, x) = plane.at(x, y);
            }
        }
    }
    return result;
}

using Bytes = Plane<std::uint8_t>;
using Shorts = Plane<std::int16_t>;

// A picture in colour: red, green, blue.
struct Colours {
    Bytes channels[3];

    Colours() = default;
    Colours(int width, int height) : channels{{width, height}, {width, height}, {width, height}} {}
    int width() const { return channels[0].width; }
    int height() const { return channels[0].height; }
};

struct Point {
    double x, y;
};

// [left, right) x [top, bottom)
struct Rectangle {
    int left, top, right, bottom;
    int width() const { return right - left; }
    int height() const { return bottom - top; }
};

}  // namespace dabnet
