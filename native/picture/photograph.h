// Photographs of drawings.
#pragma once

#include <optional>

#include "picture.h"
#include "plane.h"

namespace dabnet {

// The picture at reduced scale, about 1000 pixels per side, in colour, and laid over white where it is transparent.
Colours reduce(const Picture& picture);

// Ink 255 on 0, at most kGrid per side. Nothing if there is none; or, if `needs_sheet`, if no sheet of paper is seen.
std::optional<Bytes> find_photographed_ink(const Colours& picture, bool needs_sheet);

}  // namespace dabnet
