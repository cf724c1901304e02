// Work shared by several threads. With DABNET_ONE_THREAD, as in WebAssembly, there is only the caller's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#if defined(__wasm__) && !defined(DABNET_ONE_THREAD)
#define DABNET_ONE_THREAD
#endif
#ifndef DABNET_ONE_THREAD
#include <mutex>
#endif

namespace dabnet {

#ifdef DABNET_ONE_THREAD
struct Mutex {
    void lock() {}
    void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

// Calls `work` from up to `threads` threads at once and returns when all of them have; one of them is the caller's.
// `work` takes its pieces from a counter, so that any number of threads gets everything done. It must not throw.
void work_together(int threads, const std::function<void()>& work);

// A thread pool. Its threads sleep until there is work, but first stay awake for a moment, since more often comes at
// once. They are started when they are first needed.
class ThreadPool {
   public:
    explicit ThreadPool(int size);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    // Calls work(0) from the caller's thread and, while that runs, work(1) to work(size - 1) from those of the others
    // that come in time; returns when all have. Nobody is waited for who has not begun: the threads may be at work for
    // another caller, or have stayed behind when the process was forked. While it waits for the others, it calls `wait`
    // every few milliseconds. `work` must not throw.
    void run(const std::function<void(int)>& work, const std::function<void()>& wait);

   private:
    struct Members;
    void start();

    const int size_;
    Mutex in_use_;
    long process_ = 0;  // the one that the threads live in
    std::unique_ptr<Members> members_;
};

// Waits a little: in a loop, since that is far shorter than a sleep, and later others may have the core.
void rest(int turn);

// The pieces of one step as work-stealing ranges: each thread has a range of them and takes from its start, half of
// what is left at a time. Who has nothing left steals the latter half of the longest range. So a thread's pieces mostly
// follow one another, and one that was held up, or has the hardest pieces, leaves its own to others.
class WorkRanges {
   public:
    WorkRanges(std::size_t pieces, std::size_t threads);

    // Calls work(from, to) until no piece is left, and returns when all are done, by whomever; calls wait() in between.
    template <typename Work, typename Wait>
    void share(std::size_t thread, Work work, Wait wait) {
        for (Range range = take(thread); range.from != range.to; range = take(thread)) {
            work(range.from, range.to);
            done_.fetch_add(range.to - range.from, std::memory_order_release);
        }
        for (int turn = 0; done_.load(std::memory_order_acquire) < pieces_; ++turn) {
            rest(turn);
            if (turn % 1024 == 1023) wait();
        }
    }

   private:
    struct Range {
        std::uint32_t from, to;
    };
    struct alignas(64) Owned {
        std::atomic<Range> left;
    };

    Range take(std::size_t thread);
    bool steal(std::size_t thread);

    const std::size_t pieces_;
    const std::uint32_t least_;  // pieces to take at once
    std::vector<Owned> ranges_;
    std::atomic<std::size_t> done_{0};
};

}  // namespace dabnet
