#include "parallel.h"

#include <future>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#endif

namespace dabnet {
namespace {

// The entry that compilers call for `#pragma omp parallel`; GNU's, LLVM's and Intel's OpenMP all have it.
using OpenMp = void (*)(void (*)(void*), void*, unsigned, unsigned);

// OpenMP, if this process has loaded it, as torch does. Its idle threads wait in a loop that keeps a core busy for
// milliseconds: threads of our own would have to share that core, so the work goes to those.
OpenMp find_openmp() {
#if defined(__unix__) || defined(__APPLE__)
    return reinterpret_cast<OpenMp>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
#else
    return nullptr;
#endif
}

void call(void* work) { (*static_cast<const std::function<void()>*>(work))(); }

}  // namespace

void work_together(int threads, const std::function<void()>& work) {
    if (threads <= 1) return work();
    if (const OpenMp openmp = find_openmp()) {
        return openmp(call, const_cast<std::function<void()>*>(&work), static_cast<unsigned>(threads), 0);
    }
    std::vector<std::future<void>> helpers;
    for (int i = 1; i < threads; ++i) helpers.push_back(std::async(std::launch::async, work));
    work();
    for (auto& helper : helpers) helper.get();
}

}  // namespace dabnet
