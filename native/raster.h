// The one rasterizer: strokes or a bitmap in, the square grey image that a network sees out (ink 255 on 0).
//
// Both ways agree on where ink goes. The ink's box, pen included, is scaled to fill the image but for a margin, aspect
// kept, and centred. Lines become `pen` wide: strokes are drawn so, and a bitmap's lines are grown to it (never
// thinned).
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

struct Raster {
    std::size_t size;  // pixels per side
    double margin;     // blank border, as a share of the size
    double pen;        // width of a line, as a share of the size
};

// Largest sizes that callers may ask for; they bound time and memory.
constexpr std::size_t kLargestRaster = 4096;
constexpr double kWidestPen = 0.15;

// Draws strokes of (x, y) points into `out` (size, size). Stroke i ends before point stroke_ends[i]. The points must be
// finite and not all the same.
void rasterize_strokes(const float* points, const std::int64_t* stroke_ends, std::size_t strokes, const Raster& raster,
                       std::uint8_t* out);

// A bitmap has 256 x 256 pixels of 4 bits, two per byte, the left one in the high bits; 15 is full ink.
constexpr std::size_t kGrid = 256;

// Redraws a bitmap, whose lines are `line_width` of its pixels wide, into `out` (size, size). Returns false if it has
// no ink.
bool rasterize_bitmap(const std::uint8_t* bitmap, double line_width, const Raster& raster, std::uint8_t* out);

// Estimates how wide a bitmap's lines are, in its pixels; 0 if it has no ink.
double measure_line_width(const std::uint8_t* bitmap);

}  // namespace dabnet
