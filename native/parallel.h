// Work shared by several threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace dabnet {

// Calls `work` from up to `threads` threads at once and returns when all of them have; one of them is the caller's.
// `work` takes its pieces from a counter, so that any number of threads gets everything done. It must not throw.
void work_together(int threads, const std::function<void()>& work);

// Threads that sleep until there is work. They are started when they are first needed.
class Team {
   public:
    explicit Team(int size) : size_(size) {}
    ~Team();
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    // Calls work(0), work(1), ... work(size - 1) at the same time, the first from the caller's thread, and returns when
    // all have returned. False, and nothing is called, if the threads cannot be had: they work for another caller, or
    // stayed behind when the process was forked. `work` must not throw.
    bool run(const std::function<void(int)>& work);

   private:
    void start();
    void serve(int member);

    const int size_;
    std::mutex in_use_;
    long process_ = 0;  // the one that the threads live in
    std::vector<std::thread> threads_;

    std::mutex mutex_;  // of what follows
    std::condition_variable wake_, finished_;
    const std::function<void(int)>* work_ = nullptr;
    unsigned round_ = 0;
    int at_work_ = 0;
    bool is_over_ = false;
};

// Where threads wait for each other, in a loop: the wait is far shorter than a sleep.
class Barrier {
   public:
    explicit Barrier(int size) : size_(size) {}
    void wait();

   private:
    const int size_;
    std::atomic<int> arrived_{0};
    std::atomic<unsigned> round_{0};
};

}  // namespace dabnet
