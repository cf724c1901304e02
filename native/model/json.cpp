#include "json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "text.h"

namespace dabnet {
namespace {

constexpr int kDeepest = 32;
constexpr std::uint32_t kMostItems = (1u << 24) - 1;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

int hex_digit(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Four hex digits, which the parser has checked.
std::uint32_t hex4(std::string_view text, std::size_t at) {
    std::uint32_t code = 0;
    for (std::size_t i = at; i < at + 4; ++i) code = code * 16 + static_cast<std::uint32_t>(hex_digit(text[i]));
    return code;
}

}  // namespace

// Goes through the text once.
class JsonParser {
   public:
    explicit JsonParser(JsonDocument& document) : text_(document.text_), tokens_(document.tokens_) {}

    bool run() {
        if (!value(0)) return false;
        space();
        return at_ == text_.size();
    }

   private:
    using Kind = JsonDocument::Kind;

    bool is_over() const { return at_ >= text_.size(); }
    void space() {
        while (!is_over() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
            ++at_;
    }
    bool take(char c) {
        space();
        if (is_over() || text_[at_] != c) return false;
        ++at_;
        return true;
    }
    bool take_word(std::string_view word) {
        if (text_.substr(at_, word.size()) != word) return false;
        at_ += word.size();
        return true;
    }

    std::size_t open(Kind kind, std::size_t from) {
        tokens_.push_back({static_cast<std::uint32_t>(from), 0, 0, static_cast<std::uint32_t>(kind), 0});
        return tokens_.size() - 1;
    }
    bool close(std::size_t token, std::size_t end_of_text) {
        tokens_[token].length = static_cast<std::uint32_t>(end_of_text - tokens_[token].from);
        tokens_[token].end = static_cast<std::uint32_t>(tokens_.size());
        return true;
    }

    bool value(int depth) {
        space();
        if (is_over() || depth > kDeepest) return false;
        const std::size_t from = at_;
        const char c = text_[at_];
        if (c == '{') return object(depth);
        if (c == '[') return list(depth);
        if (c == '"') return string();
        Kind kind = Kind::kReal;
        if (take_word("null")) {
            kind = Kind::kNull;
        } else if (take_word("true")) {
            kind = Kind::kTrue;
        } else if (take_word("false")) {
            kind = Kind::kFalse;
        } else if (!take_word("NaN") && !take_word("Infinity") && !take_word("-Infinity") && !number(kind)) {
            return false;
        }
        return close(open(kind, from), at_);
    }

    bool digits() {
        const std::size_t from = at_;
        while (!is_over() && is_digit(text_[at_])) ++at_;
        return at_ != from;
    }

    bool number(Kind& kind) {
        kind = Kind::kInteger;
        take_word("-");
        if (!take_word("0") && !digits()) return false;
        if (take_word(".")) {
            kind = Kind::kReal;
            if (!digits()) return false;
        }
        if (take_word("e") || take_word("E")) {
            kind = Kind::kReal;
            if (!take_word("+")) take_word("-");
            if (!digits()) return false;
        }
        return true;
    }

    bool string() {
        const std::size_t token = open(Kind::kText, ++at_);
        for (;; ++at_) {
            if (is_over() || static_cast<unsigned char>(text_[at_]) < 0x20) return false;
            if (text_[at_] == '"') return close(token, at_++);
            if (text_[at_] != '\\') continue;
            if (++at_ == text_.size()) return false;
            if (text_[at_] != 'u') {
                if (std::string_view("\"\\/bfnrt").find(text_[at_]) == std::string_view::npos) return false;
                continue;
            }
            for (int i = 0; i < 4; ++i) {
                if (++at_ >= text_.size() || hex_digit(text_[at_]) < 0) return false;
            }
        }
    }

    bool list(int depth) {
        const std::size_t token = open(Kind::kList, at_++);
        std::uint32_t count = 0;
        if (!take(']')) {
            do {
                if (count++ == kMostItems || !value(depth + 1)) return false;
            } while (take(','));
            if (!take(']')) return false;
        }
        tokens_[token].count = count;
        return close(token, at_);
    }

    bool object(int depth) {
        const std::size_t token = open(Kind::kObject, at_++);
        std::uint32_t count = 0;
        if (!take('}')) {
            do {
                space();
                if (is_over() || text_[at_] != '"' || count++ == kMostItems) return false;
                if (!string() || !take(':') || !value(depth + 1)) return false;
            } while (take(','));
            if (!take('}')) return false;
        }
        tokens_[token].count = count;
        return close(token, at_) && has_no_key_twice(token);
    }

    bool has_no_key_twice(std::size_t token) const {
        std::vector<std::string_view> keys;
        std::vector<std::string> unescaped;
        const std::size_t count = tokens_[token].count;
        keys.reserve(count);
        unescaped.reserve(count);
        std::size_t at = token + 1;
        for (std::size_t i = 0; i < count; ++i, at = tokens_[at + 1].end) {
            std::string_view key = text_.substr(tokens_[at].from, tokens_[at].length);
            if (key.find('\\') != key.npos) {
                unescaped.push_back(unescape(key));
                key = unescaped.back();
            }
            keys.push_back(key);
        }
        std::sort(keys.begin(), keys.end());
        return std::adjacent_find(keys.begin(), keys.end()) == keys.end();
    }

   public:
    // Undoes the escapes of a text that was checked.
    static std::string unescape(std::string_view raw) {
        std::string text;
        text.reserve(raw.size());
        for (std::size_t at = 0; at < raw.size(); ++at) {
            if (raw[at] != '\\') {
                text += raw[at];
                continue;
            }
            const char c = raw[++at];
            if (c != 'u') {
                text += c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
                continue;
            }
            std::uint32_t code = hex4(raw, at + 1);
            at += 4;
            if (code >= 0xd800 && code < 0xdc00 && raw.substr(at + 1, 2) == "\\u") {
                const std::uint32_t low = hex4(raw, at + 3);
                if (low >= 0xdc00 && low < 0xe000) {
                    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
                    at += 6;
                }
            }
            append_utf8(text, code);
        }
        return text;
    }

   private:
    std::string_view text_;
    std::vector<JsonDocument::Token>& tokens_;
    std::size_t at_ = 0;
};

bool JsonDocument::parse(std::string_view text) {
    text_ = text;
    tokens_.clear();
    return text.size() < UINT32_MAX && is_utf8(text) && JsonParser(*this).run();
}

Json JsonDocument::root() const { return {this, 0}; }

std::string Json::text() const { return JsonParser::unescape(source()); }

double Json::number() const {
    const std::string digits(source());
    if (digits == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (digits == "Infinity") return std::numeric_limits<double>::infinity();
    if (digits == "-Infinity") return -std::numeric_limits<double>::infinity();
#ifdef __cpp_lib_to_chars
    double value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec == std::errc()) return value;
#endif
    return std::strtod(digits.c_str(), nullptr);  // says which end of the range it is beyond
}

bool Json::integer(std::uint64_t most, std::uint64_t& value) const {
    if (!is_integer()) return false;
    value = 0;
    for (const char c : source()) {
        if (!is_digit(c)) return false;  // a minus: -0 is no index either
        const auto digit = static_cast<std::uint64_t>(c - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    return value <= most;
}

std::string Json::describe(std::size_t most) const {
    std::string said;
    describe_into(said, 4 * most + 8);
    return cut(said, most);
}

void Json::describe_into(std::string& said, std::size_t most_bytes) const {
    if (said.size() > most_bytes) return;
    switch (kind()) {
        case Kind::kNull:
            said += "None";
            return;
        case Kind::kFalse:
            said += "False";
            return;
        case Kind::kTrue:
            said += "True";
            return;
        case Kind::kInteger:
            said += source().substr(0, most_bytes);
            return;
        case Kind::kReal:
            said += source() == "NaN"         ? "nan"
                    : source() == "Infinity"  ? "inf"
                    : source() == "-Infinity" ? "-inf"
                                              : source().substr(0, most_bytes);
            return;
        case Kind::kText:
            said += quoted(JsonParser::unescape(
                source().substr(0, source().find('\\') == source().npos ? most_bytes : source().npos)));
            return;
        case Kind::kList:
        case Kind::kObject:
            break;
    }
    bool is_first = true;
    const auto separate = [&] {
        if (!is_first) said += ", ";
        is_first = false;
        return said.size() <= most_bytes;
    };
    said += is_list() ? '[' : '{';
    if (is_list()) {
        each_item([&](Json item) {
            if (!separate()) return false;
            item.describe_into(said, most_bytes);
            return true;
        });
    } else {
        each_entry([&](const std::string& key, Json value) {
            if (!separate()) return false;
            said += quoted(cut(key, most_bytes)) + ": ";
            value.describe_into(said, most_bytes);
            return true;
        });
    }
    said += is_list() ? ']' : '}';
}

bool Json::find(std::string_view name, Json& value) const {
    return !each_entry([&](const std::string& key, Json found) {
        if (key != name) return true;
        value = found;
        return false;
    });
}

}  // namespace dabnet
