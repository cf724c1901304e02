// What a convolution does with its numbers before it keeps them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "../kernels/kernels.h"
#include "../network.h"
#include "window.h"

namespace dabnet {

// The nodes after a convolution that are done with it; src/dabnet/runtime/plan.py chooses them.
struct Followers {
    bool adds = false;  // the second input
    struct Sign {
        const float* threshold;    // or null for zeros
        const std::uint8_t* flip;  // a bit a filter, or null
    };
    std::vector<Sign> signs;  // up to kMostSigns
    bool makes_real = true;
    const Window* pool = nullptr;  // a max-pool after the activation and before the signs; of real weights only
    const float* slope = nullptr;  // or null
    float low = -std::numeric_limits<float>::infinity();
    float high = std::numeric_limits<float>::infinity();
};

// Keeps their numbers, and fills the kernels' form in. Of the values that a layer makes, real numbers come first.
class Finisher {
   public:
    Finisher(Budget& budget, std::size_t filters, const Followers& followers);

    Finish finish(const Job& job) const;

   private:
    std::size_t filters_;
    bool adds_, makes_real_;
    float low_, high_;
    struct Sign {
        std::vector<float> threshold;
        std::vector<std::uint64_t> flip;
    };
    std::vector<Sign> signs_;
    std::vector<float> slope_;
};

// Finishes all filters of a place.
inline void finish_place(const Kernels& kernels, const Finish& finish, std::size_t place, const float* values) {
    for (std::size_t first = 0; first < finish.filters; first += 64) {
        const std::size_t n = finish.filters - first < 64 ? finish.filters - first : 64;
        kernels.finish(finish, place, first, n, values + first);
    }
}

}  // namespace dabnet
