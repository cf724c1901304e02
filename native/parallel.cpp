#include "parallel.h"

#include <algorithm>

#ifndef DABNET_ONE_THREAD
#include <chrono>
#include <condition_variable>
#if defined(__unix__) || defined(__APPLE__)
#define DABNET_POSIX
#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>
#endif
#include <thread>
#endif

namespace dabnet {

#ifdef DABNET_ONE_THREAD

void work_together(int, const std::function<void()>& work) { work(); }

struct ThreadPool::Members {};
ThreadPool::ThreadPool(int size) : size_(size) {}
ThreadPool::~ThreadPool() = default;
void ThreadPool::run(const std::function<void(int)>& work, const std::function<void()>&) { work(0); }
void rest(int) {}

#else

namespace {

// The entry that compilers call for `#pragma omp parallel`; GNU's, LLVM's and Intel's OpenMP all have it.
using OpenMp = void (*)(void (*)(void*), void*, unsigned, unsigned);

// OpenMP, if this process has loaded it, as torch does. Its idle threads wait in a loop that keeps a core busy for
// milliseconds: threads of our own would have to share that core, so the work goes to those.
OpenMp find_openmp() {
#ifdef DABNET_POSIX
    return reinterpret_cast<OpenMp>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
#else
    return nullptr;
#endif
}

long this_process() {
#ifdef DABNET_POSIX
    return static_cast<long>(getpid());
#else
    return 1;
#endif
}

constexpr int kAwake = 10000;  // turns of a waiting loop, some 150 us

void call(void* work) { (*static_cast<const std::function<void()>*>(work))(); }

// A thread that can fail to start without an exception.
#ifdef DABNET_POSIX
class Thread {
   public:
    bool start(std::function<void()> work) {
        auto owned = std::make_unique<std::function<void()> >(std::move(work));
        const auto run = [](void* given) -> void* {
            const std::unique_ptr<std::function<void()> > work(static_cast<std::function<void()>*>(given));
            (*work)();
            return nullptr;
        };
        if (pthread_create(&thread_, nullptr, run, owned.get()) != 0) return false;
        static_cast<void>(owned.release());
        return true;
    }
    void join() { pthread_join(thread_, nullptr); }

   private:
    pthread_t thread_{};
};
#else
class Thread {
   public:
    bool start(std::function<void()> work) {
        thread_ = std::thread(std::move(work));
        return true;
    }
    void join() { thread_.join(); }

   private:
    std::thread thread_;
};
#endif

}  // namespace

void work_together(int threads, const std::function<void()>& work) {
    if (threads <= 1) return work();
    if (const OpenMp openmp = find_openmp()) {
        return openmp(call, const_cast<std::function<void()>*>(&work), static_cast<unsigned>(threads), 0);
    }
    std::vector<Thread> helpers;
    for (int i = 1; i < threads; ++i) {
        Thread helper;
        if (!helper.start(work)) break;  // there are no more to be had
        helpers.push_back(std::move(helper));
    }
    work();
    for (Thread& helper : helpers) helper.join();
}

// The threads, and what they and their callers tell each other; changed only while `mutex` is held.
struct ThreadPool::Members {
    std::mutex mutex;
    std::condition_variable wake, finished;
    const std::function<void(int)>* work = nullptr;  // null when it is too late to begin
    std::atomic<unsigned> round{0};
    std::atomic<int> at_work{0};
    std::atomic<bool> is_over{false};
    std::vector<Thread> threads;

    void serve(int member) {
        for (unsigned seen = 0;;) {
            for (int turn = 0; turn < kAwake && round.load(std::memory_order_acquire) == seen && !is_over; ++turn) {
                rest(0);
            }
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
};

ThreadPool::ThreadPool(int size) : size_(size) {}

ThreadPool::~ThreadPool() {
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
    for (Thread& thread : members_->threads) thread.join();
}

void ThreadPool::start() {
    process_ = this_process();
    members_ = std::make_unique<Members>();
    Members& members = *members_;
    for (int i = 1; i < size_; ++i) {
        Thread thread;
        if (!thread.start([&members, i] { members.serve(i); })) break;  // there are no more to be had
        members.threads.push_back(std::move(thread));
    }
}

void ThreadPool::run(const std::function<void(int)>& work, const std::function<void()>& wait) {
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
    while (!members.finished.wait_for(lock, std::chrono::milliseconds(5), [&] { return members.at_work == 0; })) {
        lock.unlock();
        wait();
        lock.lock();
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

#endif

WorkRanges::WorkRanges(std::size_t pieces, std::size_t threads)
    : pieces_(pieces),
      least_(static_cast<std::uint32_t>(std::max<std::size_t>(pieces / (8 * threads), 1))),
      ranges_(threads) {
    const auto start = [&](std::size_t thread) {
        return static_cast<std::uint32_t>(std::uint64_t{pieces} * thread / threads);
    };
    for (std::size_t i = 0; i < threads; ++i) {
        ranges_[i].left.store({start(i), start(i + 1)}, std::memory_order_relaxed);
    }
}

WorkRanges::Range WorkRanges::take(std::size_t thread) {
    std::atomic<Range>& left = ranges_[thread].left;
    do {
        Range range = left;
        while (range.from != range.to) {
            const std::uint32_t count = range.to - range.from;
            const std::uint32_t half = range.from + std::min(std::max((count + 1) / 2, least_), count);
            if (left.compare_exchange_weak(range, {half, range.to})) return {range.from, half};
        }
    } while (steal(thread));
    return {0, 0};
}

// Only its owner puts something into an empty range. Returns whether something was left.
bool WorkRanges::steal(std::size_t thread) {
    for (;;) {
        Owned* longest = nullptr;
        Range most{0, 0};
        for (Owned& owned : ranges_) {
            const Range range = owned.left;
            if (range.to - range.from > most.to - most.from) longest = &owned, most = range;
        }
        if (longest == nullptr) return false;
        const std::uint32_t count = most.to - most.from;
        const std::uint32_t half = most.to - std::min(std::max((count + 1) / 2, least_), count);
        if (longest->left.compare_exchange_strong(most, {most.from, half})) {
            ranges_[thread].left = {half, most.to};
            return true;
        }
    }
}

}  // namespace dabnet
