// Straight lines from one edge of the sheet to the other: printed on it, or a frame around it.
#pragma once

#include "plane.h"

namespace dabnet {

// Wipes ruled and squared lines off a sheet's darkness (light.h), and whatever lies beyond a frame near its edges, the
// frame included. `noise` is the darkness's standard deviation on blank paper.
void wipe_lines(Shorts& darkness, double noise);

}  // namespace dabnet
