// Memory that nobody may touch for a while. AddressSanitizer tells who does; without it this does nothing.
#pragma once

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DABNET_FENCES
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define DABNET_FENCES
#endif

#ifdef DABNET_FENCES
#include <sanitizer/asan_interface.h>
#endif

namespace dabnet {

inline void close_fence([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef DABNET_FENCES
    __asan_poison_memory_region(memory, bytes);
#endif
}

inline void open_fence([[maybe_unused]] const void* memory, [[maybe_unused]] std::size_t bytes) {
#ifdef DABNET_FENCES
    __asan_unpoison_memory_region(memory, bytes);
#endif
}

}  // namespace dabnet
