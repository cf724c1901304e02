// What a value between two steps is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// What one number of a value is stored as: a real number, a whole number of 8 or of 4 bits, or a sign.
enum class ElementType : std::uint8_t { f32, u8, u4, bit };

constexpr const char* name_of(ElementType type) {
    return type == ElementType::f32 ? "f32" : type == ElementType::u8 ? "u8" : type == ElementType::u4 ? "u4" : "bit";
}

// Values are NHWC: position after position, all channels of a position together. Bits of a position start at a word of
// 64, the first channel in its lowest bit, and unused bits are 0. A whole number has a byte of its own, which is the
// number plus `zero`.
//
// Counts that have not met a budget yet have 64 bits: a small file can describe more than an address space holds.
struct Shape {
    std::size_t channels;
    std::size_t height;
    std::size_t width;
    ElementType type = ElementType::f32;
    std::uint8_t zero = 0;  // the byte of 0, of whole numbers

    bool is_bits() const { return type == ElementType::bit; }
    bool is_whole() const { return type == ElementType::u8 || type == ElementType::u4; }
    Shape as(ElementType other, std::uint8_t byte_of_zero = 0) const {
        return {channels, height, width, other, byte_of_zero};
    }
    bool operator==(const Shape& other) const {
        return channels == other.channels && height == other.height && width == other.width && type == other.type &&
               zero == other.zero;
    }

    std::size_t words() const { return (channels + 63) / 64; }  // of bits, at a position
    std::uint64_t positions() const { return std::uint64_t{height} * width; }
    std::uint64_t count() const { return channels * positions(); }
    std::uint64_t bytes() const {
        switch (type) {
            case ElementType::f32:
                return count() * sizeof(float);
            case ElementType::u8:
            case ElementType::u4:
                return count();
            case ElementType::bit:
                break;
        }
        return positions() * words() * sizeof(std::uint64_t);
    }
};

}  // namespace dabnet
