#include "lines.h"

#include <cmath>
#include <cstdlib>

namespace dabnet {
namespace {

constexpr int kStrip = 24;              // columns that are looked at together
constexpr double kSteepest = 0.09;      // a line's rise over the whole width, as a share of it
constexpr double kThroughout = 0.62;    // of the strips must show a ruled line,
constexpr double kFrame = 0.85;         // of a frame,
constexpr double kAlone = 0.85;         // of a margin's line among ruled ones
constexpr double kFrameDepth = 0.08;    // how far from the edge a frame may be
constexpr std::size_t kLeastLines = 5;  // that make paper ruled

struct Line {
    double middle, slope;  // y at the middle strip, and its change from strip to strip
    double score;          // share of the strips that show it
    float depth = 0;       // the mean darkness of its darkest row,
    float peak = 0;        // that of its darkest pixels,
    int thick = 0;         // and how many rows it takes above and below, in most strips
};

// Near-horizontal lines of one plane.
class Lines {
   public:
    Lines(Shorts& darkness, double noise)
        : darkness_(darkness), noise_(noise), strips_(darkness.width / kStrip), profile_(darkness.height, strips_) {
        if (strips_ < 8 || darkness.height < 32) return;
        measure_profiles();
        find();
    }

    const std::vector<Line>& found() const { return found_; }

    // Wipes everything beyond a frame's lines at the top and bottom, these included.
    void wipe_frame() {
        const int height = darkness_.height;
        for (const Line& line : found_) {
            if (line.score < kFrame) continue;
            const bool is_top = line.middle<kFrameDepth * height, is_bottom = line.middle>(1 - kFrameDepth) * height;
            if (!is_top && !is_bottom) continue;
            for (int strip = 0; strip < strips_; ++strip) {
                const int y = locate(line, strip), thick = thickness(y, strip) + 2;
                for (int at = is_top ? 0 : std::max(0, y - thick);
                     at < (is_top ? std::min(height, y + thick + 1) : height); ++at) {
                    std::int16_t* row = darkness_.row(at);
                    std::fill(row + begin(strip), row + end(strip), std::int16_t{0});
                }
            }
        }
    }

    // Whether there are several, as far from each other as ruled lines are.
    bool is_ruled() const { return gap() > 0; }

    // How far ruled lines are from each other; 0 if there are none.
    double gap() const {
        std::vector<double> ys;
        for (const Line& line : found_) {
            if (line.score >= kThroughout) ys.push_back(line.middle);
        }
        if (ys.size() < kLeastLines) return 0;
        std::vector<double> gaps;
        for (std::size_t i = 1; i < ys.size(); ++i) gaps.push_back(ys[i] - ys[i - 1]);
        std::vector<double> sorted = gaps;
        std::sort(sorted.begin(), sorted.end());
        const double gap = sorted[sorted.size() / 2];
        std::size_t regular = 0;
        for (const double each : gaps) {
            const double times = std::max(1.0, std::round(each / gap));
            regular += std::abs(each / gap - times) < 0.25 && times <= 4;
        }
        return 3 * regular >= 2 * gaps.size() ? gap : 0;
    }

    // Adds the ruled lines that were missed, under ink or at an edge: there is one wherever the gap is too wide.
    void fill_gaps() {
        const double usual = gap();
        std::vector<Line> all;
        const auto add = [&](const Line& from, double middle) {
            all.push_back(from);
            all.back().middle = middle;
        };
        const auto is_ruling = [](const Line& line) { return line.score >= kThroughout; };
        found_.erase(std::remove_if(found_.begin(), found_.end(), [&](const Line& line) { return !is_ruling(line); }),
                     found_.end());
        for (double y = found_.front().middle - usual; y >= 0; y -= usual) add(found_.front(), y);
        for (std::size_t i = 0; i < found_.size(); ++i) {
            all.push_back(found_[i]);
            if (i + 1 == found_.size()) break;
            const double space = found_[i + 1].middle - found_[i].middle;
            const int times = static_cast<int>(std::round(space / usual));
            for (int each = 1; each < times; ++each) add(found_[i], found_[i].middle + space * each / times);
        }
        for (double y = found_.back().middle + usual; y < darkness_.height; y += usual) add(found_.back(), y);
        found_ = all;
    }

    // Wipes lines that enough strips show. `others` marks those of the other direction, which are `peak` dark.
    void wipe(double least_score, const Bytes& others, float peak) {
        for (const Line& line : found_) {
            if (line.score >= least_score) wipe(line, others, peak);
        }
    }

    // Marks the pixels of lines that enough strips show.
    Bytes mark(double least_score) const {
        Bytes marks(darkness_.width, darkness_.height);
        for (const Line& line : found_) {
            if (line.score < least_score) continue;
            for (int strip = 0; strip < strips_; ++strip) {
                const int y = locate(line, strip);
                for (int at = std::max(0, y - line.thick); at <= std::min(darkness_.height - 1, y + line.thick); ++at) {
                    std::fill(marks.row(at) + begin(strip), marks.row(at) + end(strip), std::uint8_t{1});
                }
            }
        }
        return marks;
    }

    // How dark their darkest pixels are.
    float peak() const {
        float sum = 0;
        for (const Line& line : found_) sum += line.peak;
        return found_.empty() ? 0 : sum / static_cast<float>(found_.size());
    }

   private:
    int begin(int strip) const { return strip * kStrip; }
    int end(int strip) const { return strip + 1 == strips_ ? darkness_.width : (strip + 1) * kStrip; }

    // profile_(strip, y) is the mean darkness of a row within a strip; deep ink counts no more than a faint line.
    void measure_profiles() {
        for (int y = 0; y < darkness_.height; ++y) {
            const std::int16_t* row = darkness_.row(y);
            for (int strip = 0; strip < strips_; ++strip) {
                int sum = 0;
                for (int x = begin(strip); x < end(strip); ++x) sum += std::clamp<int>(row[x], -100, 100);
                profile_.at(y, strip) = static_cast<float>(sum) / static_cast<float>(end(strip) - begin(strip));
            }
        }
    }

    // Marks where a strip's profile is a ridge, and looks for straight rows of such marks.
    void find() {
        const int height = darkness_.height;
        Bytes marks(height, strips_);
        const float least = static_cast<float>(std::max(3.0, 2.5 * noise_ / std::sqrt(kStrip) * 1.5));
        for (int strip = 0; strip < strips_; ++strip) {
            const float* profile = profile_.row(strip);
            for (int y = 0; y < height; ++y) {
                float above = 1e9f, below = 1e9f;
                for (int away = 3; away <= 5; ++away) {
                    if (y - away >= 0) above = std::min(above, profile[y - away]);
                    if (y + away < height) below = std::min(below, profile[y + away]);
                }
                if (above > 1e8f) above = below;
                if (below > 1e8f) below = above;
                if (profile[y] - std::max(above, below) < least) continue;
                bool is_ridge = true;
                for (int near = std::max(0, y - 2); near <= std::min(height - 1, y + 2); ++near) {
                    is_ridge = is_ridge && profile[near] <= profile[y];
                }
                if (!is_ridge) continue;
                for (int near = std::max(0, y - 1); near <= std::min(height - 1, y + 1); ++near)
                    marks.at(near, strip) = 1;
            }
        }
        const int rise = static_cast<int>(kSteepest * darkness_.width);
        std::vector<std::uint8_t> best(static_cast<std::size_t>(height)), sum(static_cast<std::size_t>(height));
        std::vector<double> slopes(static_cast<std::size_t>(height));
        const double centre = (strips_ - 1) / 2.0;
        for (int total = -rise; total <= rise; ++total) {
            const double slope = static_cast<double>(total) / strips_;
            std::fill(sum.begin(), sum.end(), std::uint8_t{0});
            for (int strip = 0; strip < strips_; ++strip) {
                const int shift = static_cast<int>(std::lround((strip - centre) * slope));
                const std::uint8_t* from = marks.row(strip);
                const int first = std::max(0, -shift), last = std::min(height, height - shift);
                for (int y = first; y < last; ++y)
                    sum[static_cast<std::size_t>(y)] =
                        static_cast<std::uint8_t>(sum[static_cast<std::size_t>(y)] + from[y + shift]);
            }
            for (std::size_t y = 0; y < sum.size(); ++y) {
                const bool is_better = sum[y] > best[y] || (sum[y] == best[y] && std::abs(slope) < std::abs(slopes[y]));
                if (is_better) best[y] = sum[y], slopes[y] = slope;
            }
        }
        keep_peaks(best, slopes);
    }

    void keep_peaks(const std::vector<std::uint8_t>& best, const std::vector<double>& slopes) {
        const int height = darkness_.height;
        for (int y = 0; y < height; ++y) {
            const std::uint8_t here = best[static_cast<std::size_t>(y)];
            if (here < kThroughout * strips_ * 0.9) continue;
            int last = y;  // of a stretch of the same score
            bool is_peak = true;
            for (int near = std::max(0, y - 4); near <= std::min(height - 1, y + 4); ++near) {
                const std::uint8_t other = best[static_cast<std::size_t>(near)];
                is_peak &= near < y ? other < here : other <= here;
                if (other == here && near == last + 1) last = near;
            }
            if (!is_peak) continue;
            const int middle = (y + last) / 2;
            Line line{static_cast<double>(middle), slopes[static_cast<std::size_t>(middle)],
                      static_cast<double>(here) / strips_};
            measure(line);
            found_.push_back(line);
        }
        drop_faint();
    }

    // How dark a line is and how thick, in most of its strips: ink that crosses it does not count.
    void measure(Line& line) const {
        std::vector<float> depths;
        std::vector<int> thicks, peaks;
        for (int strip = 0; strip < strips_; ++strip) {
            const int y = locate(line, strip);
            depths.push_back(profile_.at(y, strip));
            thicks.push_back(thickness(y, strip));
            for (int x = begin(strip); x < end(strip); x += 2) {
                int most = darkness_.at(x, y);
                if (y > 0) most = std::max<int>(most, darkness_.at(x, y - 1));
                if (y + 1 < darkness_.height) most = std::max<int>(most, darkness_.at(x, y + 1));
                peaks.push_back(most);
            }
        }
        std::sort(depths.begin(), depths.end());
        std::sort(thicks.begin(), thicks.end());
        const auto upper = peaks.begin() + static_cast<std::ptrdiff_t>(peaks.size() * 2 / 3);
        std::nth_element(peaks.begin(), upper, peaks.end());
        line.peak = static_cast<float>(*upper);
        line.depth = depths[depths.size() / 2];
        line.thick = std::min(thicks[thicks.size() / 2], 5);
    }

    // A line is as dark and as thick as the others, even where ink runs along it.
    void limit_to_usual() {
        std::vector<float> peaks;
        std::vector<int> thicks;
        for (const Line& line : found_) peaks.push_back(line.peak), thicks.push_back(line.thick);
        if (peaks.size() < kLeastLines) return;
        std::sort(peaks.begin(), peaks.end());
        std::sort(thicks.begin(), thicks.end());
        for (Line& line : found_) {
            line.peak = std::min(line.peak, 1.25f * peaks[peaks.size() / 2]);
            line.thick = std::min(line.thick, thicks[thicks.size() / 2] + 1);
        }
    }

    // Leaves away what is fainter than most: the blocks of a JPEG have edges too.
    void drop_faint() {
        std::vector<float> depths;
        for (const Line& line : found_) depths.push_back(line.depth);
        std::sort(depths.begin(), depths.end());
        if (depths.empty()) return;
        const float least = 0.45f * depths[depths.size() * 3 / 4];
        limit_to_usual();
        const auto is_faint = [least](const Line& line) { return line.depth < least; };
        found_.erase(std::remove_if(found_.begin(), found_.end(), is_faint), found_.end());
    }

    // Where a line runs in a strip: the darkest row near where it should be.
    int locate(const Line& line, int strip) const {
        const int guess = static_cast<int>(std::lround(line.middle + (strip - (strips_ - 1) / 2.0) * line.slope));
        int best = std::clamp(guess, 0, darkness_.height - 1);
        for (int y = std::max(0, guess - 2); y <= std::min(darkness_.height - 1, guess + 2); ++y) {
            if (profile_.at(y, strip) > profile_.at(best, strip)) best = y;
        }
        return best;
    }

    // Rows above and below a ridge until it has faded to a quarter.
    int thickness(int y, int strip) const {
        const float quarter = profile_.at(y, strip) / 4;
        int thick = 0;
        for (int sign : {-1, 1}) {
            int away = 0;
            while (away < 12 && y + sign * away >= 0 && y + sign * away < darkness_.height &&
                   profile_.at(y + sign * away, strip) > quarter) {
                ++away;
            }
            thick = std::max(thick, away);
        }
        return thick;
    }

    void wipe(const Line& line, const Bytes& others, float other_peak) {
        const float noise = static_cast<float>(noise_);
        for (int strip = 0; strip < strips_; ++strip) {
            const int y = locate(line, strip);
            const Limits limits{static_cast<int>(1.2f * line.peak + 2 * noise),
                                static_cast<int>(1.2f * (line.peak + other_peak) + 2 * noise),
                                static_cast<int>(std::max(0.9f * line.depth, 5 * noise))};
            wipe_strip(strip, y, line.thick, limits, others);
        }
    }

    struct Limits {
        int line, crossing;  // how dark a line is at most, and where it crosses another
        int ink;             // what counts as ink beside it
    };

    // Wipes what is no darker than the line, but where ink goes on above and below it.
    void wipe_strip(int strip, int y, int thick, const Limits& limits, const Bytes& others) {
        const int above = y - thick - 1, below = y + thick + 1;
        const auto is_ink = [&](int x, int at) {
            if (at < 0 || at >= darkness_.height) return false;
            const std::int16_t* row = darkness_.row(at);
            const std::uint8_t* marked = others.row(at);
            for (int near = std::max(0, x - thick - 1); near <= std::min(darkness_.width - 1, x + thick + 1); ++near) {
                if (row[near] > (marked[near] ? limits.crossing : limits.ink)) return true;
            }
            return false;
        };
        for (int x = begin(strip); x < end(strip); ++x) {
            if (is_ink(x, above) && is_ink(x, below)) continue;
            for (int at = std::max(0, y - thick); at <= std::min(darkness_.height - 1, y + thick); ++at) {
                std::int16_t& value = darkness_.at(x, at);
                const int most = others.at(x, at) ? limits.crossing : limits.line;
                if (value <= most) value = std::min<std::int16_t>(value, 0);
            }
        }
    }

    Shorts& darkness_;
    double noise_;
    int strips_;
    Plane<float> profile_;  // (strips, height)
    std::vector<Line> found_;
};

}  // namespace

void wipe_lines(Shorts& darkness, double noise) {
    Shorts turned = transpose(darkness);
    Lines horizontal(darkness, noise), vertical(turned, noise);
    const bool is_ruled = horizontal.is_ruled(), is_squared = vertical.is_ruled();
    if (is_ruled) horizontal.fill_gaps();
    if (is_squared) vertical.fill_gaps();
    if (!is_ruled && !is_squared) {
        vertical.wipe_frame();
        darkness = transpose(turned);
        horizontal.wipe_frame();
        return;
    }
    // Beside ruled lines there may be a margin's.
    const double least_horizontal = is_ruled ? kThroughout : kAlone, least_vertical = is_squared ? kThroughout : kAlone;
    const Bytes rows = transpose(horizontal.mark(least_horizontal)), columns = transpose(vertical.mark(least_vertical));
    vertical.wipe(least_vertical, rows, horizontal.peak());
    darkness = transpose(turned);
    horizontal.wipe(least_horizontal, columns, vertical.peak());
}

}  // namespace dabnet
