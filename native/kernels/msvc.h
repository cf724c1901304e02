// Stands before the kernels where MSVC compiles them, which has other words for what GCC and Clang understand; it
// inlines small functions by itself.
#pragma once

#define __attribute__(list)
#pragma warning(disable : 4068)  // #pragma GCC unroll
