// Work shared by several threads.
#pragma once

#include <functional>

namespace dabnet {

// Calls `work` from up to `threads` threads at once and returns when all of them have; one of them is the caller's.
// `work` takes its pieces from a counter, so that any number of threads gets everything done. It must not throw.
void work_together(int threads, const std::function<void()>& work);

}  // namespace dabnet
