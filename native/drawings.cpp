#include "drawings.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/text.h"
#include "parallel.h"

namespace dabnet {
namespace {

constexpr std::size_t kMostBytes = 7'999'999;  // of a drawing's JSON, without the end of its line
constexpr std::size_t kMostLists = 100'000;
constexpr std::size_t kMostBlanks = 1024;  // before it
constexpr int kDeepest = 16;               // of values that are not looked at

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// A number of at most 15 digits, of which so many stand behind the point, is the quotient of two exact ones.
constexpr double kPowers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr int kMostDigits = 15;

// Goes through the text once, and writes points as it meets them.
class DrawingReader {
   public:
    DrawingReader(std::string_view text, Drawings& drawings)
        : at_(text.data()), end_(at_ + text.size()), drawings_(drawings) {}

    bool read() {
        const char* from = at_;
        space();
        if (static_cast<std::size_t>(at_ - from) >= kMostBlanks || is_over()) return false;
        if (!(*at_ == '{' ? object() : strokes())) return false;
        space();
        return is_over();
    }

   private:
    bool is_over() const { return at_ == end_; }
    void space() {
        while (!is_over() && (*at_ == ' ' || *at_ == '\t' || *at_ == '\n' || *at_ == '\r')) ++at_;
    }
    bool take(char c) {
        space();
        if (is_over() || *at_ != c) return false;
        ++at_;
        return true;
    }

    // Calls item() for each item of a list.
    template <typename Item>
    bool list(Item item) {
        if (!take('[')) return false;
        if (take(']')) return true;
        do {
            if (!item()) return false;
        } while (take(','));
        return take(']');
    }

    bool object() {
        bool has_drawing = false;
        if (!take('{')) return false;
        do {
            std::string_view key;
            if (!string(key) || key.find('\\') != key.npos || !take(':')) return false;
            if (key != "strokes" && key != "drawing") {
                if (!skip(0)) return false;
                continue;
            }
            if (has_drawing || !(key == "strokes" ? strokes() : quickdraw_strokes())) return false;
            has_drawing = true;
        } while (take(','));
        return take('}') && has_drawing;
    }

    // [[[x, y], ...], ...]
    bool strokes() {
        return list([&] {
            return list([&] {
                       float x, y;
                       return take('[') && number(x) && take(',') && number(y) && take(']') && add_point(x, y);
                   }) &&
                   end_stroke();
        });
    }

    // [[[x, ...], [y, ...]], ...], where times may follow.
    bool quickdraw_strokes() {
        return list([&] {
            std::size_t axis = 0, times = 0;
            axes_[0].clear();
            axes_[1].clear();
            const bool is_stroke = list([&] {
                const std::size_t which = axis++;
                return which < 3 && list([&] {
                           float value;
                           if (!number(value)) return false;
                           which < 2 ? axes_[which].push_back(value) : static_cast<void>(++times);
                           return true;
                       });
            });
            const std::size_t count = axes_[0].size();
            if (!is_stroke || axis < 2 || axes_[1].size() != count || (axis == 3 && times != count)) return false;
            for (std::size_t i = 0; i < count; ++i) {
                if (!add_point(axes_[0][i], axes_[1][i])) return false;
            }
            return end_stroke();
        });
    }

    bool add_point(float x, float y) {
        drawings_.points.push_back(x);
        drawings_.points.push_back(y);
        return ++points_ <= kMostPoints;
    }

    bool end_stroke() {
        const auto end = static_cast<std::int64_t>(drawings_.points.size() / 2);
        if (points_ != points_before_) drawings_.stroke_ends.push_back(end);  // else it is empty
        points_before_ = points_;
        return ++strokes_ <= kMostPoints;
    }

    bool number(float& value) {
        space();
        const char* from = at_;
        const bool is_minus = !is_over() && *at_ == '-';
        if (is_minus) ++at_;
        const char* digits = at_;
        std::uint64_t whole = 0;
        take_digits(whole);
        if (at_ == digits || (*digits == '0' && at_ - digits > 1)) return false;
        auto count = at_ - digits;
        double real;
        if (is_over() || (*at_ != '.' && *at_ != 'e' && *at_ != 'E')) {
            if (count > kMostDigits) return false;
            real = static_cast<double>(whole);
            if (is_minus && whole != 0) real = -real;  // the whole number -0 is 0
        } else {
            std::ptrdiff_t behind = 0;
            if (*at_ == '.') {
                const char* point = at_++;
                take_digits(whole);
                behind = at_ - point - 1;
                if (behind == 0) return false;
                count += behind;
            }
            const bool has_exponent = !is_over() && (*at_ == 'e' || *at_ == 'E');
            if (has_exponent && !take_exponent()) return false;
            if (!has_exponent && count <= kMostDigits) {
                real = static_cast<double>(whole) / kPowers[behind];
                if (is_minus) real = -real;
            } else if (!convert(from, real)) {
                return false;
            }
        }
        if (!(std::fabs(real) <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
        value = static_cast<float>(real);
        return true;
    }

    // More digits than are counted wrap around, and are not used.
    void take_digits(std::uint64_t& whole) {
        for (; !is_over() && is_digit(*at_); ++at_) whole = 10 * whole + static_cast<std::uint64_t>(*at_ - '0');
    }

    bool take_exponent() {
        ++at_;
        if (!is_over() && (*at_ == '+' || *at_ == '-')) ++at_;
        const char* digits = at_;
        while (!is_over() && is_digit(*at_)) ++at_;
        return at_ != digits;
    }

    bool convert(const char* from, double& real) const {
#ifdef __cpp_lib_to_chars
        const auto read = std::from_chars(from, at_, real);
        return read.ec == std::errc() && read.ptr == at_;
#else
        static_cast<void>(from);
        static_cast<void>(real);
        return false;
#endif
    }

    bool string(std::string_view& text) {
        if (!take('"')) return false;
        const char* from = at_;
        for (; !is_over() && static_cast<unsigned char>(*at_) >= 0x20; ++at_) {
            if (*at_ == '"') {
                text = {from, static_cast<std::size_t>(at_ - from)};
                ++at_;
                return true;
            }
            if (*at_ == '\\' && !take_escape()) return false;
        }
        return false;
    }

    // Leaves it at its last character.
    bool take_escape() {
        if (++at_ == end_) return false;
        if (*at_ != 'u') return std::memchr("\"\\/bfnrt", *at_, 8) != nullptr;
        for (int i = 0; i < 4; ++i) {
            if (++at_ == end_) return false;
            const char c = *at_;
            if (!is_digit(c) && !(c >= 'a' && c <= 'f') && !(c >= 'A' && c <= 'F')) return false;
        }
        return true;
    }

    // Goes past any value.
    bool skip(int depth) {
        space();
        if (is_over() || depth > kDeepest) return false;
        std::string_view text;
        if (*at_ == '"') return string(text);
        if (*at_ == '[') {
            return list([&] { return skip(depth + 1); });
        }
        if (*at_ == '{') {
            ++at_;
            if (take('}')) return true;
            do {
                if (!string(text) || !take(':') || !skip(depth + 1)) return false;
            } while (take(','));
            return take('}');
        }
        for (const std::string_view word : {"null", "true", "false"}) {
            if (static_cast<std::size_t>(end_ - at_) >= word.size() && std::string_view(at_, word.size()) == word) {
                at_ += word.size();
                return true;
            }
        }
        float ignored;
        const char* from = at_;
        if (number(ignored)) return true;
        at_ = from;  // one like Quick, Draw!'s keys, too long for a coordinate
        return long_integer();
    }

    bool long_integer() {
        if (*at_ == '-') ++at_;
        const char* digits = at_;
        while (!is_over() && is_digit(*at_)) ++at_;
        constexpr std::ptrdiff_t kLongest = 100;
        if (at_ == digits || at_ - digits > kLongest || (*digits == '0' && at_ - digits > 1)) return false;
        return is_over() || (*at_ != '.' && *at_ != 'e' && *at_ != 'E');
    }

    const char *at_, *end_;
    Drawings& drawings_;
    std::int64_t points_ = 0, points_before_ = 0, strokes_ = 0;
    std::vector<float> axes_[2];
};

}  // namespace

bool Drawings::end_drawing() {
    const std::size_t first = 2 * first_point(size());
    const std::size_t count = points.size() - first;
    if (count > 2 * static_cast<std::size_t>(kMostPoints)) return drop_drawing(), false;
    for (std::size_t i = 2; i < count; ++i) {
        if (points[first + i] == points[first + i % 2]) continue;
        drawing_ends.push_back(static_cast<std::int64_t>(stroke_ends.size()));
        return true;
    }
    return drop_drawing(), false;
}

void Drawings::drop_drawing() {
    points.resize(2 * first_point(size()));
    stroke_ends.resize(first_stroke(size()));
}

void Drawings::append(const Drawings& others) {
    const auto point = static_cast<std::int64_t>(points.size() / 2),
               stroke = static_cast<std::int64_t>(stroke_ends.size());
    points.insert(points.end(), others.points.begin(), others.points.end());
    for (const std::int64_t end : others.stroke_ends) stroke_ends.push_back(point + end);
    for (const std::int64_t end : others.drawing_ends) drawing_ends.push_back(stroke + end);
}

bool read_drawing(std::string_view json, Drawings& drawings) {
    const auto lists = static_cast<std::size_t>(std::count(json.begin(), json.end(), '['));
    const bool is_ascii = std::none_of(json.begin(), json.end(), [](char c) { return (c & 0x80) != 0; });
    if (json.size() > kMostBytes || lists > kMostLists || !(is_ascii || is_utf8(json)) ||
        !DrawingReader(json, drawings).read()) {
        drawings.drop_drawing();
        return false;
    }
    return drawings.end_drawing();
}

std::size_t read_lines(std::string_view text, int threads, Drawings& drawings, std::vector<Line>& lines) {
    std::size_t count = 0;
    for (std::size_t from = 0; from < text.size(); ++count) {
        const std::size_t to = std::min(text.find('\n', from), text.size());
        const std::string_view line = text.substr(from, to - from);
        if (!std::all_of(line.begin(), line.end(), is_blank)) lines.push_back({count, from, to, false});
        from = to + 1;
    }
    // Parts of lines that follow one another, each into drawings of its own.
    constexpr std::size_t kLeast = 64;  // lines, for which another thread is worth its while
    const std::size_t parts = std::min(static_cast<std::size_t>(4 * threads), lines.size() / kLeast);
    const auto read = [&](std::size_t first, std::size_t end, Drawings& to) {
        for (std::size_t i = first; i < end; ++i) {
            lines[i].is_read = read_drawing(text.substr(lines[i].from, lines[i].to - lines[i].from), to);
        }
    };
    if (threads == 1 || parts < 2) {
        read(0, lines.size(), drawings);
        return count;
    }
    std::vector<Drawings> some(parts);
    std::atomic<std::size_t> next{0};
    work_together(threads, [&] {
        for (std::size_t part = next++; part < parts; part = next++) {
            read(part * lines.size() / parts, (part + 1) * lines.size() / parts, some[part]);
        }
    });
    for (const Drawings& each : some) drawings.append(each);
    return count;
}

}  // namespace dabnet
