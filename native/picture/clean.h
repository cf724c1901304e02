// Pictures without light and shade: drawings by a program, scans that were cleaned, screenshots.
#pragma once

#include <optional>

#include "picture.h"
#include "plane.h"

namespace dabnet {

// A picture in shades of grey, laid over paper of the shade `paper` where it is transparent.
Bytes to_grey(const Picture& picture, std::uint8_t paper);

// Ink 255 on 0, at most kGrid per side: what differs from the border's median shade, on the side that differs most.
// Nothing if the contrast is too faint.
std::optional<Bytes> find_clean_ink(const Bytes& grey);

// Where a clean picture's drawing is: all of it, or what lies inside a frame or beside a program's bars.
struct CleanPart {
    Rectangle part;
    bool may_be_desk;  // if much of it is brighter than the paper: a sheet that lies on something flat
};

// Nothing if it is no clean picture: its paper is not of one shade, or not what the border is made of.
std::optional<CleanPart> find_clean_part(const Picture& picture);

Bytes crop(const Bytes& plane, const Rectangle& part);

// Shrinks by area averages to at most kGrid per side; smaller planes stay as they are.
Bytes shrink_to_grid(const Bytes& plane);

}  // namespace dabnet
