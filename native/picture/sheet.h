// A sheet of paper that lies on something darker.
#pragma once

#include <array>
#include <optional>

#include "plane.h"

namespace dabnet {

using Quad = std::array<Point, 4>;  // from the top left corner on, clockwise

// The sheet's corners, if the picture shows one: bright, with four straight sides that stand out sharply, of which the
// picture's own border may be some.
std::optional<Quad> find_sheet(const Colours& picture);

// The part of a picture within a quad as a rectangle. A share of `inset` is cut off at each side.
Colours straighten(const Colours& picture, const Quad& quad, double inset);

}  // namespace dabnet
