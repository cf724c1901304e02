#include "sheet.h"

#include <cmath>

#include "light.h"

namespace dabnet {
namespace {

constexpr int kSide = 256;  // pixels at which the sheet is looked for
constexpr double kLeastArea = 0.1, kMostArea = 0.97;
constexpr double kSolid = 0.92;       // of the hull of what is bright must be bright
constexpr double kFourSided = 0.93;   // of the quad must be hull
constexpr double kPaper = 0.7;        // of it must be bright between the lines
constexpr double kLeastSide = 0.15;   // of the picture's
constexpr double kLeastJump = 0.12;   // how much darker it gets beyond a side, as a share
constexpr double kSudden = 0.7;       // of the largest jump near a side is a jump, too
constexpr double kLeastCosine = 0.7;  // of a corner's angle: 90 degrees, give or take 45

double cross(Point origin, Point a, Point b) {
    return (a.x - origin.x) * (b.y - origin.y) - (a.y - origin.y) * (b.x - origin.x);
}

double area_of(const std::vector<Point>& polygon) {
    double twice = 0;
    for (std::size_t i = 0; i < polygon.size(); ++i)
        twice += cross({0, 0}, polygon[i], polygon[(i + 1) % polygon.size()]);
    return std::abs(twice) / 2;
}

// The bright pixels that hang together most, with the holes in them filled.
struct Blob {
    std::vector<int> left, right;  // of each row: [left, right), empty rows have left > right
    double area = 0;
};

Blob largest_blob(const Bytes& values, int threshold) {
    const int width = values.width, height = values.height;
    Plane<int> labels(width, height, -1);
    std::vector<int> stack;
    int best = -1, best_size = 0, count = 0;
    const auto flood = [&](int start, int label, auto belongs) {
        int size = 0;
        stack.assign(1, start);
        labels.values[static_cast<std::size_t>(start)] = label;
        while (!stack.empty()) {
            const int at = stack.back(), x = at % width, y = at / width;
            stack.pop_back();
            ++size;
            const auto visit = [&](int next) {
                int& seen = labels.values[static_cast<std::size_t>(next)];
                if (seen == label || !belongs(next, seen)) return;
                seen = label;
                stack.push_back(next);
            };
            if (x > 0) visit(at - 1);
            if (x + 1 < width) visit(at + 1);
            if (y > 0) visit(at - width);
            if (y + 1 < height) visit(at + width);
        }
        return size;
    };
    const auto is_bright = [&](int at, int seen) {
        return seen < 0 && values.values[static_cast<std::size_t>(at)] > threshold;
    };
    for (int at = 0; at < width * height; ++at) {
        if (!is_bright(at, labels.values[static_cast<std::size_t>(at)])) continue;
        const int size = flood(at, count, is_bright);
        if (size > best_size) best = count, best_size = size;
        ++count;
    }
    Blob blob;
    if (best < 0) return blob;
    // What can be reached from the border without crossing the blob is outside, and the rest is its area.
    const int outside = count;
    int reached = 0;
    const auto start = [&](int x, int y) {
        const int at = y * width + x, seen = labels.values[static_cast<std::size_t>(at)];
        if (seen != best && seen != outside) reached += flood(at, outside, [&](int, int now) { return now != best; });
    };
    for (int x = 0; x < width; ++x) start(x, 0), start(x, height - 1);
    for (int y = 0; y < height; ++y) start(0, y), start(width - 1, y);
    blob.area = static_cast<double>(width) * height - reached;
    for (int y = 0; y < height; ++y) {
        int left = width, right = 0;
        for (int x = 0; x < width; ++x) {
            if (labels.at(x, y) != best) continue;
            left = std::min(left, x);
            right = x + 1;
        }
        blob.left.push_back(left);
        blob.right.push_back(right);
    }
    return blob;
}

// The convex hull, clockwise as y points down.
std::vector<Point> hull_of(const Blob& blob) {
    std::vector<Point> points;  // by y, then x
    for (std::size_t y = 0; y < blob.left.size(); ++y) {
        if (blob.left[y] >= blob.right[y]) continue;
        for (const std::size_t edge : {y, y + 1}) {
            points.push_back({static_cast<double>(blob.left[y]), static_cast<double>(edge)});
            points.push_back({static_cast<double>(blob.right[y]), static_cast<double>(edge)});
        }
    }
    std::sort(points.begin(), points.end(), [](Point a, Point b) { return a.y < b.y || (a.y == b.y && a.x < b.x); });
    std::vector<Point> hull;
    const auto wrap = [&](Point point, std::size_t least) {
        while (hull.size() > least && cross(hull[hull.size() - 2], hull.back(), point) <= 0) hull.pop_back();
        hull.push_back(point);
    };
    for (const Point& point : points) wrap(point, 1);
    const std::size_t turn = hull.size();
    for (std::size_t i = points.size() - 1; i-- > 0;) wrap(points[i], turn);
    if (!hull.empty()) hull.pop_back();
    return hull;
}

// Where two lines, each through two points, meet.
std::optional<Point> meet(Point a, Point b, Point c, Point d) {
    const double cross = (b.x - a.x) * (d.y - c.y) - (b.y - a.y) * (d.x - c.x);
    if (std::abs(cross) < 1e-9) return std::nullopt;
    const double along = ((c.x - a.x) * (d.y - c.y) - (c.y - a.y) * (d.x - c.x)) / cross;
    return Point{a.x + along * (b.x - a.x), a.y + along * (b.y - a.y)};
}

// Takes sides away until four are left, always the one whose neighbours enclose the least more when they are prolonged.
std::optional<Quad> reduce_to_quad(std::vector<Point> hull) {
    while (hull.size() > 4) {
        const std::size_t count = hull.size();
        double least = 1e300;
        std::size_t side = count;
        Point corner{};
        for (std::size_t i = 0; i < count; ++i) {
            const Point before = hull[(i + count - 1) % count], a = hull[i], b = hull[(i + 1) % count];
            const Point after = hull[(i + 2) % count];
            const std::optional<Point> tip = meet(before, a, b, after);
            // Prolonged beyond the side, not back into the polygon.
            if (!tip || cross(a, b, *tip) > 0) continue;
            const double added = std::abs(cross(a, b, *tip)) / 2;
            if (added < least) least = added, side = i, corner = *tip;
        }
        if (side == count) return std::nullopt;
        hull[side] = corner;
        hull.erase(hull.begin() + static_cast<std::ptrdiff_t>((side + 1) % count));
    }
    if (hull.size() < 4) return std::nullopt;
    return Quad{hull[0], hull[1], hull[2], hull[3]};
}

struct Closed {
    Bytes channels[3];
    Bytes least;  // of the channels: wood has little blue, paper has of all
    Bytes raw;    // the same with all the lines in it

    double at(int channel, Point point) const {
        const Bytes& plane = channels[channel];
        return plane.at(std::clamp(static_cast<int>(point.x), 0, plane.width - 1),
                        std::clamp(static_cast<int>(point.y), 0, plane.height - 1));
    }

    // How much darker it gets from one point to the other, as a share, in the channel where it is most.
    double jump(Point from, Point to) const {
        double most = -1;
        for (int c = 0; c < 3; ++c) most = std::max(most, (at(c, from) - at(c, to)) / std::max(at(c, from), 16.0));
        return most;
    }
};

Bytes least_of(const Bytes (&channels)[3]) {
    Bytes least = channels[0];
    for (int c = 1; c < 3; ++c) {
        for (std::size_t i = 0; i < least.values.size(); ++i) {
            least.values[i] = std::min(least.values[i], channels[c].values[i]);
        }
    }
    return least;
}

// One side of a quad: its ends, and the unit normal that points outwards.
struct Edge {
    Point a, b, outwards;

    Edge(Point a, Point b) : a(a), b(b) {
        const double length = std::max(std::hypot(b.x - a.x, b.y - a.y), 1e-9);
        outwards = {(b.y - a.y) / length, -(b.x - a.x) / length};
    }
    Point at(double along, double out) const {
        return {a.x + along * (b.x - a.x) + out * outwards.x, a.y + along * (b.y - a.y) + out * outwards.y};
    }
    bool is_at_border(int width, int height) const {
        const Point middle = at(0.5, 4);
        return middle.x < 0 || middle.y < 0 || middle.x > width || middle.y > height;
    }
};

// Moves a side to where it gets dark most suddenly; false if it hardly does.
bool refine(const Closed& picture, Edge& edge) {
    constexpr int kPoints = 48, kReach = 4;
    std::vector<double> along, out;
    double jumps = 0;
    for (int i = 0; i < kPoints; ++i) {
        const double where = 0.06 + 0.88 * i / (kPoints - 1);
        jumps += picture.jump(edge.at(where, -3), edge.at(where, 3));
        // The innermost of the large jumps: those beyond it are a desk's own.
        std::array<double, 4 * kReach + 1> found;
        for (std::size_t step = 0; step < found.size(); ++step) {
            const double shift = 0.5 * static_cast<double>(step) - kReach;
            found[step] = picture.jump(edge.at(where, shift - 1), edge.at(where, shift + 1));
        }
        const double largest = *std::max_element(found.begin(), found.end());
        if (largest <= 0.06) continue;
        const auto innermost =
            std::find_if(found.begin(), found.end(), [&](double each) { return each > kSudden * largest; });
        along.push_back(where);
        out.push_back(0.5 * static_cast<double>(innermost - found.begin()) - kReach);
    }
    if (jumps / kPoints < kLeastJump || static_cast<int>(along.size()) < kPoints * 2 / 3) return false;
    // The line through most of these points: least squares, then once more without what lies off it.
    double middle = 0, slope = 0;
    for (int round = 0; round < 3; ++round) {
        double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
        for (std::size_t i = 0; i < along.size(); ++i) {
            const double x = along[i] - 0.5;
            if (round > 0 && std::abs(out[i] - middle - slope * x) > 1.5) continue;
            n += 1, sx += x, sy += out[i], sxx += x * x, sxy += x * out[i];
        }
        const double spread = n * sxx - sx * sx;
        if (spread < 1e-6) break;
        slope = (n * sxy - sx * sy) / spread;
        middle = (sy - slope * sx) / n;
    }
    edge = Edge(edge.at(0, middle - slope / 2), edge.at(1, middle + slope / 2));
    return true;
}

std::optional<Quad> refine(const Closed& picture, const Quad& quad) {
    std::vector<Edge> edges;
    int inner = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        Edge edge(quad[i], quad[(i + 1) % 4]);
        if (!edge.is_at_border(picture.least.width, picture.least.height)) {
            const double length = std::hypot(edge.b.x - edge.a.x, edge.b.y - edge.a.y);
            if (length < kLeastSide * std::max(picture.least.width, picture.least.height)) return std::nullopt;
            if (!refine(picture, edge)) return std::nullopt;
            ++inner;
        }
        edges.push_back(edge);
    }
    if (inner < 2) return std::nullopt;  // one edge across the picture may be that of a shadow
    Quad refined;
    for (std::size_t i = 0; i < 4; ++i) {
        const Edge &before = edges[(i + 3) % 4], &after = edges[i];
        const std::optional<Point> corner = meet(before.a, before.b, after.a, after.b);
        if (!corner) return std::nullopt;
        const double cosine = before.outwards.x * after.outwards.x + before.outwards.y * after.outwards.y;
        if (std::abs(cosine) > kLeastCosine) return std::nullopt;
        refined[i] = *corner;
    }
    return refined;
}

// Starts with the corner that is nearest to the top left.
Quad turn_upright(const Quad& quad) {
    // The side whose outward normal points up most comes first.
    std::size_t top = 0;
    double highest = 1;
    for (std::size_t i = 0; i < 4; ++i) {
        const Edge edge(quad[i], quad[(i + 1) % 4]);
        if (edge.outwards.y < highest) highest = edge.outwards.y, top = i;
    }
    return {quad[top], quad[(top + 1) % 4], quad[(top + 2) % 4], quad[(top + 3) % 4]};
}

// Whether most of a blob is as bright where lines were not closed: not a drawing in chalk, with the gaps in it filled.
bool is_paper(const Closed& picture, const Blob& blob, int threshold) {
    double bright = 0;
    for (int y = 0; y < picture.raw.height; ++y) {
        const std::size_t row = static_cast<std::size_t>(y);
        for (int x = blob.left[row]; x < blob.right[row]; ++x) bright += picture.raw.at(x, y) > threshold;
    }
    return bright > kPaper * blob.area;
}

std::vector<int> thresholds_of(const Bytes& values) {
    std::vector<std::uint8_t> sorted = values.values;
    std::sort(sorted.begin(), sorted.end());
    const double low = sorted[sorted.size() / 20], high = sorted[sorted.size() - 1 - sorted.size() / 20];
    std::vector<int> thresholds;
    for (const double share : {0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}) {
        thresholds.push_back(static_cast<int>(low + share * (high - low)));
    }
    return thresholds;
}

// Where the pixels of a row come from: each of x, y and w begins with a value and changes by a step.
struct Course {
    float x, step_x, y, step_y, w, step_w;
};

// Takes a row of pixels from a picture, each mixed from the four around it.
void sample_row(const Colours& picture, const Course& course, Colours& result, int row) {
    const float last_x = static_cast<float>(picture.width() - 1), last_y = static_cast<float>(picture.height() - 1);
    const int width = picture.width(), right = width > 1, below = picture.height() > 1 ? width : 0;
    for (int i = 0; i < result.width(); ++i) {
        const float at = static_cast<float>(i), scale = 1 / (course.w + course.step_w * at);
        const float x = std::clamp((course.x + course.step_x * at) * scale - 0.5f, 0.0f, last_x);
        const float y = std::clamp((course.y + course.step_y * at) * scale - 0.5f, 0.0f, last_y);
        const int left = std::min(static_cast<int>(x), std::max(0, picture.width() - 2));
        const int top = std::min(static_cast<int>(y), std::max(0, picture.height() - 2));
        const int tx = static_cast<int>((x - static_cast<float>(left)) * 256),
                  ty = static_cast<int>((y - static_cast<float>(top)) * 256);
        const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(top) * width + left;
        for (int c = 0; c < 3; ++c) {
            const std::uint8_t* from = picture.channels[c].values.data() + first;
            const int upper = from[0] * (256 - tx) + from[right] * tx;
            const int lower = from[below] * (256 - tx) + from[below + right] * tx;
            result.channels[c].at(i, row) =
                static_cast<std::uint8_t>((upper * (256 - ty) + lower * ty + (1 << 15)) >> 16);
        }
    }
}

}  // namespace

std::optional<Quad> find_sheet(const Colours& picture) {
    const int factor = std::max(1, (std::max(picture.width(), picture.height()) + kSide - 1) / kSide);
    Closed closed;
    Bytes raw[3];
    for (int c = 0; c < 3; ++c) {
        raw[c] = blur(shrink(picture.channels[c], factor));
        closed.channels[c] = close(raw[c], std::max(2, std::max(raw[c].width, raw[c].height) / 40));
    }
    closed.least = least_of(closed.channels);
    closed.raw = least_of(raw);
    const double all = static_cast<double>(closed.least.values.size());
    std::optional<Quad> found;
    double largest = 0;
    for (const int threshold : thresholds_of(closed.least)) {
        const Blob blob = largest_blob(closed.least, threshold);
        if (blob.area < kLeastArea * all || blob.area > kMostArea * all || blob.area <= largest) continue;
        const std::vector<Point> hull = hull_of(blob);
        if (!is_paper(closed, blob, threshold)) continue;
        if (blob.area < kSolid * area_of(hull)) continue;
        const std::optional<Quad> quad = reduce_to_quad(hull);
        if (!quad || area_of(hull) < kFourSided * area_of({quad->begin(), quad->end()})) continue;
        const std::optional<Quad> refined = refine(closed, *quad);
        if (!refined) continue;
        found = refined;
        largest = blob.area;
    }
    if (!found) return std::nullopt;
    for (Point& corner : *found) corner = {corner.x * factor, corner.y * factor};
    return turn_upright(*found);
}

Colours straighten(const Colours& picture, const Quad& quad, double inset) {
    const auto length = [&](int i, int j) {
        const Point a = quad[static_cast<std::size_t>(i)], b = quad[static_cast<std::size_t>(j)];
        return std::hypot(a.x - b.x, a.y - b.y);
    };
    const double wide = (length(0, 1) + length(3, 2)) / 2, tall = (length(0, 3) + length(1, 2)) / 2;
    // No larger than the picture, however far off the corners are.
    const auto limit = [&](double side) {
        return static_cast<int>(std::clamp(side, 1.0, 1.5 * std::max(picture.width(), picture.height())));
    };
    Colours result(limit(wide), limit(tall));
    // The projection that takes the unit square to the quad.
    const Point a = quad[0], b = quad[1], c = quad[2], d = quad[3];
    const double dx = a.x - b.x + c.x - d.x, dy = a.y - b.y + c.y - d.y;
    const double ex = b.x - c.x, ey = b.y - c.y, fx = d.x - c.x, fy = d.y - c.y, det = ex * fy - ey * fx;
    const double g = std::abs(det) < 1e-9 ? 0 : (dx * fy - dy * fx) / det;
    const double h = std::abs(det) < 1e-9 ? 0 : (ex * dy - ey * dx) / det;
    // Of a result's pixel (x, y), the source is (x0 + x dx + y ex, ...) / (w0 + x dw + y ew).
    const double step_x = (1 - 2 * inset) / result.width(), step_y = (1 - 2 * inset) / result.height();
    const double ux = b.x - a.x + g * b.x, uy = b.y - a.y + g * b.y, vx = d.x - a.x + h * d.x, vy = d.y - a.y + h * d.y;
    for (int y = 0; y < result.height(); ++y) {
        const double u = inset + step_x / 2, v = inset + step_y * (y + 0.5);
        const float x0 = static_cast<float>(ux * u + vx * v + a.x), dx0 = static_cast<float>(ux * step_x);
        const float y0 = static_cast<float>(uy * u + vy * v + a.y), dy0 = static_cast<float>(uy * step_x);
        const float w0 = static_cast<float>(g * u + h * v + 1), dw0 = static_cast<float>(g * step_x);
        sample_row(picture, {x0, dx0, y0, dy0, w0, dw0}, result, y);
    }
    return result;
}

}  // namespace dabnet
