// From any picture of a drawing to the drawing's ink on blank paper, whatever decoded the picture.
//
// A clean picture (one flat shade of paper all around) is read shade by shade, exactly as the training sets were. All
// else is taken for a photograph: its sheet is found and straightened, uneven light is divided out, and frames, ruled
// lines and specks are left away.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

struct Picture {
    const std::uint8_t* pixels;  // (height, width, channels), rows one after another
    std::size_t width, height;   // at least 1
    std::size_t channels;        // 1 grey, 3 red, green and blue, 4 with an alpha that is not premultiplied
};

// A picture may have so many pixels; callers refuse larger ones.
constexpr std::size_t kMostPixels = std::size_t{1} << 27;

enum class PictureKind { kNoInk, kClean, kPhotograph };

// Writes the picture's ink as a bitmap of raster.h, (kGrid, kGrid / 2), and says what kind of picture it was. Nothing
// is written if there is no ink. Who knows that a picture is clean, all of it, can say so.
PictureKind find_ink(const Picture& picture, std::uint8_t* bitmap, bool is_clean = false);

}  // namespace dabnet
