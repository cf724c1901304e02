#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "raster.h"

namespace dabnet {
namespace {

using Row = std::array<std::uint8_t, kGrid>;
using Image = std::array<Row, kGrid>;

void unpack(const std::uint8_t* bitmap, Image& image) {
    for (std::size_t y = 0; y < kGrid; ++y) {
        for (std::size_t i = 0; i < kGrid / 2; ++i) {
            const std::uint8_t two = bitmap[y * (kGrid / 2) + i];
            image[y][2 * i] = static_cast<std::uint8_t>((two >> 4) * 17);
            image[y][2 * i + 1] = static_cast<std::uint8_t>((two & 15) * 17);
        }
    }
}

// The range [first, past) of rows or columns that holds ink; `begin` and `end` are the ink's edges within its
// outermost pixels: one that is half grey is half covered.
struct Stretch {
    int first, past;
    double begin, end;

    Stretch(const Row& darkest, int full) {
        // Specks fainter than a quarter of the darkest ink do not count.
        const auto inked = [full](std::uint8_t value) { return 4 * value >= full; };
        first = static_cast<int>(std::find_if(darkest.begin(), darkest.end(), inked) - darkest.begin());
        past = static_cast<int>(darkest.rend() - std::find_if(darkest.rbegin(), darkest.rend(), inked));
        const auto bare = [&](int line) {
            return 1 - static_cast<double>(darkest[static_cast<std::size_t>(line)]) / full;
        };
        begin = first + bare(first);
        end = past - bare(past - 1);
    }
};

struct Box {
    Stretch columns, rows;
};

// Finds where the ink is, if there is any.
std::optional<Box> find_ink(const Image& image) {
    Row columns{};
    Row rows{};
    for (std::size_t y = 0; y < kGrid; ++y) {
        std::uint8_t darkest = 0;
        for (std::size_t x = 0; x < kGrid; ++x) {
            columns[x] = std::max(columns[x], image[y][x]);
            darkest = std::max(darkest, image[y][x]);
        }
        rows[y] = darkest;
    }
    const int full = *std::max_element(rows.begin(), rows.end());
    if (full == 0) return std::nullopt;
    return Box{{columns, full}, {rows, full}};
}

// Part of the grid, with room around it for lines to grow into.
class Canvas {
   public:
    Canvas(const Box& box, int room)
        : left(box.columns.first - room),
          top(box.rows.first - room),
          width(box.columns.past - box.columns.first + 2 * room),
          height(box.rows.past - box.rows.first + 2 * room),
          pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) + sizeof(std::uint64_t)) {}

    std::uint8_t* row(int y) { return pixels.data() + static_cast<std::ptrdiff_t>(y) * width; }
    const std::uint8_t* row(int y) const { return pixels.data() + static_cast<std::ptrdiff_t>(y) * width; }

    int left, top;  // in the grid's pixels
    int width, height;
    std::vector<std::uint8_t> pixels;
};

void darken(std::uint8_t* row, const std::uint8_t* other, int width) {
    for (int x = 0; x < width; ++x) row[x] = std::max(row[x], other[x]);
}

// Grows ink by a disc: each pixel becomes the darkest one within `radius`. Between whole radii the two nearest discs
// are mixed, so that the result changes smoothly.
Canvas grow(const Image& image, const Box& box, double radius) {
    const int inner = static_cast<int>(radius), outer = inner + 1;
    Canvas small(box, outer), large(box, outer);
    const int width = small.width;
    const auto half_width = [](int disc, int dy) {  // of a disc's row dy above or below its centre
        return static_cast<int>(std::sqrt(static_cast<double>(disc * disc - dy * dy)));
    };

    // wide[j] is the row at hand with each pixel made the darkest of those up to j to its left and right.
    std::vector<std::vector<std::uint8_t>> wide(static_cast<std::size_t>(outer) + 1,
                                                std::vector<std::uint8_t>(static_cast<std::size_t>(width)));
    for (int y = box.rows.first; y < box.rows.past; ++y) {
        const Row& source = image[static_cast<std::size_t>(y)];
        std::copy(source.begin() + box.columns.first, source.begin() + box.columns.past, wide[0].begin() + outer);
        for (std::size_t j = 1; j < wide.size(); ++j) {
            wide[j] = wide[j - 1];
            darken(wide[j].data() + 1, wide[j - 1].data(), width - 1);
            darken(wide[j].data(), wide[j - 1].data() + 1, width - 1);
        }
        for (int dy = -outer; dy <= outer; ++dy) {
            const int to = y - small.top + dy;
            const auto darkest = [&](int disc) { return wide[static_cast<std::size_t>(half_width(disc, dy))].data(); };
            darken(large.row(to), darkest(outer), width);
            if (std::abs(dy) <= inner) darken(small.row(to), darkest(inner), width);
        }
    }
    const int share = static_cast<int>((radius - inner) * 256);
    for (std::size_t i = 0; i < small.pixels.size(); ++i) {
        const int more = large.pixels[i] - small.pixels[i];
        small.pixels[i] = static_cast<std::uint8_t>(small.pixels[i] + (more * share >> 8));
    }
    return small;
}

// Which source pixels make each pixel of the result, along one axis, and how much of each. Each pixel of the result is
// the mean of what it covers of the source, of at least one source pixel's width: the area average when shrinking,
// linear interpolation when enlarging. Beyond the source there is blank paper.
struct Taps {
    std::size_t count;           // source pixels for each of the result
    std::vector<int> first;      // (size), the first of them
    std::vector<float> weights;  // (size, count)

    Taps(std::size_t size, double scale, double centre, int source_first, int source_size) {
        const double width = std::max(1.0, 1 / scale);
        count = std::min(static_cast<std::size_t>(width) + 2, static_cast<std::size_t>(source_size));
        first.resize(size);
        weights.resize(size * count);
        for (std::size_t i = 0; i < size; ++i) {
            const double middle =
                (static_cast<double>(i) + 0.5 - static_cast<double>(size) / 2) / scale + centre - source_first;
            const double begin = middle - width / 2, end = middle + width / 2;
            const double last = source_size - static_cast<double>(count);
            first[i] = static_cast<int>(std::clamp(std::floor(begin), 0.0, last));
            for (std::size_t tap = 0; tap < count; ++tap) {
                const double pixel = first[i] + static_cast<double>(tap);
                const double covered = std::min(end, pixel + 1) - std::max(begin, pixel);
                weights[i * count + tap] = static_cast<float>(std::max(covered, 0.0) / width);
            }
        }
    }
};

// Resamples one row. Most of a drawing is blank paper: where eight pixels are, or fewer if fewer count, skip the sum.
void resample_row(const std::uint8_t* source, const Taps& taps, float* out) {
    const std::size_t looked_at = std::min(taps.count, sizeof(std::uint64_t));
    const float* weights = taps.weights.data();
    for (std::size_t i = 0; i < taps.first.size(); ++i, weights += taps.count) {
        const std::uint8_t* pixels = source + taps.first[i];
        std::uint64_t eight;  // the canvas has room for them after its last row
        std::memcpy(&eight, pixels, sizeof eight);
        float ink = 0;
        if (taps.count > looked_at || eight << (64 - 8 * looked_at) != 0) {
            for (std::size_t tap = 0; tap < taps.count; ++tap) ink += weights[tap] * static_cast<float>(pixels[tap]);
        }
        out[i] = ink;
    }
}

// Resamples along the width, then along the height. Rows that were resampled stay as long as a row of the result needs
// them.
void resample(const Canvas& canvas, const Taps& vertical, const Taps& horizontal, std::uint8_t* out) {
    const std::size_t size = vertical.first.size();
    std::vector<float> ring(vertical.count * size), sum(size);
    int ready = 0;  // canvas rows before this one are resampled, the last vertical.count of them in the ring
    const auto ring_row = [&](int y) { return ring.data() + static_cast<std::size_t>(y) % vertical.count * size; };
    for (std::size_t i = 0; i < size; ++i, out += size) {
        const int end = vertical.first[i] + static_cast<int>(vertical.count);
        for (ready = std::max(ready, vertical.first[i]); ready < end; ++ready) {
            resample_row(canvas.row(ready), horizontal, ring_row(ready));
        }
        std::fill(sum.begin(), sum.end(), 0.5f);
        for (std::size_t tap = 0; tap < vertical.count; ++tap) {
            const float weight = vertical.weights[i * vertical.count + tap];
            if (weight == 0) continue;
            const float* source = ring_row(vertical.first[i] + static_cast<int>(tap));
            for (std::size_t x = 0; x < size; ++x) sum[x] += weight * source[x];
        }
        for (std::size_t x = 0; x < size; ++x)
            out[x] = static_cast<std::uint8_t>(static_cast<int>(std::min(sum[x], 255.0f)));
    }
}

// The ink in each unbroken run of inked pixels, along rows and along columns: across a line, this is its width.
std::vector<float> measure_runs(const Image& image) {
    std::vector<float> runs;
    std::array<int, kGrid> columns{};
    for (std::size_t y = 0; y <= kGrid; ++y) {
        int run = 0;
        for (std::size_t x = 0; x < kGrid; ++x) {
            const int ink = y < kGrid ? image[y][x] : 0;
            if (ink == 0 && columns[x] > 0) runs.push_back(static_cast<float>(std::exchange(columns[x], 0)) / 255);
            if (ink == 0 && run > 0) runs.push_back(static_cast<float>(std::exchange(run, 0)) / 255);
            columns[x] += ink;
            run += ink;
        }
        if (run > 0) runs.push_back(static_cast<float>(run) / 255);
    }
    return runs;
}

}  // namespace

double measure_line_width(const std::uint8_t* bitmap) {
    // Lines cross rows and columns at all angles; this is how much longer their runs are than wide (measured).
    constexpr double kSlant = 1.13;

    Image image;
    unpack(bitmap, image);
    std::vector<float> runs = measure_runs(image);
    if (runs.empty()) return 0;
    const auto middle = runs.begin() + static_cast<std::ptrdiff_t>(runs.size() / 2);
    std::nth_element(runs.begin(), middle, runs.end());
    // Long runs go along a line or through a filled shape: leave them out.
    const float longest = 2 * *middle;
    double sum = 0;
    std::size_t count = 0;
    for (const float run : runs) {
        if (run > longest) continue;
        sum += run;
        ++count;
    }
    return sum / static_cast<double>(count) / kSlant;
}

bool rasterize_bitmap(const std::uint8_t* bitmap, double line_width, const Raster& raster, std::uint8_t* out) {
    Image image;
    unpack(bitmap, image);
    const std::optional<Box> box = find_ink(image);
    if (!box) return false;

    // Scale the lines' middles to where strokes would be drawn; lines that are too wide already keep within the margin.
    const double side = static_cast<double>(raster.size);
    const double pen = raster.pen * side, room = side * (1 - 2 * raster.margin);
    const double extent = std::max(box->columns.end - box->columns.begin, box->rows.end - box->rows.begin);
    const double fit_edges = room / extent;
    const double scale = line_width < extent ? std::min(fit_edges, (room - pen) / (extent - line_width)) : fit_edges;

    const double widest = kWidestPen * kGrid;
    const Canvas canvas = grow(image, *box, std::clamp((pen / scale - line_width) / 2, 0.0, widest));
    const double centre_x = (box->columns.begin + box->columns.end) / 2;
    const double centre_y = (box->rows.begin + box->rows.end) / 2;
    resample(canvas, {raster.size, scale, centre_y, canvas.top, canvas.height},
             {raster.size, scale, centre_x, canvas.left, canvas.width}, out);
    return true;
}

}  // namespace dabnet
