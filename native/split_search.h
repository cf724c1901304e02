// The exact distribution-aware split: one-dimensional 2-means of a filter's weights, in linear time, without sorting
// it.
//
// Sort the n weights and let P_i be the sum of the i smallest, T the sum of all. Giving the i smallest one value and
// the others another leaves the squared error ||w||^2 - D_i, where
//
//     D_i = P_i^2 / i + (T - P_i)^2 / (n - i)
//
// so the best split maximises D_i. Weights are centred first (this only shifts D by a constant) and summed as doubles.
#pragma once

#include <cstddef>
#include <vector>

#include "binning.h"

namespace dabnet {

// The weights below some value: how many there are, and the sum of their centred values.
struct Group {
    double count = 0;
    double sum = 0;
};

// A filter's two groups: weights below `threshold` take `low_mean`, the others `high_mean`.
// A constant filter has an empty low group and two equal means.
struct Split {
    float threshold = 0;
    std::size_t low_count = 0;
    double low_mean = 0;
    double high_mean = 0;
};

// Finds the best split of one filter after another; keeps its scratch memory between them. One for each thread.
class SplitSearch {
   public:
    // The best of all splits. Returns false if a weight is not finite.
    bool find(const float* weights, std::size_t n, Split& split);

    // The best split whose low group holds from `least` to `most` weights; the best of all where equal weights leave
    // no such split. Returns false if a weight is not finite.
    bool find_within(const float* weights, std::size_t n, std::size_t least, std::size_t most, Split& split);

   private:
    static constexpr int kBins = 256;
    static constexpr int kCopies = 4;  // of the histogram, so that neighbours in one bin need not wait for each other
    static constexpr int kLevels = 8;

    struct Best {
        double gain = -1;
        Group low;
        float threshold = 0;
    };
    struct Level {
        Group below[kBins + 1];  // what lies below each bin's lower edge
        std::vector<float> members;
    };

    bool measure(const float* weights, std::size_t n);
    Split finish() const;
    double gain(Group low) const;
    bool reaches_best(double count, double low_sum) const;
    bool may_beat_best(Group below, Group through, double least, double most) const;
    void offer(Group low, float threshold);
    void sweep(const float* values, std::size_t m, Group below);
    void search(const float* values, std::size_t m, float least, float most, Group below, Group through, int depth);
    void fill(const float* values, std::size_t m, const Binning& binning, int bins, Group below, Group* prefix);
    void search_inside(const float* values, std::size_t m, Group below, Group through, int depth);
    void search_between(const float* weights, std::size_t n, float low, float high);
    void search_each(const float* values, std::size_t m, const Binning& binning, int bins, const bool* suspect,
                     int depth);

    // Of the filter at hand.
    double n_ = 0;
    double mean_ = 0;
    double total_ = 0;  // of the centred weights: zero but for rounding
    float least_ = 0;
    float most_ = 0;
    Best best_;

    Group histogram_[kCopies][kBins];
    Level levels_[kLevels];
    std::vector<float> sorted_;
    std::vector<float> ranked_;
};

}  // namespace dabnet
