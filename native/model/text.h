// Texts as sentences quote them: the way Python writes them, which is what users of dabnet know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dabnet {

constexpr std::size_t kMostCharacters = 1000;  // of a label or a name

// Appends a code point as UTF-8; half of a surrogate pair becomes the three bytes that it would have.
void append_utf8(std::string& text, std::uint32_t code);

bool is_utf8(std::string_view text);

// Whether a text can stand in a file: not too long, and without halves of characters.
bool is_text(std::string_view text);

// The first `most` characters.
std::string cut(std::string_view text, std::size_t most);

// In quotes, with escapes for what cannot be printed.
std::string quoted(std::string_view text);

// A number with a decimal point or an exponent: "0.5", "1.0", "1e+39".
std::string decimal(double number);

// 1234567 as "1,234,567".
std::string grouped(std::uint64_t number);

}  // namespace dabnet
