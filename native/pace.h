// How a run is stopped: a flag that all its threads read, and the host's word on whether to go on.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "dabnet.h"

namespace dabnet {

// One for each run. Only the thread that called for the run asks the host.
class Stop {
   public:
    Stop(dabnet_should_stop should_stop, void* context) : should_stop_(should_stop), context_(context) {}

    bool is_set() const { return is_set_.load(std::memory_order_relaxed); }

    // Asks the host, if it has not been asked for a while.
    void ask() {
        if (should_stop_ == nullptr || is_set()) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < kPause) return;
        last_ = now;
        if (should_stop_(context_) != 0) is_set_.store(true, std::memory_order_relaxed);
    }

   private:
    static constexpr std::chrono::milliseconds kPause{5};

    dabnet_should_stop should_stop_;
    void* context_;
    std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
    std::atomic<bool> is_set_{false};
};

// One for each thread of a run: it counts work, so that the clock is looked at only now and then.
class Pace {
   public:
    Pace(Stop& stop, bool asks) : stop_(stop), asks_(asks) {}

    // Counts work that was done, or will be: some multiply-adds. Returns whether the run has to end; no single piece of
    // work should be larger than a few million.
    bool spend(std::uint64_t work) {
        if (work < credit_) {
            credit_ -= work;
            return false;
        }
        credit_ = kCredit;
        if (asks_) stop_.ask();
        return stop_.is_set();
    }

    bool is_stopped() const { return stop_.is_set(); }

   private:
    static constexpr std::uint64_t kCredit = std::uint64_t{1} << 21;

    Stop& stop_;
    bool asks_;
    std::uint64_t credit_ = kCredit;
};

}  // namespace dabnet
