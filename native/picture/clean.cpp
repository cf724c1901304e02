#include "clean.h"

#include <array>
#include <cmath>

#include "../raster.h"

namespace dabnet {
namespace {

// Differences from the paper's shade, of 255, that are taken for stains and noise if nothing is darker.
constexpr int kLeastContrast = 24;
// Ink fainter than this share of the darkest is taken for the paper's texture.
constexpr double kNoise = 0.12;
// From this shade on, of 255, ink counts for where the drawing is.
constexpr std::uint8_t kInked = 64;

using Histogram = std::array<std::size_t, 256>;

std::uint8_t luma(int red, int green, int blue) {
    return static_cast<std::uint8_t>((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16);
}

// Lays a shade over opaque paper, rounded as Pillow's alpha_composite rounds.
int lay_over(int shade, int alpha, int paper) {
    const int above = alpha * 128, sum = shade * above + paper * (255 * 128 - above) + (0x80 << 7);
    return (((sum >> 8) + sum) >> 8) >> 7;
}

// The median shade of a border of a fiftieth of the picture.
int paper_shade(const Bytes& grey) {
    const int thick = std::max(1, std::min(grey.width, grey.height) / 50);
    Histogram counts{};
    std::size_t total = 0;
    const auto count = [&](int left, int right, int top, int bottom) {
        for (int y = top; y < bottom; ++y) {
            for (int x = left; x < right; ++x) ++counts[grey.at(x, y)];
        }
        total += static_cast<std::size_t>(right - left) * static_cast<std::size_t>(bottom - top);
    };
    count(0, grey.width, 0, thick);
    count(0, grey.width, grey.height - thick, grey.height);
    count(0, thick, 0, grey.height);
    count(grey.width - thick, grey.width, 0, grey.height);
    const auto at_rank = [&](std::size_t rank) {
        int shade = 0;
        for (std::size_t seen = counts[0]; seen <= rank; seen += counts[static_cast<std::size_t>(shade)]) ++shade;
        return shade;
    };
    return (at_rank((total - 1) / 2) + at_rank(total / 2)) / 2;
}

// Maps the paper's shade to 0 and the ink's to 255, and what is almost paper to 0.
void stretch(Bytes& plane, int paper, int ink) {
    std::array<std::uint8_t, 256> shares;
    for (int value = 0; value < 256; ++value) {
        const double share = static_cast<double>(value - paper) / (ink - paper);
        const double rounded = std::nearbyint(share * 255);  // halves go to even numbers
        shares[static_cast<std::size_t>(value)] =
            share < kNoise ? std::uint8_t{0} : static_cast<std::uint8_t>(std::min(255.0, rounded));
    }
    for (std::uint8_t& value : plane.values) value = shares[value];
}

// Which pixels make one of the result, and how much of each, in 22 bits after the point: Pillow's box filter.
struct Share {
    int first;
    std::vector<int> weights;
};

std::vector<Share> box_shares(int from, int to) {
    constexpr int kOne = 1 << 22;
    const double scale = static_cast<double>(from) / to, wide = std::max(scale, 1.0), narrow = 1 / wide;
    std::vector<Share> shares(static_cast<std::size_t>(to));
    for (int i = 0; i < to; ++i) {
        const double centre = (i + 0.5) * scale;
        const int first = std::max(0, static_cast<int>(centre - wide / 2 + 0.5));
        const int past = std::min(from, static_cast<int>(centre + wide / 2 + 0.5));
        std::vector<double> within;
        double sum = 0;
        for (int x = first; x < past; ++x) {
            const double at = (x - centre + 0.5) * narrow;
            within.push_back(at > -0.5 && at <= 0.5 ? 1.0 : 0.0);
            sum += within.back();
        }
        Share& share = shares[static_cast<std::size_t>(i)];
        share.first = first;
        for (const double weight : within) {
            share.weights.push_back(static_cast<int>(0.5 + (sum == 0 ? weight : weight / sum) * kOne));
        }
    }
    return shares;
}

std::uint8_t rounded(std::int64_t sum) { return static_cast<std::uint8_t>(std::min<std::int64_t>(sum >> 22, 255)); }

constexpr std::int64_t kHalf = 1 << 21;

Bytes resize_rows(const Bytes& plane, int width) {
    if (width == plane.width) return plane;
    Bytes result(width, plane.height);
    const std::vector<Share> shares = box_shares(plane.width, width);
    for (int y = 0; y < plane.height; ++y) {
        for (int x = 0; x < width; ++x) {
            const Share& share = shares[static_cast<std::size_t>(x)];
            const std::uint8_t* from = plane.row(y) + share.first;
            std::int64_t sum = kHalf;
            for (std::size_t i = 0; i < share.weights.size(); ++i) sum += std::int64_t{share.weights[i]} * from[i];
            result.at(x, y) = rounded(sum);
        }
    }
    return result;
}

Bytes resize_columns(const Bytes& plane, int height) {
    if (height == plane.height) return plane;
    Bytes result(plane.width, height);
    const std::vector<Share> shares = box_shares(plane.height, height);
    std::vector<std::int64_t> sums(static_cast<std::size_t>(plane.width));
    for (int y = 0; y < height; ++y) {
        const Share& share = shares[static_cast<std::size_t>(y)];
        std::fill(sums.begin(), sums.end(), kHalf);
        for (std::size_t i = 0; i < share.weights.size(); ++i) {
            const std::uint8_t* from = plane.row(share.first + static_cast<int>(i));
            for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += std::int64_t{share.weights[i]} * from[x];
        }
        std::transform(sums.begin(), sums.end(), result.row(y), rounded);
    }
    return result;
}

// Each pass rounds, so their order matters: that of Pillow 13.
Bytes resize(const Bytes& plane, int width, int height) {
    if (plane.height - height > 2 * (plane.width - width)) return resize_rows(resize_columns(plane, height), width);
    return resize_columns(resize_rows(plane, width), height);
}

std::uint8_t largest(const Bytes& plane) { return *std::max_element(plane.values.begin(), plane.values.end()); }

std::optional<Rectangle> box_of(const Bytes& plane, std::uint8_t least) {
    Rectangle box{plane.width, plane.height, 0, 0};
    for (int y = 0; y < plane.height; ++y) {
        for (int x = 0; x < plane.width; ++x) {
            if (plane.at(x, y) < least) continue;
            box = {std::min(box.left, x), std::min(box.top, y), std::max(box.right, x + 1), y + 1};
        }
    }
    if (box.right == 0) return std::nullopt;
    return box;
}

}  // namespace

Bytes to_grey(const Picture& picture, std::uint8_t paper) {
    Bytes grey(static_cast<int>(picture.width), static_cast<int>(picture.height));
    const std::uint8_t* from = picture.pixels;
    if (picture.channels == 1) {
        grey.values.assign(from, from + grey.values.size());
        return grey;
    }
    for (std::uint8_t& value : grey.values) {
        const int alpha = picture.channels == 4 ? from[3] : 255;
        if (alpha == 255) {
            value = luma(from[0], from[1], from[2]);
        } else if (alpha == 0) {
            value = paper;
        } else {
            value =
                luma(lay_over(from[0], alpha, paper), lay_over(from[1], alpha, paper), lay_over(from[2], alpha, paper));
        }
        from += picture.channels;
    }
    return grey;
}

Bytes crop(const Bytes& plane, const Rectangle& part) {
    Bytes result(part.width(), part.height());
    for (int y = 0; y < result.height; ++y) {
        const std::uint8_t* from = plane.row(part.top + y) + part.left;
        std::copy(from, from + result.width, result.row(y));
    }
    return result;
}

Bytes shrink_to_grid(const Bytes& plane) {
    constexpr int kSide = static_cast<int>(kGrid);
    if (std::max(plane.width, plane.height) <= kSide) return plane;
    const auto scaled = [](int side, int longest) {
        return std::max(1, static_cast<int>(std::nearbyint(static_cast<double>(side) / longest * kSide)));
    };
    if (plane.width > plane.height) return resize(plane, kSide, scaled(plane.height, plane.width));
    return resize(plane, scaled(plane.width, plane.height), kSide);
}

std::optional<Bytes> find_clean_ink(const Bytes& grey) {
    const auto [darkest, lightest] = std::minmax_element(grey.values.begin(), grey.values.end());
    const int paper = paper_shade(grey), below = paper - *darkest, above = *lightest - paper;
    if (std::max(below, above) < kLeastContrast) return std::nullopt;
    Bytes ink = grey;
    stretch(ink, paper, below >= above ? *darkest : *lightest);
    if (std::max(ink.width, ink.height) <= static_cast<int>(kGrid)) return ink;
    // A small drawing on a large sheet keeps its detail: only the inked part is shrunk.
    ink = crop(ink, *box_of(ink, kInked));
    if (std::max(ink.width, ink.height) <= static_cast<int>(kGrid)) return ink;
    ink = shrink_to_grid(ink);
    if (const std::uint8_t full = largest(ink)) stretch(ink, 0, full);  // fine lines went grey
    return ink;
}

}  // namespace dabnet
