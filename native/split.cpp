#include "split.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <thread>

namespace dabnet {
namespace {

// Two gains within this of each other, relatively, are a tie: they differ by rounding at most.
constexpr double kTie = 1e-12;

// Sorting a handful is cheaper than binning it.
constexpr std::size_t kFewEnoughToSort = 64;

// Floats in their order as integers, so that the space between two can be halved.
std::int64_t to_rank(float value) {
    std::int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits >= 0 ? bits : -static_cast<std::int64_t>(bits & 0x7fffffff);
}

float from_rank(std::int64_t rank) {
    const auto magnitude = static_cast<std::int32_t>(rank >= 0 ? rank : -rank);
    float value;
    std::memcpy(&value, &magnitude, sizeof value);
    return rank >= 0 ? value : -value;
}

// The smallest float that falls into `bin` or a later one, given that `least` does not and `most` does. It is close to
// where arithmetic puts it, so step away from there by 1, 2, 4, ... until it is enclosed, then halve.
float lower_edge(const Binning& binning, int bin, float least, float most) {
    const auto reached = [&](std::int64_t rank) { return binning(from_rank(rank)) >= bin; };
    std::int64_t before = to_rank(least), after = to_rank(most);
    const auto guess = to_rank(static_cast<float>(binning.origin + bin / binning.scale));
    if (before < guess && guess < after) {
        if (reached(guess)) {
            after = guess;
            for (std::int64_t step = 1; after - step > before; step *= 2) {
                if (!reached(after - step)) {
                    before = after - step;
                    break;
                }
                after -= step;
            }
        } else {
            before = guess;
            for (std::int64_t step = 1; before + step < after; step *= 2) {
                if (reached(before + step)) {
                    after = before + step;
                    break;
                }
                before += step;
            }
        }
    }
    while (after - before > 1) {
        const std::int64_t middle = before + (after - before) / 2;
        (reached(middle) ? after : before) = middle;
    }
    return from_rank(after);
}

// Copies the values in [from, to) to `out`, which has room for all of them; returns how many there were. Few are: so
// the comparisons are made first, 256 at a time as vector code, and then eight answers are looked at together.
std::size_t gather(const float* values, std::size_t m, float from, float to, float* out) {
    constexpr std::size_t kBlock = 256, kWord = 8;
    constexpr std::uint64_t kAllInside = 0x0101010101010101;
    std::uint8_t inside[kBlock];
    std::size_t found = 0;
    for (std::size_t start = 0; start < m; start += kBlock) {
        const float* block = values + start;
        const std::size_t size = std::min(kBlock, m - start);
        for (std::size_t i = 0; i < size; ++i) inside[i] = (block[i] >= from) & (block[i] < to);
        for (std::size_t i = size; i % kWord != 0; ++i) inside[i] = 0;
        for (std::size_t i = 0; i < size; i += kWord) {
            std::uint64_t word;
            std::memcpy(&word, inside + i, kWord);
            if (word == 0) continue;
            if (word == kAllInside) {
                std::memcpy(out + found, block + i, kWord * sizeof(float));
                found += kWord;
                continue;
            }
            for (std::size_t j = i; j < i + kWord && j < size; ++j) {
                out[found] = block[j];
                found += inside[j];
            }
        }
    }
    return found;
}

struct Extent {
    float least;
    float most;
};

// The least and the most of some values, in lanes that vector code can fill.
Extent extent(const float* values, std::size_t m) {
    constexpr std::size_t kLanes = 8;
    float least[kLanes], most[kLanes];
    std::fill(least, least + kLanes, values[0]);
    std::fill(most, most + kLanes, values[0]);
    const auto take = [&](float value, std::size_t lane) {
        least[lane] = value < least[lane] ? value : least[lane];
        most[lane] = value > most[lane] ? value : most[lane];
    };
    std::size_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) take(values[i + lane], lane);
    }
    for (; i < m; ++i) take(values[i], 0);
    return {*std::min_element(least, least + kLanes), *std::max_element(most, most + kLanes)};
}

// The sum of some function of the values, in lanes too: the order of additions is the same on every machine.
template <typename Function>
double sum(const float* values, std::size_t m, Function function) {
    constexpr std::size_t kLanes = 8;
    double lanes[kLanes] = {};
    std::size_t i = 0;
    for (; i + kLanes <= m; i += kLanes) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += function(values[i + lane]);
    }
    for (; i < m; ++i) lanes[0] += function(values[i]);
    double total = 0;
    for (double lane : lanes) total += lane;
    return total;
}

void grow(std::vector<float>& buffer, std::size_t size) {
    if (buffer.size() < size) buffer.resize(size);
}

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
    int stretches = 0, longest = 0, length = 0;
    for (int bin = 0; bin < bins; ++bin) {
        const double from = bin == 0 ? least : origin + bin * width;
        const double to = bin == bins - 1 ? most : origin + (bin + 1) * width;
        suspect[bin] = may_beat_best(level.below[bin], level.below[bin + 1], from - mean_ - slack, to - mean_ + slack);
        length = suspect[bin] ? length + 1 : 0;
        stretches += length == 1;
        longest = std::max(longest, length);
    }
    if (stretches > 3 || longest > bins / 8) {  // too many passes, or too little narrowed by one
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

namespace {

// Splits one filter and writes its row of the results. Returns false if a weight is not finite.
bool split_filter(const Filters& filters, const LowCounts& limits, std::size_t row, SplitSearch& search,
                  std::vector<float>& copy, const SplitResults& out) {
    const float* weights = filters.data + static_cast<std::ptrdiff_t>(row) * filters.filter_stride;
    if (filters.weight_stride != 1) {
        grow(copy, filters.n);
        for (std::size_t i = 0; i < filters.n; ++i) {
            copy[i] = weights[static_cast<std::ptrdiff_t>(i) * filters.weight_stride];
        }
        weights = copy.data();
    }
    Split split;
    const bool finite = limits.least == nullptr
                            ? search.find(weights, filters.n, split)
                            : search.find_within(weights, filters.n, static_cast<std::size_t>(limits.least[row]),
                                                 static_cast<std::size_t>(limits.most[row]), split);
    if (!finite) return false;

    // Means of equal magnitude: the high one is the positive one.
    const bool alpha_is_high = std::fabs(split.high_mean) >= std::fabs(split.low_mean);
    bool* mask = out.mask + row * filters.n;
    if (alpha_is_high) {
        for (std::size_t i = 0; i < filters.n; ++i) mask[i] = weights[i] >= split.threshold;
    } else {
        for (std::size_t i = 0; i < filters.n; ++i) mask[i] = weights[i] < split.threshold;
    }
    out.alpha[row] = alpha_is_high ? split.high_mean : split.low_mean;
    out.beta[row] = alpha_is_high ? split.low_mean : split.high_mean;
    out.k[row] = static_cast<std::int64_t>(alpha_is_high ? filters.n - split.low_count : split.low_count);
    return true;
}

}  // namespace

std::int64_t split_filters(const Filters& filters, const LowCounts& limits, int threads, const SplitResults& out) {
    // Starting a thread costs about as much as splitting this many weights.
    constexpr std::size_t kWeightsAThread = 1 << 15;
    const std::size_t worthwhile = filters.filters * filters.n / kWeightsAThread + 1;
    const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
    const std::size_t workers = std::min({static_cast<std::size_t>(threads), worthwhile, filters.filters, cores});

    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> first_bad{filters.filters};
    const auto work = [&] {
        SplitSearch search;
        std::vector<float> copy;
        for (std::size_t row = next++; row < filters.filters; row = next++) {
            if (split_filter(filters, limits, row, search, copy, out)) continue;
            std::size_t bad = first_bad;
            while (row < bad && !first_bad.compare_exchange_weak(bad, row)) {
            }
        }
    };
    std::vector<std::future<void>> helpers;
    for (std::size_t i = 1; i < workers; ++i) helpers.push_back(std::async(std::launch::async, work));
    work();
    for (auto& helper : helpers) helper.get();
    return first_bad < filters.filters ? static_cast<std::int64_t>(first_bad) : -1;
}

}  // namespace dabnet
