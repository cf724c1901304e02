# Zig's Clang, libc++ and glibc's symbols, from PyPI, as the compiler for Linux: what it builds runs wherever glibc is
# 2.28 or newer, and links no C++ library. DABNET_PYTHON has ziglang, DABNET_ARCH is x86_64 or aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${DABNET_ARCH})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES DABNET_PYTHON DABNET_ARCH)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
set(CMAKE_CXX_COMPILER "${DABNET_PYTHON};-m;ziglang;c++")
set(CMAKE_CXX_COMPILER_TARGET ${DABNET_ARCH}-linux-gnu.2.28)
# CMake asks Python of the target for its headers by an emulator. This machine's Python answers for it: its headers are
# the same, and what differs, the name of a module, scikit-build-core is told.
set(CMAKE_CROSSCOMPILING_EMULATOR env)
# nanobind writes to stderr; by the stable ABI, Python's header does not bring it.
set(CMAKE_CXX_FLAGS_INIT "-include cstdio -ffunction-sections -fdata-sections")
# A wheel is to stay small, and -O3 gains nothing over this: what has to be fast is written out.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "")
