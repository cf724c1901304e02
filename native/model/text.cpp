#include "text.h"

#include <cstdio>

namespace dabnet {
namespace {

constexpr std::uint32_t kInvalid = 0xffffffff;

// The code point at `at`, which moves on to the next one; halves of surrogate pairs are let through if asked.
std::uint32_t next_code(std::string_view text, std::size_t& at, bool with_halves) {
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    const std::uint32_t first = byte(at++);
    if (first < 0x80) return first;
    const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || at + static_cast<std::size_t>(more) > text.size()) return kInvalid;
    std::uint32_t code = first & (0x3fu >> more);
    for (int i = 0; i < more; ++i, ++at) {
        if ((byte(at) & 0xc0) != 0x80) return kInvalid;
        code = code << 6 | (byte(at) & 0x3f);
    }
    const std::uint32_t least = more == 3 ? 0x10000 : more == 2 ? 0x800 : 0x80;
    const bool is_half = code >= 0xd800 && code < 0xe000;
    return code < least || code > 0x10ffff || (is_half && !with_halves) ? kInvalid : code;
}

// What a terminal could take amiss: controls, marks of direction, halves of characters and what has no shape.
bool is_printable(std::uint32_t code) {
    if (code < 0x20 || (code >= 0x7f && code <= 0xa0) || code == 0xad) return false;
    if ((code >= 0x2000 && code <= 0x200f) || (code >= 0x2028 && code <= 0x202f)) return false;
    if ((code >= 0x205f && code <= 0x206f) || code == 0xfeff || code == 0x3000) return false;
    if (code >= 0xd800 && code < 0xf900) return false;
    return (code & 0xfffe) != 0xfffe && !(code >= 0xfff0 && code <= 0xfffb) && code < 0xe0000;
}

}  // namespace

void append_utf8(std::string& text, std::uint32_t code) {
    const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
    const auto rest = [&](int shift) { put(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) return put(code);
    if (code < 0x800) {
        put(0xc0 | code >> 6);
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        rest(6);
    } else {
        put(0xf0 | code >> 18);
        rest(12);
        rest(6);
    }
    rest(0);
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        if (next_code(text, at, false) == kInvalid) return false;
    }
    return true;
}

bool is_text(std::string_view text) {
    std::size_t characters = 0;
    for (std::size_t at = 0; at < text.size(); ++characters) {
        if (next_code(text, at, false) == kInvalid || characters == kMostCharacters) return false;
    }
    return true;
}

std::string cut(std::string_view text, std::size_t most) {
    std::size_t at = 0;
    for (std::size_t count = 0; count < most && at < text.size(); ++count) {
        if (next_code(text, at, true) == kInvalid) break;
    }
    return std::string(text.substr(0, at));
}

std::string quoted(std::string_view text) {
    const bool has_single = text.find('\'') != std::string_view::npos, has_double = text.find('"') != text.npos;
    const char quote = has_single && !has_double ? '"' : '\'';
    std::string said(1, quote);
    for (std::size_t at = 0; at < text.size();) {
        const std::uint32_t code = next_code(text, at, true);
        char escape[16];
        if (code == kInvalid) {
            said += '?';
        } else if (code == static_cast<std::uint32_t>(quote) || code == '\\') {
            said += '\\';
            said += static_cast<char>(code);
        } else if (code == '\n' || code == '\r' || code == '\t') {
            said += code == '\n' ? "\\n" : code == '\r' ? "\\r" : "\\t";
        } else if (is_printable(code)) {
            append_utf8(said, code);
        } else {
            const char* format = code < 0x100 ? "\\x%02x" : code < 0x10000 ? "\\u%04x" : "\\U%08x";
            std::snprintf(escape, sizeof escape, format, static_cast<unsigned>(code));
            said += escape;
        }
    }
    return said + quote;
}

std::string decimal(double number) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.12g", number);
    const std::string text(digits);
    return text.find_first_not_of("-0123456789") == text.npos ? text + ".0" : text;
}

std::string grouped(std::uint64_t number) {
    std::string digits = std::to_string(number);
    for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, 1, ',');
    return digits;
}

}  // namespace dabnet
