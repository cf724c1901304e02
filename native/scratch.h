// Memory that a layer needs while it runs, carved into arrays.
#pragma once

#include <cstddef>
#include <cstdint>

namespace dabnet {

// Hands out arrays one after the other, each at a cache line. Without memory it only counts, so that one function of a
// layer both says how much it needs and takes it.
class Carver {
   public:
    explicit Carver(void* memory = nullptr) : memory_(static_cast<std::byte*>(memory)) {}

    template <typename T>
    T* take(std::uint64_t count) {
        std::byte* array = memory_ == nullptr ? nullptr : memory_ + static_cast<std::size_t>(bytes_);
        bytes_ += (count * sizeof(T) + kLine - 1) / kLine * kLine;
        return reinterpret_cast<T*>(array);
    }
    std::uint64_t bytes() const { return bytes_; }

   private:
    static constexpr std::uint64_t kLine = 64;

    std::byte* memory_;
    std::uint64_t bytes_ = 0;
};

}  // namespace dabnet
