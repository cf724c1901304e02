#include "split_search.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "values.h"

namespace dabnet {
namespace {

// Two gains within this of each other, relatively, are a tie: they differ by rounding at most.
constexpr double kTie = 1e-12;

// Sorting a handful is cheaper than binning it.
constexpr std::size_t kFewEnoughToSort = 64;

}  // namespace

// D of the split that puts `low` below and everything else above.
double SplitSearch::gain(Group low) const {
    const double rest = n_ - low.count;
    const double high_sum = total_ - low.sum;
    return (low.sum * low.sum * rest + high_sum * high_sum * low.count) / (low.count * rest);
}

// Takes a split if it is better than the best, or as good with a smaller low group.
void SplitSearch::offer(Group low, float threshold) {
    const double value = gain(low);
    const bool better = value > best_.gain * (1 + kTie);
    const bool tie = value >= best_.gain * (1 - kTie) && low.count < best_.low.count;
    if (better || tie) best_ = {value, low, threshold};
}

// Whether D at a point (i, P) reaches the best gain; D is without bound where a group is empty.
bool SplitSearch::reaches_best(double count, double low_sum) const {
    const double rest = n_ - count;
    const double high_sum = total_ - low_sum;
    if (count <= 0 || rest <= 0) return true;
    return low_sum * low_sum * rest + high_sum * high_sum * count >= best_.gain * (1 - 2 * kTie) * count * rest;
}

// Whether some split inside a run of neighbours could reach the best gain. D is jointly convex in (i, P), and the
// points (i, P_i) of the run lie in a triangle: the sums start at slope `least`, end at slope `most` and are convex
// between. So D is at most its value at a corner. Two corners are the run's ends, which have been offered; the third is
// where the two slopes meet.
bool SplitSearch::may_beat_best(Group below, Group through, double least, double most) const {
    const double count = through.count - below.count;
    if (count < 2 || !(least < most)) return false;
    const double at_least = (most * count - (through.sum - below.sum)) / (most - least);
    return reaches_best(below.count + at_least, below.sum + at_least * least);
}

// Offers every split inside a run of neighbours, by sorting it.
void SplitSearch::sweep(const float* values, std::size_t m, Group below) {
    sorted_.assign(values, values + m);
    std::sort(sorted_.begin(), sorted_.end());
    for (std::size_t i = 0; i + 1 < m; ++i) {
        below.count += 1;
        below.sum += sorted_[i] - mean_;
        if (sorted_[i] < sorted_[i + 1]) offer(below, sorted_[i + 1]);
    }
}

// Offers the best split inside a run of neighbours in [least, most]: `below` lies below it, `through` ends with it.
//
//   1. Bin the run, and offer the best split between two bins. The bins cover what lies within eight mean deviations of
//      the mean: at most an eighth of the run lies beyond, so outliers cannot crowd the others into one bin.
//   2. Find the bins inside which a better one is possible: for most filters one or two, side by side.
//   3. Gather the members of each stretch of such bins, and search that shorter run.
//
// Each level narrows the range, or leaves a small part of the run, and what a range can hide shrinks with it, so that
// two or three levels decide every filter met in practice. Past the last level the run is sorted: slower, and still
// exact.
void SplitSearch::search(const float* values, std::size_t m, float least, float most, Group below, Group through,
                         int depth) {
    if (m <= kFewEnoughToSort || depth == kLevels) return sweep(values, m, below);
    Level& level = levels_[depth];
    int bins = 32;
    while (bins < kBins && static_cast<std::size_t>(bins) * 8 < m) bins *= 2;
    const double middle = mean_ + (through.sum - below.sum) / static_cast<double>(m);
    const double deviations = sum(values, m, [middle](float value) { return std::fabs(value - middle); });
    const double reach = 8 * deviations / static_cast<double>(m);
    const double origin = std::max<double>(least, middle - reach);
    const double width = (std::min<double>(most, middle + reach) - origin) / bins;
    const Binning binning{origin, 1 / width, bins - 1.0};
    fill(values, m, binning, bins, below, level.below);

    int best_edge = 0;
    double best_gain = -1;
    for (int bin = 1; bin < bins; ++bin) {
        const Group low = level.below[bin];
        if (low.count == below.count || low.count == through.count) continue;
        const double value = gain(low);
        if (value > best_gain * (1 + kTie)) {
            best_gain = value;
            best_edge = bin;
        }
    }
    if (best_gain >= best_.gain * (1 - kTie)) {
        offer(level.below[best_edge], lower_edge(binning, best_edge, least, most));
    }

    // A bin's edges, a little wider than rounding can have moved a member.
    const double slack =
        8 * std::numeric_limits<double>::epsilon() *
        std::max({std::fabs(static_cast<double>(least)), std::fabs(static_cast<double>(most)), std::fabs(mean_)});
    bool suspect[kBins];
    int runs = 0, longest = 0, length = 0;
    for (int bin = 0; bin < bins; ++bin) {
        const double from = bin == 0 ? least : origin + bin * width;
        const double to = bin == bins - 1 ? most : origin + (bin + 1) * width;
        suspect[bin] = may_beat_best(level.below[bin], level.below[bin + 1], from - mean_ - slack, to - mean_ + slack);
        length = suspect[bin] ? length + 1 : 0;
        runs += length == 1;
        longest = std::max(longest, length);
    }
    if (runs > 3 || longest > bins / 8) {  // too many passes, or too little narrowed by one
        return search_each(values, m, binning, bins, suspect, depth);
    }
    for (int first = 0, last = 0; first < bins; first = last + 1) {
        last = first;
        if (!suspect[first]) continue;
        while (last + 1 < bins && suspect[last + 1]) ++last;
        const float from = first == 0 ? least : lower_edge(binning, first, least, most);
        const float to =
            last == bins - 1 ? std::numeric_limits<float>::infinity() : lower_edge(binning, last + 1, least, most);
        grow(level.members, m);
        const std::size_t found = gather(values, m, from, to, level.members.data());
        search_inside(level.members.data(), found, level.below[first], level.below[last + 1], depth + 1);
    }
}

// Bins a run and adds the bins up: `prefix` gets what lies below each bin's lower edge, and last what lies below or in
// the run.
void SplitSearch::fill(const float* values, std::size_t m, const Binning& binning, int bins, Group below,
                       Group* prefix) {
    constexpr std::size_t kBlock = 128;
    for (auto& copy : histogram_) std::fill(copy, copy + bins, Group{});
    // Places first, a block at a time, as vector code; then the additions, which cannot be.
    for (std::size_t start = 0; start < m; start += kBlock) {
        const float* block = values + start;
        const std::size_t size = std::min(kBlock, m - start);
        std::int32_t bin[kBlock];
        double centred[kBlock];
        for (std::size_t i = 0; i < size; ++i) {
            bin[i] = binning(block[i]);
            centred[i] = block[i] - mean_;
        }
        for (std::size_t i = 0; i < size; ++i) {
            Group& group = histogram_[i % kCopies][bin[i]];
            group.count += 1;
            group.sum += centred[i];
        }
    }
    for (int bin = 0; bin < bins; ++bin) {
        prefix[bin] = below;
        for (const auto& copy : histogram_) {
            below.count += copy[bin].count;
            below.sum += copy[bin].sum;
        }
    }
    prefix[bins] = below;
}

// Searches a run of neighbours if, by what its members really span, it can hold a better split.
void SplitSearch::search_inside(const float* values, std::size_t m, Group below, Group through, int depth) {
    const auto [least, most] = extent(values, m);
    if (may_beat_best(below, through, least - mean_, most - mean_)) {
        search(values, m, least, most, below, through, depth);
    }
}

// Searches every suspect bin of a run on its own, after grouping the run by bins in one pass.
void SplitSearch::search_each(const float* values, std::size_t m, const Binning& binning, int bins, const bool* suspect,
                              int depth) {
    Level& level = levels_[depth];
    grow(level.members, m);
    std::size_t end[kBins];  // of each bin's members, once all are placed
    for (int bin = 0; bin < bins; ++bin) {
        end[bin] = static_cast<std::size_t>(level.below[bin].count - level.below[0].count);
    }
    for (std::size_t i = 0; i < m; ++i) level.members[end[binning(values[i])]++] = values[i];
    for (int bin = 0; bin < bins; ++bin) {
        if (!suspect[bin]) continue;
        const auto count = static_cast<std::size_t>(level.below[bin + 1].count - level.below[bin].count);
        const float* members = level.members.data() + (end[bin] - count);
        search_inside(members, count, level.below[bin], level.below[bin + 1], depth + 1);
    }
}

// Least, most and mean of a filter. Returns false if a weight is not finite: then so is the sum, since doubles hold the
// sum of any floats.
bool SplitSearch::measure(const float* weights, std::size_t n) {
    const double all = sum(weights, n, [](float weight) { return static_cast<double>(weight); });
    if (!std::isfinite(all)) return false;
    n_ = static_cast<double>(n);
    mean_ = all / n_;
    total_ = std::fma(-mean_, n_, all);  // what rounding the mean left over, itself unrounded
    const auto [least, most] = extent(weights, n);
    least_ = least;
    most_ = most;
    best_ = Best{};
    return true;
}

Split SplitSearch::finish() const {
    if (best_.low.count == 0) return {least_, 0, mean_, mean_};
    return {best_.threshold, static_cast<std::size_t>(best_.low.count), mean_ + best_.low.sum / best_.low.count,
            mean_ + (total_ - best_.low.sum) / (n_ - best_.low.count)};
}

bool SplitSearch::find(const float* weights, std::size_t n, Split& split) {
    if (!measure(weights, n)) return false;
    if (least_ < most_) search(weights, n, least_, most_, Group{}, Group{n_, total_}, 0);
    split = finish();
    return true;
}

bool SplitSearch::find_within(const float* weights, std::size_t n, std::size_t least, std::size_t most, Split& split) {
    if (!measure(weights, n)) return false;
    least = std::max<std::size_t>(least, 1);
    most = std::min(most, n - 1);
    if (least <= most && least_ < most_) {
        ranked_.assign(weights, weights + n);
        const auto low_end = ranked_.begin() + static_cast<std::ptrdiff_t>(least - 1);
        const auto high_end = ranked_.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(ranked_.begin(), low_end, ranked_.end());
        const float low = *low_end;
        std::nth_element(low_end, high_end, ranked_.end());
        const float high = *high_end;
        if (low < high) search_between(weights, n, low, high);
    }
    if (best_.low.count == 0 && least_ < most_) search(weights, n, least_, most_, Group{}, Group{n_, total_}, 0);
    split = finish();
    return true;
}

// Offers the best split that leaves weights up to `low` below and those from `high` on above.
void SplitSearch::search_between(const float* weights, std::size_t n, float low, float high) {
    ranked_.resize(n);
    const float above_low = std::nextafter(low, std::numeric_limits<float>::infinity());
    const std::size_t between = gather(weights, n, above_low, high, ranked_.data());
    Group below;
    for (std::size_t i = 0; i < n; ++i) {
        below.count += weights[i] <= low;
        below.sum += weights[i] <= low ? weights[i] - mean_ : 0;
    }
    const float first = between == 0 ? high : extent(ranked_.data(), between).least;
    offer(below, first);
    if (between == 0) return;
    const double inside = sum(ranked_.data(), between, [this](float weight) { return weight - mean_; });
    const Group through{below.count + static_cast<double>(between), below.sum + inside};
    offer(through, high);
    search_inside(ranked_.data(), between, below, through, 0);
}

}  // namespace dabnet
