// Work shared by several threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace dabnet {

// Calls `work` from up to `threads` threads at once and returns when all of them have; one of them is the caller's.
// `work` takes its pieces from a counter, so that any number of threads gets everything done. It must not throw.
void work_together(int threads, const std::function<void()>& work);

// Threads that sleep until there is work, but first stay awake for a moment, since more often comes at once. They are
// started when they are first needed.
class Team {
   public:
    explicit Team(int size) : size_(size) {}
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Calls work(0) from the caller's thread and, while that runs, work(1) to work(size - 1) from those of the others
    // that come in time; returns when all have. Nobody is waited for who has not begun: the threads may be at work for
    // another caller, or have stayed behind when the process was forked. `work` must not throw.
    void run(const std::function<void(int)>& work);

   private:
    // The threads, and what they and their callers tell each other; changed only while `mutex` is held.
    struct Members {
        std::mutex mutex;
        std::condition_variable wake, finished;
        const std::function<void(int)>* work = nullptr;  // null when it is too late to begin
        std::atomic<unsigned> round{0};
        std::atomic<int> at_work{0};
        std::atomic<bool> is_over{false};
        std::vector<std::thread> threads;

        void serve(int member);
    };

    void start();

    const int size_;
    std::mutex in_use_;
    long process_ = 0;  // the one that the threads live in
    std::unique_ptr<Members> members_;
};

// Waits a little: in a loop, since that is far shorter than a sleep, and later others may have the core.
void rest(int turn);

// The pieces of one step, shared by threads: each has a stretch of them and takes from its start, half of what is left
// at a time. Who has nothing left takes over the latter half of the longest stretch. So a thread's pieces mostly follow
// one another, and one that was held up, or has the hardest pieces, leaves its own to others.
class Stretches {
   public:
    Stretches(std::size_t pieces, std::size_t threads);

    // Calls work(from, to) until no piece is left, and returns when all are done, by whomever.
    template <typename Work>
    void share(std::size_t thread, Work work) {
        for (Range range = take(thread); range.from != range.to; range = take(thread)) {
            work(range.from, range.to);
            done_.fetch_add(range.to - range.from, std::memory_order_release);
        }
        for (int turn = 0; done_.load(std::memory_order_acquire) < pieces_; ++turn) rest(turn);
    }

   private:
    struct Range {
        std::uint32_t from, to;
    };
    struct alignas(64) Stretch {
        std::atomic<Range> left;
    };

    Range take(std::size_t thread);
    bool take_over(std::size_t thread);

    const std::size_t pieces_;
    const std::uint32_t least_;  // pieces to take at once
    std::vector<Stretch> stretches_;
    std::atomic<std::size_t> done_{0};
};

}  // namespace dabnet
