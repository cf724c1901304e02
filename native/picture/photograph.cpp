#include "photograph.h"

#include <array>
#include <cmath>

#include "../raster.h"
#include "clean.h"
#include "light.h"
#include "lines.h"
#include "sheet.h"
#include "strokes.h"

namespace dabnet {
namespace {

constexpr std::size_t kSide = 1050;  // pixels of a large picture's longer side that are kept, about
constexpr double kInset = 0.012;     // of a sheet is its edge

// Lays a row over white paper where it is transparent; returns `from` itself if it is nowhere.
const std::uint8_t* lay_over_white(const std::uint8_t* from, std::vector<std::uint8_t>& laid) {
    std::uint8_t opaque = 255;
    for (std::size_t x = 3; x < laid.size(); x += 4) opaque &= from[x];
    if (opaque == 255) return from;
    for (std::size_t x = 0; x < laid.size(); ++x) {
        const int alpha = from[x | 3];
        laid[x] = static_cast<std::uint8_t>((from[x] * alpha + 255 * (255 - alpha) + 127) / 255);
    }
    return laid.data();
}

// Sums `wide` neighbours of one channel into each pixel of a row.
template <std::size_t kChannels>
void average(const std::uint16_t* sums, std::size_t wide, std::size_t count, std::uint8_t* to, std::size_t width) {
    const std::uint32_t inverse = (1u << 24) / static_cast<std::uint32_t>(count) + 1;
    for (std::size_t x = 0; x < width; ++x) {
        std::uint32_t sum = static_cast<std::uint32_t>(count / 2);
        for (std::size_t i = 0; i < wide; ++i, sums += kChannels) sum += *sums;
        to[x] = static_cast<std::uint8_t>((sum * std::uint64_t{inverse}) >> 24);
    }
}

}  // namespace

Colours reduce(const Picture& picture) {
    const std::size_t channels = picture.channels;
    const std::size_t factor = std::max<std::size_t>(1, (std::max(picture.width, picture.height) + kSide / 2) / kSide);
    const std::size_t wide = std::min(factor, picture.width), tall = std::min(factor, picture.height);
    const std::size_t width = picture.width / wide, height = picture.height / tall;
    Colours result(static_cast<int>(width), static_cast<int>(height));
    std::vector<std::uint16_t> sums(picture.width * channels);
    std::vector<std::uint8_t> laid(channels == 4 ? sums.size() : 0);
    for (std::size_t y = 0; y < height; ++y) {
        for (std::size_t i = 0; i < tall; ++i) {
            const std::uint8_t* from = picture.pixels + (y * tall + i) * sums.size();
            if (channels == 4) from = lay_over_white(from, laid);
            if (i == 0) {
                std::copy(from, from + sums.size(), sums.begin());
            } else {
                for (std::size_t x = 0; x < sums.size(); ++x) sums[x] = static_cast<std::uint16_t>(sums[x] + from[x]);
            }
        }
        for (std::size_t c = 0; c < 3; ++c) {
            std::uint8_t* to = result.channels[c].row(static_cast<int>(y));
            if (channels == 1) average<1>(sums.data(), wide, wide * tall, to, width);
            if (channels == 3) average<3>(sums.data() + c, wide, wide * tall, to, width);
            if (channels == 4) average<4>(sums.data() + c, wide, wide * tall, to, width);
        }
    }
    return result;
}

std::optional<Bytes> find_photographed_ink(const Colours& picture, bool needs_sheet) {
    const std::optional<Quad> quad = find_sheet(picture);
    if (needs_sheet && !quad) return std::nullopt;
    Colours page = quad ? straighten(picture, *quad, kInset) : picture;
    if (!quad && is_light_on_dark(page)) {
        for (Bytes& channel : page.channels) channel = invert(channel);
    }
    const std::optional<Bytes> ink = find_strokes(page);
    if (!ink) return std::nullopt;
    return shrink_to_grid(*ink);
}

}  // namespace dabnet
