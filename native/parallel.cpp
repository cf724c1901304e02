#include "parallel.h"

#include <future>
#include <system_error>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <dlfcn.h>
#include <unistd.h>
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

long this_process() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(getpid());
#else
    return 1;
#endif
}

constexpr int kAwake = 10000;  // turns of a waiting loop, some 150 us

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

Team::~Team() {
    if (process_ != this_process()) {  // a forked process has no threads to end
        for (std::thread& thread : threads_) thread.detach();
        return;
    }
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        is_over_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
}

void Team::start() {
    process_ = this_process();
    try {
        for (int member = 1; member < size_; ++member) threads_.emplace_back([this, member] { serve(member); });
    } catch (const std::system_error&) {  // there are no more threads to be had
    }
}

void Team::run(const std::function<void(int)>& work) {
    const std::unique_lock<std::mutex> only_one(in_use_, std::try_to_lock);
    if (size_ == 1 || !only_one.owns_lock()) return work(0);
    if (process_ == 0) start();
    if (process_ != this_process()) return work(0);
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        work_ = &work;
        ++round_;
    }
    wake_.notify_all();
    work(0);
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        work_ = nullptr;
    }
    for (int turn = 0; turn < kAwake && at_work_.load(std::memory_order_acquire) != 0; ++turn) rest(0);
    std::unique_lock<std::mutex> lock(mutex_);
    finished_.wait(lock, [this] { return at_work_ == 0; });
}

void Team::serve(int member) {
    std::unique_lock<std::mutex> lock(mutex_);
    for (unsigned round = 0;;) {
        lock.unlock();
        for (int turn = 0; turn < kAwake && round_.load(std::memory_order_acquire) == round && !is_over_; ++turn)
            rest(0);
        lock.lock();
        wake_.wait(lock, [&] { return is_over_ || (round_ != round && work_ != nullptr); });
        if (is_over_) return;
        round = round_;
        const auto& work = *work_;
        ++at_work_;
        lock.unlock();
        work(member);
        lock.lock();
        if (--at_work_ == 0) finished_.notify_one();
    }
}

void rest(int turn) {
    constexpr int kTurns = 2000;  // some 30 us
    if (turn >= kTurns) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace dabnet
