// Tells clean pictures from photographs by a sample of the pixels: paper of exactly one shade is no photograph.
#include <array>
#include <cstdlib>

#include "clean.h"

namespace dabnet {
namespace {

constexpr int kSmall = 64;     // pictures up to this size are icons and thumbnails: nobody photographs so few pixels
constexpr int kSamples = 400;  // along each side of a picture
constexpr int kFlat = 3;       // shades around the paper's that a JPEG of blank paper may have
constexpr int kNear = 40;      // shades around it that light and noise would spread over
constexpr int kInk = 24;       // and from here on it is ink
constexpr int kPalette = 40;   // shades that a photograph has more than
constexpr double kBar = 0.02, kBlank = 0.5, kFlatShare = 0.8, kQuietShare = 0.88, kFrameShare = 0.85;
constexpr double kWidestBar = 0.3, kWidestFrame = 0.08, kBrighter = 0.1, kDeep = 0.05, kStraight = 0.75,
                 kLongRun = 0.12;

class Sample {
   public:
    explicit Sample(const Picture& picture)
        : picture_(picture),
          width(static_cast<int>(picture.width)),
          height(static_cast<int>(picture.height)),
          step_x(std::max(1, width / kSamples)),
          step_y(std::max(1, height / kSamples)) {
        std::array<int, 256> counts{};
        for (int y = 0; y < height; y += step_y) {
            for (int x = 0; x < width; x += step_x) ++counts[static_cast<std::size_t>(shade(x, y))];
        }
        const auto around = [&](int value, int reach) {
            int sum = 0;
            for (int near = std::max(0, value - reach); near <= std::min(255, value + reach); ++near) {
                sum += counts[static_cast<std::size_t>(near)];
            }
            return sum;
        };
        for (int value = 1; value < 256; ++value) {
            if (around(value, 1) > around(paper, 1)) paper = value;
        }
        // Few shades are a palette's, and may be dithered.
        const auto count_shades = std::count_if(counts.begin(), counts.end(), [](int count) { return count > 0; });
        is_flat = count_shades <= kPalette || (around(paper, kFlat) >= kFlatShare * around(paper, kNear) && is_quiet());
    }

    int shade(int x, int y) const {
        const std::uint8_t* at =
            picture_.pixels +
            (static_cast<std::size_t>(y) * picture_.width + static_cast<std::size_t>(x)) * picture_.channels;
        if (picture_.channels == 1) return at[0];
        const int grey = (at[0] * 19595 + at[1] * 38470 + at[2] * 7471 + 0x8000) >> 16;
        return picture_.channels == 3 ? grey : (grey * at[3] + 255 * (255 - at[3]) + 127) / 255;
    }

    // The share of a row or a column, within a part of the picture, whose distance from the paper's shade is in range.
    template <typename InRange>
    double share(const Rectangle& part, bool is_row, int line, InRange in_range) const {
        int found = 0, all = 0;
        const int end = is_row ? part.right : part.bottom, step = is_row ? step_x : step_y;
        for (int i = is_row ? part.left : part.top; i < end; i += step, ++all) {
            found += in_range(std::abs((is_row ? shade(i, line) : shade(line, i)) - paper));
        }
        return static_cast<double>(found) / std::max(all, 1);
    }

   private:
    // Whether blank paper has no noise: neighbours are of the very same shade.
    bool is_quiet() const {
        int same = 0, all = 0;
        for (int y = 0; y < height; y += step_y) {
            for (int x = 0; x + 1 < width; x += step_x) {
                const int here = shade(x, y), next = shade(x + 1, y);
                if (std::max(std::abs(here - paper), std::abs(next - paper)) > kNear) continue;
                ++all;
                same += here == next;
            }
        }
        return same >= kQuietShare * all;
    }

    const Picture& picture_;

   public:
    int width, height, step_x, step_y;
    int paper = 0;
    bool is_flat = false;
};

bool is_paper(int distance) { return distance <= kFlat; }
bool is_ink(int distance) { return distance >= kInk; }

// The four sides of a part, each seen as lines that lead from it inwards.
struct Side {
    bool is_row;
    int Rectangle::* edge;
    int inwards;

    int line(const Rectangle& part, int depth) const { return part.*edge + (inwards > 0 ? depth : -1 - depth); }
    int length(const Rectangle& part) const { return is_row ? part.height() : part.width(); }
};
constexpr std::array<Side, 4> kSides{{{true, &Rectangle::top, 1},
                                      {true, &Rectangle::bottom, -1},
                                      {false, &Rectangle::left, 1},
                                      {false, &Rectangle::right, -1}}};

// Cuts off a program's bars, and a desk: lines without any paper. False if their edges are not straight.
bool cut_bars(const Sample& sample, Rectangle& part) {
    for (const Side& side : kSides) {
        const int most = static_cast<int>(kWidestBar * side.length(part));
        int depth = 0;
        while (depth < most && sample.share(part, side.is_row, side.line(part, depth), is_paper) < kBar) ++depth;
        if (depth == 0 || depth == most) continue;
        part.*side.edge += side.inwards * depth;
        const int soft = 1 + side.length(part) / 200;
        if (sample.share(part, side.is_row, side.line(part, soft), is_paper) < kStraight) return false;
    }
    return true;
}

// Cuts off a frame, if there is one on all four sides: lines that are ink from end to end.
void cut_frame(const Sample& sample, Rectangle& part) {
    Rectangle inside = part;
    for (const Side& side : kSides) {
        const int most = static_cast<int>(kWidestFrame * side.length(part));
        int past = 0;
        for (int depth = 0; depth < most; ++depth) {
            if (sample.share(part, side.is_row, side.line(part, depth), is_ink) >= kFrameShare) past = depth + 1;
        }
        if (past == 0) return;
        // Soft edges of the frame go with it.
        while (past < most && sample.share(part, side.is_row, side.line(part, past), is_paper) < kBlank) ++past;
        inside.*side.edge += side.inwards * past;
    }
    part = inside;
}

// Whether something else than paper reaches in from the border, wider and deeper than a line: a shadow, a desk.
bool is_dark_at_border(const Sample& sample, const Rectangle& part) {
    constexpr int kDepths = 5;
    const int deep = std::max(kDepths, static_cast<int>(kDeep * std::min(part.width(), part.height())));
    for (const Side& side : kSides) {
        int run = 0, longest = 0, all = 0;
        const int end = side.is_row ? part.right : part.bottom, step = side.is_row ? sample.step_x : sample.step_y;
        for (int i = side.is_row ? part.left : part.top; i < end; i += step, ++all) {
            bool is_dark = true;
            for (int depth = 0; depth < kDepths && is_dark; ++depth) {
                const int line = side.line(part, std::min(depth * deep / (kDepths - 1), side.length(part) - 1));
                is_dark =
                    !is_paper(std::abs((side.is_row ? sample.shade(i, line) : sample.shade(line, i)) - sample.paper));
            }
            run = is_dark ? run + 1 : 0;
            longest = std::max(longest, run);
        }
        if (longest > kLongRun * all) return true;
    }
    return false;
}

}  // namespace

std::optional<CleanPart> find_clean_part(const Picture& picture) {
    const Sample sample(picture);
    const Rectangle whole{0, 0, sample.width, sample.height};
    if (std::max(sample.width, sample.height) <= kSmall) return CleanPart{whole, false};
    if (!sample.is_flat) return std::nullopt;
    Rectangle part = whole;
    if (!cut_bars(sample, part)) return std::nullopt;
    cut_frame(sample, part);
    if (is_dark_at_border(sample, part)) return std::nullopt;
    int ink = 0, brighter = 0, all = 0;
    for (int y = part.top; y < part.bottom; y += sample.step_y) {
        for (int x = part.left; x < part.right; x += sample.step_x, ++all) {
            const int more = sample.shade(x, y) - sample.paper;
            ink += is_ink(std::abs(more));
            brighter += more >= kInk;
        }
    }
    if (ink == 0) part = whole;  // what was cut off is the drawing
    return CleanPart{part, brighter > kBrighter * all};
}

}  // namespace dabnet
