#include "picture.h"

#include <cstring>

#include "../raster.h"
#include "clean.h"
#include "photograph.h"

namespace dabnet {
namespace {

// Puts ink into the middle of a bitmap, in 16 shades.
void pack(const Bytes& ink, std::uint8_t* bitmap) {
    constexpr int kSide = static_cast<int>(kGrid);
    std::memset(bitmap, 0, kGrid * kGrid / 2);
    const int top = (kSide - ink.height) / 2, left = (kSide - ink.width) / 2;
    for (int y = 0; y < ink.height; ++y) {
        for (int x = 0; x < ink.width; ++x) {
            const int level = (ink.at(x, y) * 15 + 127) / 255, at = (top + y) * kSide + left + x;
            bitmap[at / 2] = static_cast<std::uint8_t>(bitmap[at / 2] | (at % 2 == 0 ? level << 4 : level));
        }
    }
}

}  // namespace

PictureKind find_ink(const Picture& picture, std::uint8_t* bitmap, bool is_clean) {
    const Rectangle whole{0, 0, static_cast<int>(picture.width), static_cast<int>(picture.height)};
    const std::optional<CleanPart> clean = is_clean ? std::optional(CleanPart{whole, false}) : find_clean_part(picture);
    if (!clean || clean->may_be_desk) {
        if (const std::optional<Bytes> ink = find_photographed_ink(reduce(picture), clean.has_value())) {
            pack(*ink, bitmap);
            return PictureKind::kPhotograph;
        }
        if (!clean) return PictureKind::kNoInk;
    }
    // White lines on nothing show on black paper.
    for (const std::uint8_t paper : {std::uint8_t{255}, std::uint8_t{0}}) {
        if (paper == 0 && picture.channels != 4) break;
        if (const std::optional<Bytes> ink = find_clean_ink(crop(to_grey(picture, paper), clean->part))) {
            pack(*ink, bitmap);
            return PictureKind::kClean;
        }
    }
    return PictureKind::kNoInk;
}

}  // namespace dabnet
