#include "parallel.h"

#include <algorithm>
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
    if (members_ == nullptr) return;
    if (process_ != this_process()) {
        // A forked process has no threads to end, and what they were waiting for cannot be taken apart: it is left.
        static_cast<void>(members_.release());
        return;
    }
    {
        const std::lock_guard<std::mutex> lock(members_->mutex);
        members_->is_over = true;
    }
    members_->wake.notify_all();
    for (std::thread& thread : members_->threads) thread.join();
}

void Team::start() {
    process_ = this_process();
    members_ = std::make_unique<Members>();
    Members& members = *members_;
    try {
        for (int i = 1; i < size_; ++i) members.threads.emplace_back([&members, i] { members.serve(i); });
    } catch (const std::system_error&) {  // there are no more threads to be had
    }
}

void Team::run(const std::function<void(int)>& work) {
    const std::unique_lock<std::mutex> only_one(in_use_, std::try_to_lock);
    if (size_ == 1 || !only_one.owns_lock()) return work(0);
    if (members_ == nullptr) start();
    if (process_ != this_process()) return work(0);
    Members& members = *members_;
    {
        const std::lock_guard<std::mutex> lock(members.mutex);
        members.work = &work;
        ++members.round;
    }
    members.wake.notify_all();
    work(0);
    {
        const std::lock_guard<std::mutex> lock(members.mutex);
        members.work = nullptr;
    }
    for (int turn = 0; turn < kAwake && members.at_work.load(std::memory_order_acquire) != 0; ++turn) rest(0);
    std::unique_lock<std::mutex> lock(members.mutex);
    members.finished.wait(lock, [&] { return members.at_work == 0; });
}

void Team::Members::serve(int member) {
    for (unsigned seen = 0;;) {
        for (int turn = 0; turn < kAwake && round.load(std::memory_order_acquire) == seen && !is_over; ++turn) rest(0);
        std::unique_lock<std::mutex> lock(mutex);
        wake.wait(lock, [&] { return is_over || (round != seen && work != nullptr); });
        if (is_over) return;
        seen = round;
        const auto& to_do = *work;
        ++at_work;
        lock.unlock();
        to_do(member);
        lock.lock();
        if (--at_work == 0) finished.notify_one();
    }
}

Stretches::Stretches(std::size_t pieces, std::size_t threads)
    : pieces_(pieces),
      least_(static_cast<std::uint32_t>(std::max<std::size_t>(pieces / (8 * threads), 1))),
      stretches_(threads) {
    const auto start = [&](std::size_t thread) { return static_cast<std::uint32_t>(pieces * thread / threads); };
    for (std::size_t i = 0; i < threads; ++i) {
        stretches_[i].left.store({start(i), start(i + 1)}, std::memory_order_relaxed);
    }
}

Stretches::Range Stretches::take(std::size_t thread) {
    std::atomic<Range>& left = stretches_[thread].left;
    do {
        Range range = left;
        while (range.from != range.to) {
            const std::uint32_t count = range.to - range.from;
            const std::uint32_t middle = range.from + std::min(std::max((count + 1) / 2, least_), count);
            if (left.compare_exchange_weak(range, {middle, range.to})) return {range.from, middle};
        }
    } while (take_over(thread));
    return {0, 0};
}

// Only its owner puts something into an empty stretch. Returns whether something was left.
bool Stretches::take_over(std::size_t thread) {
    for (;;) {
        Stretch* longest = nullptr;
        Range most{0, 0};
        for (Stretch& stretch : stretches_) {
            const Range range = stretch.left;
            if (range.to - range.from > most.to - most.from) longest = &stretch, most = range;
        }
        if (longest == nullptr) return false;
        const std::uint32_t count = most.to - most.from;
        const std::uint32_t middle = most.to - std::min(std::max((count + 1) / 2, least_), count);
        if (longest->left.compare_exchange_strong(most, {most.from, middle})) {
            stretches_[thread].left = {middle, most.to};
            return true;
        }
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
