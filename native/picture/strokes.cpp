#include "strokes.h"

#include <array>
#include <cmath>
#include <numeric>

#include "light.h"
#include "lines.h"

namespace dabnet {
namespace {

constexpr int kLeastDark = 14;                       // of 255: fainter lines than this are never ink
constexpr double kSureNoise = 5, kMaybeNoise = 2.8;  // standard deviations of the paper's noise
constexpr double kSure = 0.5, kMaybe = 0.24;         // shares of how dark the ink is
constexpr double kSmooth = 7;                        // standard deviations, of 255, from which on noise is smoothed

constexpr double kStrip = 0.07, kDarkStrip = 0.2;  // how wide a desk's strip may be, and how much of it is dark
constexpr int kGap = 6;                            // rows without such darkness that may be in it
constexpr int kBeside = 6;                         // how far from a shadow's tip the shadow is looked for
constexpr double kAsDark = 0.4, kShadowed = 0.2;   // what share of the contrast is still dark, and of its sides is
constexpr double kLongestTip = 0.3;                // of the picture
constexpr double kStub = 0.02;                     // what reaches no farther from an edge is no part of a drawing

class Histogram {
   public:
    explicit Histogram(const Shorts& plane) {
        for (const std::int16_t value : plane.values) ++counts_[static_cast<std::size_t>(value + 255)];
    }
    // The value below which a share of those from `least` on lie; `least` if there are none.
    int quantile(double share, int least = -255) const {
        std::size_t all = 0;
        for (int value = least; value <= 255; ++value) all += counts_[static_cast<std::size_t>(value + 255)];
        double left = share * static_cast<double>(all);
        for (int value = least; value <= 255; ++value) {
            left -= static_cast<double>(counts_[static_cast<std::size_t>(value + 255)]);
            if (left < 0) return value;
        }
        return least;
    }

   private:
    std::array<std::size_t, 511> counts_{};
};

// Shifts blank paper to 0; returns its noise's standard deviation.
double level(Shorts& darkness) {
    const Histogram histogram(darkness);
    // Ink is on one side only: the brighter half tells about the paper.
    const int middle = histogram.quantile(0.47), low = histogram.quantile(0.15);
    for (std::int16_t& value : darkness.values)
        value = static_cast<std::int16_t>(std::clamp(value - middle, -255, 255));
    return std::max(1.0, static_cast<double>(middle - low));
}

void smooth(Shorts& plane) {
    Shorts wide = plane;
    for (int y = 0; y < plane.height; ++y) {
        const std::int16_t* from = plane.row(y);
        for (int x = 0; x < plane.width; ++x) {
            wide.at(x, y) = static_cast<std::int16_t>(
                (from[std::max(0, x - 1)] + 2 * from[x] + from[std::min(plane.width - 1, x + 1)]) / 4);
        }
    }
    for (int y = 0; y < plane.height; ++y) {
        const std::int16_t *above = wide.row(std::max(0, y - 1)), *here = wide.row(y),
                           *below = wide.row(std::min(plane.height - 1, y + 1));
        for (int x = 0; x < plane.width; ++x) {
            plane.at(x, y) = static_cast<std::int16_t>((above[x] + 2 * here[x] + below[x]) / 4);
        }
    }
}

// A part of the ink that hangs together.
struct Part {
    Rectangle box;
    int area;
    int deepest;
    double sum;
    bool is_kept = true;
};

// Labels what is at least `least` dark, with its neighbours on all eight sides.
class Parts {
   public:
    Parts(const Shorts& darkness, int least) : labels(darkness.width, darkness.height, -1) {
        std::vector<int> parents;
        const auto root = [&](int label) {
            while (parents[static_cast<std::size_t>(label)] != label) {
                int& parent = parents[static_cast<std::size_t>(label)];
                parent = parents[static_cast<std::size_t>(parent)];
                label = parent;
            }
            return label;
        };
        const int width = darkness.width;
        for (int y = 0; y < darkness.height; ++y) {
            const std::int16_t* from = darkness.row(y);
            int* here = labels.row(y);
            const int* above = y > 0 ? labels.row(y - 1) : nullptr;
            for (int x = 0; x < width; ++x) {
                if (from[x] < least) continue;
                int label = -1;
                const auto connect = [&](int other) {
                    if (other < 0) return;
                    other = root(other);
                    if (label < 0)
                        label = other;
                    else if (other < label)
                        std::swap(label, other), parents[static_cast<std::size_t>(other)] = label;
                    else
                        parents[static_cast<std::size_t>(other)] = label;
                };
                if (x > 0) connect(here[x - 1]);
                if (above) {
                    connect(above[x]);
                    if (x > 0) connect(above[x - 1]);
                    if (x + 1 < width) connect(above[x + 1]);
                }
                if (label < 0) {
                    label = static_cast<int>(parents.size());
                    parents.push_back(label);
                }
                here[x] = label;
            }
        }
        std::vector<int> numbers(parents.size(), -1);
        for (int y = 0; y < darkness.height; ++y) {
            for (int x = 0; x < width; ++x) {
                int& label = labels.at(x, y);
                if (label < 0) continue;
                int& number = numbers[static_cast<std::size_t>(root(label))];
                if (number < 0) {
                    number = static_cast<int>(all.size());
                    all.push_back({{x, y, x + 1, y + 1}, 0, 0, 0.0});
                }
                label = number;
                Part& part = all[static_cast<std::size_t>(number)];
                const int value = darkness.at(x, y);
                part.box = {std::min(part.box.left, x), part.box.top, std::max(part.box.right, x + 1), y + 1};
                part.area += 1;
                part.deepest = std::max(part.deepest, value);
                part.sum += value;
            }
        }
    }

    Plane<int> labels;
    std::vector<Part> all;
};

// Wipes what is dark along an edge of the picture, from it inwards: a strip of the desk beside the sheet.
void trim_edges(Shorts& darkness, int least) {
    const int width = darkness.width, height = darkness.height;
    for (const bool is_row : {true, false}) {
        const int length = is_row ? width : height, depths = static_cast<int>(kStrip * (is_row ? height : width));
        for (const bool is_far : {false, true}) {
            const auto line = [&](int depth) { return is_far ? (is_row ? height : width) - 1 - depth : depth; };
            const auto at = [&](int depth, int along) -> std::int16_t& {
                return is_row ? darkness.at(along, line(depth)) : darkness.at(line(depth), along);
            };
            int wiped = 0;
            for (int depth = 0; depth < std::min(depths, wiped + kGap); ++depth) {
                int dark = 0;
                for (int along = 0; along < length; ++along) dark += at(depth, along) >= least;
                if (dark > kDarkStrip * length) wiped = depth + 1;
            }
            if (wiped == 0 || wiped + kGap > depths) continue;  // what goes on is no strip
            for (int depth = 0; depth < wiped + kGap; ++depth) {
                for (int along = 0; along < length; ++along) at(depth, along) = 0;
            }
        }
    }
}

// Whether much of what lies beside a part is as dark as the part itself: the tip of a shadow, which is too narrow to be
// seen as darker paper. Beside a line there is paper.
bool is_shadow(const Parts& parts, std::size_t number, const Shorts& darkness, const Bytes& bright) {
    const Part& part = parts.all[number];
    const int margin = kBeside + 2;
    const Rectangle around{std::max(0, part.box.left - margin), std::max(0, part.box.top - margin),
                           std::min(darkness.width, part.box.right + margin),
                           std::min(darkness.height, part.box.bottom + margin)};
    Bytes inner(around.width(), around.height());
    double shade = 0, paper = 0, count = 0;
    for (int y = part.box.top; y < part.box.bottom; ++y) {
        for (int x = part.box.left; x < part.box.right; ++x) {
            if (parts.labels.at(x, y) != static_cast<int>(number)) continue;
            inner.at(x - around.left, y - around.top) = 1;
            if (2 * darkness.at(x, y) < part.deepest) continue;
            shade += bright.at(x, y);
            paper += bright.at(x, y) / std::max(0.1, 1 - darkness.at(x, y) / 255.0);
            count += 1;
        }
    }
    const double limit = (shade + kAsDark * (paper - shade)) / std::max(count, 1.0);
    Bytes outer = inner;
    dilate(inner, kBeside - 3);
    dilate(outer, kBeside);
    int dark = 0, all = 0;
    for (int y = 0; y < outer.height; ++y) {
        for (int x = 0; x < outer.width; ++x) {
            const int at_x = x + around.left, at_y = y + around.top;
            if (!outer.at(x, y) || inner.at(x, y) || parts.labels.at(at_x, at_y) >= 0) continue;
            ++all;
            dark += bright.at(at_x, at_y) < limit;
        }
    }
    return dark > kShadowed * all;
}

// Leaves away what hugs the edge of the picture: the rest of a desk, a frame, the border of a scan, a shadow's tip.
void drop_edges(Parts& found, const Shorts& darkness, const Bytes& bright) {
    const int width = darkness.width, height = darkness.height, near = std::max(1, std::min(width, height) / 100);
    for (std::size_t number = 0; number < found.all.size(); ++number) {
        Part& part = found.all[number];
        if (!part.is_kept) continue;
        const Rectangle& box = part.box;
        const double wide = static_cast<double>(box.width()) / width, tall = static_cast<double>(box.height()) / height;
        const bool left = box.left<near, right = box.right> width - near,
                   top = box.top<near, bottom = box.bottom> height - near;
        const bool is_along =
            ((left || right) && wide < 0.06 && tall > 4 * wide) || ((top || bottom) && tall < 0.06 && wide > 4 * tall);
        const bool is_around = left + right + top + bottom >= 3;
        const bool is_corner = (left || right) && (top || bottom) && wide < 0.08 && tall < 0.08;
        const bool is_stub = ((left || right) && wide < kStub) || ((top || bottom) && tall < kStub);
        const bool is_tip = left + right + top + bottom > 0 && std::max(wide, tall) < kLongestTip;
        if (is_along || is_around || is_corner || is_stub || (is_tip && is_shadow(found, number, darkness, bright))) {
            part.is_kept = false;
        }
    }
}

// Leaves away specks: parts with little ink beside all others', the farther away the sooner.
void drop_specks(std::vector<Part>& parts) {
    const Part* main = nullptr;
    for (const Part& part : parts) {
        if (part.is_kept && (!main || part.sum > main->sum)) main = &part;
    }
    if (!main) return;
    // Grow the drawing from its largest part: what is near counts as part of it.
    Rectangle box = main->box;
    const double largest = main->sum;
    std::vector<Part*> open;
    for (Part& part : parts) {
        if (part.is_kept && &part != main) open.push_back(&part);
    }
    std::sort(open.begin(), open.end(), [](const Part* a, const Part* b) { return a->sum > b->sum; });
    for (Part* part : open) {
        const double dx = std::max({0, box.left - part->box.right, part->box.left - box.right});
        const double dy = std::max({0, box.top - part->box.bottom, part->box.top - box.bottom});
        const double away = std::hypot(dx, dy) / std::max({box.width(), box.height(), 1});
        const double least = away == 0 ? 0.002 : away < 0.1 ? 0.004 : away < 0.35 ? 0.015 : 0.06;
        if (part->sum < least * largest || part->area < 4) {
            part->is_kept = false;
            continue;
        }
        box = {std::min(box.left, part->box.left), std::min(box.top, part->box.top),
               std::max(box.right, part->box.right), std::max(box.bottom, part->box.bottom)};
    }
}

}  // namespace

std::optional<Bytes> find_strokes(const Colours& picture) {
    Shorts darkness = find_darkness(picture);
    double noise = level(darkness);
    if (noise > kSmooth) {
        smooth(darkness);
        noise = level(darkness);
    }
    wipe_lines(darkness, noise);

    const int least = std::max(kLeastDark, static_cast<int>(kSureNoise * noise));
    trim_edges(darkness, least);
    const int full = Histogram(darkness).quantile(0.85, least);
    const int sure = std::max(least, static_cast<int>(kSure * full));
    const int maybe =
        std::max({kLeastDark / 2, static_cast<int>(kMaybeNoise * noise), static_cast<int>(kMaybe * full)});
    Parts parts(darkness, std::min(maybe, sure));
    for (Part& part : parts.all) part.is_kept = part.deepest >= sure && part.area >= 3;
    drop_edges(parts, darkness, brightness(picture));
    drop_specks(parts.all);

    Rectangle box{darkness.width, darkness.height, 0, 0};
    for (const Part& part : parts.all) {
        if (!part.is_kept) continue;
        box = {std::min(box.left, part.box.left), std::min(box.top, part.box.top), std::max(box.right, part.box.right),
               std::max(box.bottom, part.box.bottom)};
    }
    if (box.right <= box.left) return std::nullopt;
    Bytes ink(box.width(), box.height());
    const double low = 0.5 * maybe, high = std::max(0.8 * full, low + 1);
    for (int y = box.top; y < box.bottom; ++y) {
        for (int x = box.left; x < box.right; ++x) {
            const int label = parts.labels.at(x, y);
            if (label < 0 || !parts.all[static_cast<std::size_t>(label)].is_kept) continue;
            const double share = (darkness.at(x, y) - low) / (high - low);
            ink.at(x - box.left, y - box.top) = static_cast<std::uint8_t>(std::clamp(share, 0.0, 1.0) * 255);
        }
    }
    return ink;
}

}  // namespace dabnet
