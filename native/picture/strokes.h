// From a sheet of paper in any light to the ink on it.
#pragma once

#include <optional>

#include "plane.h"

namespace dabnet {

// The part of a picture with the lines that someone drew, dark on lighter paper, as ink 255 on 0; nothing if there are
// none.
std::optional<Bytes> find_strokes(const Colours& picture);

}  // namespace dabnet
