// A packed network: layers one after the other, their values in memory that was planned once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pace.h"
#include "parallel.h"
#include "shape.h"

namespace dabnet {

// Counts bytes before they are taken.
class Budget {
   public:
    explicit Budget(std::uint64_t limit) : limit_(limit < SIZE_MAX ? limit : SIZE_MAX) {}
    // False if there is no room for so many; what asked then must not take them.
    bool take(std::uint64_t bytes) {
        if (bytes > limit_ - taken_) return false;
        taken_ += bytes;
        return true;
    }
    bool has_room(std::uint64_t bytes) const { return bytes <= limit_ - taken_; }
    std::uint64_t taken() const { return taken_; }
    std::uint64_t limit() const { return limit_; }

   private:
    std::uint64_t limit_;
    std::uint64_t taken_ = 0;
};

// What a layer is asked for: pieces [from, to) of values of one image, made from others. `scratch` has the layer's
// `scratch_bytes()`; if it is used, it still holds what an earlier job of the same image and layer left in it.
struct Job {
    const void* const* inputs;
    void* const* outputs;
    std::size_t from, to;
    void* scratch;
    bool is_used;
    Pace* pace;

    template <typename T>
    const T* input(std::size_t i = 0) const {
        return static_cast<const T*>(inputs[i]);
    }
    template <typename T>
    T* output(std::size_t i = 0) const {
        return static_cast<T*>(outputs[i]);
    }
    // Counts work, a few million multiply-adds at most at once. If the run has to end, the layer returns at once; what
    // it made is not looked at.
    bool is_stopped(std::uint64_t work) const { return pace != nullptr && pace->spend(work); }
};

// One step of a network. It holds its weights, and nothing that changes: several threads may run it at once.
class Layer {
   public:
    virtual ~Layer() = default;
    // How many pieces its work has. They may be done in any order, or at the same time.
    virtual std::uint64_t pieces() const = 0;
    virtual void run(const Job& job) const = 0;
    virtual std::uint64_t scratch_bytes() const { return 0; }
    // The multiply-adds of all pieces together, or what takes about as long.
    virtual double work() const = 0;
    // Whether it is done the slow way, since no faster one fits its shape.
    virtual bool is_general() const { return false; }
};

class Network {
   public:
    // `threads` is how many may be at work in one call: on images of their own, or together on one.
    Network(Shape input, int threads, std::uint64_t max_memory);

    Budget& budget() { return budget_; }
    const Budget& budget() const { return budget_; }
    const Shape& shape(std::size_t value) const { return shapes_[value]; }

    // Adds a layer that makes the next values from these, and notes the number of the first; false if the layer is null
    // or there is no room for it.
    bool add(std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs, const std::vector<Shape>& outputs,
             std::size_t& first);

    // Assigns every value its memory, and says which one is the answer. Values that are never needed at the same time
    // may share it. False if there is no room.
    bool plan(std::size_t answer);

    // Runs `batch` images (channels, height, width). Several threads may call it at once. Signs are answered as +1 and
    // -1, whole numbers as they are. Returns DABNET_OK, DABNET_CANCELLED or DABNET_NO_MEMORY.
    dabnet_status run(const float* images, std::size_t batch, float* answers, Stop& stop) const;

    // The same for images that are made when their turn comes, by the thread that runs them: draw(i, image) says
    // whether there is one, and then take(i, answers) gets its answers.
    using Draw = std::function<bool(std::size_t, float*)>;
    using Take = std::function<void(std::size_t, const float*)>;
    dabnet_status run_drawn(std::size_t batch, const Draw& draw, const Take& take, Stop& stop) const;

    // The seconds that each step takes for one image, one thread at work on it.
    dabnet_status time_steps(const float* image, float* answers, double* seconds) const;

    std::size_t steps() const { return steps_.size(); }
    const Layer& layer(std::size_t step) const { return *steps_[step].layer; }
    std::size_t answers() const { return static_cast<std::size_t>(shapes_[answer_].count()); }
    std::uint64_t memory() const { return budget_.taken(); }
    double work() const { return work_; }

   private:
    // A layer, and the numbers of the values that it takes and makes.
    struct BoundLayer {
        std::unique_ptr<Layer> layer;
        std::vector<std::size_t> inputs;
        std::vector<std::size_t> outputs;
    };
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    using Workspace = std::unique_ptr<Line[]>;
    // Of one image: where the values are.
    struct Values {
        const float* image;
        Line* workspace;
    };

    // Memory for each thread, and the way back to where it came from.
    class Borrowed {
       public:
        explicit Borrowed(const Network& network);
        ~Borrowed();
        bool is_complete() const { return is_complete_; }
        Line* operator[](int thread) const { return workspaces_[static_cast<std::size_t>(thread)].get(); }

       private:
        const Network& network_;
        bool is_complete_ = true;
        std::vector<Workspace> workspaces_;
    };

    // Calls one(i, thread, run) for each image of a batch, which calls run(image, answers).
    template <typename One>
    dabnet_status run_each(std::size_t batch, Stop& stop, One one) const;
    // Notes the seconds that each step takes, if asked.
    void run_alone(const float* image, float* answers, Line* workspace, Pace& pace, double* seconds = nullptr) const;
    void run_together(const float* image, float* answers, const Borrowed& workspaces, Stop& stop) const;
    void run_step(std::size_t step, const Values& values, Line* scratch, std::size_t from, std::size_t to, bool is_used,
                  Pace& pace) const;
    const void* find(std::size_t value, const Values& values) const;
    void put_in(const float* image, Line* workspace) const;
    void take_out(const Values& values, float* answers) const;

    int threads_;
    mutable ThreadPool pool_;
    Budget budget_;
    double work_ = 0;
    std::vector<Shape> shapes_;
    std::vector<BoundLayer> steps_;
    std::size_t answer_ = 0;
    std::vector<std::size_t> offsets_;  // of each value in a workspace, in lines
    std::size_t scratch_ = 0;           // its offset
    std::size_t lines_ = 0;             // of a workspace

    mutable Mutex mutex_;
    mutable std::vector<Workspace> idle_;
};

}  // namespace dabnet
