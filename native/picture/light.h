// Light and shade: what blank paper would look like everywhere, and how much darker the picture is.
#pragma once

#include "plane.h"

namespace dabnet {

// Shrinks by a whole factor, each pixel the mean of those it covers.
Bytes shrink(const Bytes& plane, int factor);

// Makes each pixel the largest of those up to `radius` away, to the sides and up and down.
void dilate(Bytes& plane, int radius);

// Grey closing: fills what is darker than its surroundings and narrower than 2 * radius + 1, and keeps edges in place.
Bytes close(const Bytes& plane, int radius);
Bytes invert(const Bytes& plane);
Bytes blur(const Bytes& plane);  // 3 x 3

// The brightness of a picture, as means of its channels.
Bytes brightness(const Colours& picture);

// How much darker than the paper around it each pixel is: 255 is black, 0 as bright as paper, and less is brighter.
Shorts find_darkness(const Colours& picture);

// Whether lines are lighter than their surroundings, as chalk on a board.
bool is_light_on_dark(const Colours& picture);

}  // namespace dabnet
