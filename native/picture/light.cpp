#include "light.h"

#include <cmath>

namespace dabnet {
namespace {

// Makes each pixel the largest of those up to `radius` above and below it: the largest of a window is that of the end
// of one block of rows and the beginning of the next (van Herk).
void widen_columns(Bytes& plane, int radius) {
    const int window = 2 * radius + 1, height = plane.height, width = plane.width;
    const int padded = (height + 2 * radius + window - 1) / window * window;
    Bytes forward(width, padded), backward(width, padded);
    const std::vector<std::uint8_t> nothing(static_cast<std::size_t>(width));
    const auto row = [&](int i) { return i >= radius && i < height + radius ? plane.row(i - radius) : nothing.data(); };
    const auto brighten = [width](const std::uint8_t* a, const std::uint8_t* b, std::uint8_t* to) {
        for (int x = 0; x < width; ++x) to[x] = std::max(a[x], b[x]);
    };
    for (int i = 0; i < padded; ++i) {
        brighten(row(i), i % window == 0 ? row(i) : forward.row(i - 1), forward.row(i));
    }
    for (int i = padded - 1; i >= 0; --i) {
        brighten(row(i), i % window == window - 1 ? row(i) : backward.row(i + 1), backward.row(i));
    }
    for (int y = 0; y < height; ++y) brighten(backward.row(y), forward.row(y + 2 * radius), plane.row(y));
}

// A linear mix of two neighbours for each pixel of a plane of twice the resolution.
struct Between {
    int first, second;
    float share;  // of the second

    Between(int i, int factor, int count) {
        const float at = (static_cast<float>(i) + 0.5f) / static_cast<float>(factor) - 0.5f;
        const float floor = std::floor(at);
        first = std::clamp(static_cast<int>(floor), 0, count - 1);
        second = std::clamp(static_cast<int>(floor) + 1, 0, count - 1);
        share = at - floor;
    }
};

// One row, `y`, of a plane enlarged by `factor`, as floats.
void enlarge_row(const Plane<float>& plane, const std::vector<Between>& columns, const Between& rows, float* mixed,
                 float* out) {
    const float *above = plane.row(rows.first), *below = plane.row(rows.second);
    for (int x = 0; x < plane.width; ++x) mixed[x] = above[x] + (below[x] - above[x]) * rows.share;
    for (std::size_t x = 0; x < columns.size(); ++x) {
        const Between& at = columns[x];
        out[x] = mixed[at.first] + (mixed[at.second] - mixed[at.first]) * at.share;
    }
}

constexpr int kPaperSide = 520;  // pixels at which the paper's brightness is found

int paper_factor(const Colours& picture) {
    return std::max(1, (std::max(picture.width(), picture.height()) + kPaperSide - 1) / kPaperSide);
}

// 1 / the paper's brightness in one channel.
Plane<float> find_paper(const Bytes& channel, int factor) {
    Bytes small = blur(shrink(channel, factor));
    // Wider than a marker's line: a 25th of the picture.
    Bytes paper = close(small, std::max(2, std::max(small.width, small.height) / 46));
    // Beside a shadow's edge the darker side counts, so that the edge is no line.
    paper = invert(paper);
    dilate(paper, 2);
    paper = blur(invert(paper));
    Plane<float> inverse(paper.width, paper.height);
    for (std::size_t i = 0; i < paper.values.size(); ++i) {
        inverse.values[i] = 255.0f / static_cast<float>(std::max<int>(paper.values[i], 12));
    }
    return inverse;
}

}  // namespace

void dilate(Bytes& plane, int radius) {
    widen_columns(plane, radius);
    plane = transpose(plane);
    widen_columns(plane, radius);
    plane = transpose(plane);
}

Bytes shrink(const Bytes& plane, int factor) {
    if (factor == 1) return plane;
    const int width = std::max(1, plane.width / factor), height = std::max(1, plane.height / factor);
    const int wide = std::min(factor, plane.width), tall = std::min(factor, plane.height), half = wide * tall / 2;
    Bytes small(width, height);
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(plane.width));
    for (int y = 0; y < height; ++y) {
        std::fill(sums.begin(), sums.end(), 0u);
        for (int i = 0; i < tall; ++i) {
            const std::uint8_t* from = plane.row(y * factor + i);
            for (std::size_t x = 0; x < sums.size(); ++x) sums[x] += from[x];
        }
        for (int x = 0; x < width; ++x) {
            std::uint32_t sum = static_cast<std::uint32_t>(half);
            for (int i = 0; i < wide; ++i) sum += sums[static_cast<std::size_t>(x * factor + i)];
            small.at(x, y) = static_cast<std::uint8_t>(sum / static_cast<std::uint32_t>(wide * tall));
        }
    }
    return small;
}

Bytes invert(const Bytes& plane) {
    Bytes result = plane;
    for (std::uint8_t& value : result.values) value = static_cast<std::uint8_t>(255 - value);
    return result;
}

Bytes close(const Bytes& plane, int radius) {
    Bytes wide = plane;
    dilate(wide, radius);
    wide = invert(wide);
    dilate(wide, radius);
    return invert(wide);
}

Bytes blur(const Bytes& plane) {
    Bytes result(plane.width, plane.height);
    std::vector<int> sums(static_cast<std::size_t>(plane.width));
    for (int y = 0; y < plane.height; ++y) {
        const std::uint8_t *above = plane.row(std::max(0, y - 1)), *here = plane.row(y),
                           *below = plane.row(std::min(plane.height - 1, y + 1));
        for (int x = 0; x < plane.width; ++x) sums[static_cast<std::size_t>(x)] = above[x] + 2 * here[x] + below[x];
        for (int x = 0; x < plane.width; ++x) {
            const int left = sums[static_cast<std::size_t>(std::max(0, x - 1))];
            const int right = sums[static_cast<std::size_t>(std::min(plane.width - 1, x + 1))];
            result.at(x, y) =
                static_cast<std::uint8_t>((left + 2 * sums[static_cast<std::size_t>(x)] + right + 8) / 16);
        }
    }
    return result;
}

Bytes brightness(const Colours& picture) {
    Bytes result(picture.width(), picture.height());
    const std::uint8_t *red = picture.channels[0].values.data(), *green = picture.channels[1].values.data(),
                       *blue = picture.channels[2].values.data();
    for (std::size_t i = 0; i < result.values.size(); ++i) {
        result.values[i] = static_cast<std::uint8_t>((77 * red[i] + 150 * green[i] + 29 * blue[i] + 128) >> 8);
    }
    return result;
}

Shorts find_darkness(const Colours& picture) {
    const int width = picture.width(), height = picture.height(), factor = paper_factor(picture);
    Plane<float> inverse[3];
    for (int c = 0; c < 3; ++c) inverse[c] = find_paper(picture.channels[c], factor);
    std::vector<Between> columns;
    for (int x = 0; x < width; ++x) columns.emplace_back(x, factor, inverse[0].width);
    Shorts darkness(width, height);
    const std::size_t count = static_cast<std::size_t>(width);
    std::vector<float> mixed(static_cast<std::size_t>(inverse[0].width)), scale(count), most(count), sum(count);
    for (int y = 0; y < height; ++y) {
        const Between rows(y, factor, inverse[0].height);
        std::fill(sum.begin(), sum.end(), 0.0f);
        for (int c = 0; c < 3; ++c) {
            enlarge_row(inverse[c], columns, rows, mixed.data(), scale.data());
            const std::uint8_t* from = picture.channels[c].row(y);
            const float weight = c == 0 ? 0.3f : c == 1 ? 0.55f : 0.15f;
            for (std::size_t x = 0; x < count; ++x) {
                const float dark = 255.0f - static_cast<float>(from[x]) * scale[x];
                sum[x] += weight * dark;
                most[x] = c == 0 ? dark : std::max(most[x], dark);
            }
        }
        std::int16_t* to = darkness.row(y);
        for (std::size_t x = 0; x < count; ++x) {
            to[x] = static_cast<std::int16_t>(std::max(-255.0f, 0.5f * (sum[x] + most[x])));
        }
    }
    return darkness;
}

bool is_light_on_dark(const Colours& picture) {
    Bytes small = brightness(picture);
    small = blur(shrink(small, std::max(1, std::max(small.width, small.height) / 500)));
    const int factor = std::max(1, std::max(small.width, small.height) / 28);
    const Bytes coarse = blur(shrink(small, factor));
    // Lines are few, and stand out from their surroundings more than noise and smudges do.
    double dark = 0, light = 0, mean = 0;
    Plane<float> around(coarse.width, coarse.height);
    std::copy(coarse.values.begin(), coarse.values.end(), around.values.begin());
    std::vector<Between> columns;
    for (int x = 0; x < small.width; ++x) columns.emplace_back(x, factor, coarse.width);
    std::vector<float> mixed(static_cast<std::size_t>(coarse.width)), row(columns.size());
    for (int y = 0; y < small.height; ++y) {
        enlarge_row(around, columns, {y, factor, coarse.height}, mixed.data(), row.data());
        for (int x = 0; x < small.width; ++x) {
            const float usual = std::max(row[static_cast<std::size_t>(x)], 8.0f);
            const float more = (static_cast<float>(small.at(x, y)) - usual) / usual;
            (more > 0 ? light : dark) += std::abs(more * more * more);
            mean += small.at(x, y);
        }
    }
    mean /= static_cast<double>(small.values.size());
    return light > (mean > 140 ? 3.0 : 1.0) * dark;
}

}  // namespace dabnet
