#include "kernels.h"

#include <cstring>

namespace dabnet {

const Kernels* const kAllKernels[] = {
#ifdef DABNET_AVX512
    &kAvx512Kernels,
#endif
#ifdef DABNET_AVX2
    &kAvx2Kernels,
#endif
#ifdef DABNET_NEON
    &kNeonKernels,
#endif
#ifdef DABNET_WASM
    &kWasmKernels,
#endif
    &kPortableKernels, nullptr};

const Kernels* find_kernels(const char* name) {
    for (const Kernels* const* kernels = kAllKernels; *kernels != nullptr; ++kernels) {
        const bool wanted = name == nullptr || std::strcmp(name, (*kernels)->name) == 0;
        if (wanted && (*kernels)->runs_here()) return *kernels;
    }
    return nullptr;
}

}  // namespace dabnet
