#include <algorithm>
#include <cmath>

#include "raster.h"

namespace dabnet {
namespace {

struct Point {
    float x, y;
};

// The pixels that a round pen covers on its way between two points. A pixel whose centre is at distance d from the line
// gets `radius + 0.5 - d` of full ink, at least 0 and at most 1; where lines cross, the darker one stays.
class Pen {
   public:
    Pen(float radius, std::size_t size, std::uint8_t* out) : reach_(radius + 0.5f), size_(size), out_(out) {}

    void draw(Point a, Point b) const {
        const float last = static_cast<float>(size_ - 1);
        const int top = static_cast<int>(std::clamp(std::min(a.y, b.y) - reach_ - 0.5f, 0.0f, last));
        const int bottom = static_cast<int>(std::clamp(std::max(a.y, b.y) + reach_, 0.0f, last));
        for (int row = top; row <= bottom; ++row) {
            const float y = static_cast<float>(row) + 0.5f;
            float left = static_cast<float>(size_), right = 0.0f;
            span(a, b, y, left, right);
            if (left > right) continue;
            const int from = static_cast<int>(std::clamp(left - 0.5f, 0.0f, last));
            const int to = static_cast<int>(std::clamp(right + 0.5f, 0.0f, last));
            shade(a, b, y, from, to, out_ + static_cast<std::size_t>(row) * size_);
        }
    }

   private:
    // Widens [left, right] by where the row at height y meets the pen's path: two discs and the band between them.
    void span(Point a, Point b, float y, float& left, float& right) const {
        const auto include = [&](float low, float high) {
            left = std::min(left, low);
            right = std::max(right, high);
        };
        for (const Point& end : {a, b}) {
            const float height = y - end.y;
            if (std::fabs(height) > reach_) continue;
            const float half = std::sqrt(reach_ * reach_ - height * height);
            include(end.x - half, end.x + half);
        }
        const float dx = b.x - a.x, dy = b.y - a.y;
        const float length = std::sqrt(dx * dx + dy * dy);
        if (dy == 0.0f || length == 0.0f) return;
        for (const float side : {reach_ / length, -reach_ / length}) {
            const float t = (y - (a.y + dx * side)) / dy;
            if (t < 0.0f || t > 1.0f) continue;
            const float x = a.x - dy * side + t * dx;
            include(x, x);
        }
    }

    void shade(Point a, Point b, float y, int from, int to, std::uint8_t* row) const {
        const float dx = b.x - a.x, dy = b.y - a.y;
        const float square = dx * dx + dy * dy;
        const float inverse = square > 0.0f ? 1.0f / square : 0.0f;
        const float py = y - a.y;
        for (int i = from; i <= to; ++i) {
            const float px = static_cast<float>(i) + 0.5f - a.x;
            const float t = std::min(std::max((px * dx + py * dy) * inverse, 0.0f), 1.0f);
            const float ex = px - t * dx, ey = py - t * dy;
            const float ink = std::min(std::max(reach_ - std::sqrt(ex * ex + ey * ey), 0.0f), 1.0f);
            row[i] = std::max(row[i], static_cast<std::uint8_t>(static_cast<int>(ink * 255.0f + 0.5f)));
        }
    }

    float reach_;
    std::size_t size_;
    std::uint8_t* out_;
};

// Where the drawing's points go in the image.
struct Placement {
    double scale, x, y;

    Placement(const float* points, std::size_t count, double side, double room) {
        double low[2] = {points[0], points[1]}, high[2] = {points[0], points[1]};
        for (std::size_t i = 1; i < count; ++i) {
            for (int axis = 0; axis < 2; ++axis) {
                low[axis] = std::min(low[axis], static_cast<double>(points[2 * i + axis]));
                high[axis] = std::max(high[axis], static_cast<double>(points[2 * i + axis]));
            }
        }
        scale = room / std::max(high[0] - low[0], high[1] - low[1]);
        x = side / 2 - (low[0] + high[0]) / 2 * scale;
        y = side / 2 - (low[1] + high[1]) / 2 * scale;
    }

    Point operator()(const float* point) const {
        return {static_cast<float>(point[0] * scale + x), static_cast<float>(point[1] * scale + y)};
    }
};

}  // namespace

void rasterize_strokes(const float* points, const std::int64_t* stroke_ends, std::size_t strokes, const Raster& raster,
                       std::uint8_t* out) {
    // Steps shorter than this many pixels are taken together: recorded pens report far more points than can be seen.
    constexpr float kShortStep = 0.25f;

    std::fill(out, out + raster.size * raster.size, std::uint8_t{0});
    const double side = static_cast<double>(raster.size);
    const double width = raster.pen * side;
    const Placement placed(points, static_cast<std::size_t>(stroke_ends[strokes - 1]), side,
                           side * (1 - 2 * raster.margin) - width);
    const Pen pen(static_cast<float>(width / 2), raster.size, out);

    std::int64_t begin = 0;
    for (std::size_t stroke = 0; stroke < strokes; ++stroke) {
        const std::int64_t end = stroke_ends[stroke];
        Point from = placed(points + 2 * begin);
        if (end - begin == 1) pen.draw(from, from);
        for (std::int64_t i = begin + 1; i < end; ++i) {
            const Point to = placed(points + 2 * i);
            if (i + 1 < end && std::fabs(to.x - from.x) < kShortStep && std::fabs(to.y - from.y) < kShortStep) continue;
            pen.draw(from, to);
            from = to;
        }
        begin = end;
    }
}

}  // namespace dabnet
