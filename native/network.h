// A packed network: layers one after the other, their values in memory that was planned once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "parallel.h"

namespace dabnet {

// What a value is: maps of real numbers, place after place with all channels of a place together; or maps of signs,
// where a place has one bit a channel, the first in the lowest bit of the first word, and unused bits are 0.
struct Shape {
    std::size_t channels;
    std::size_t height;
    std::size_t width;
    bool is_signs = false;

    std::size_t words() const { return (channels + 63) / 64; }  // of signs, a place
    std::size_t places() const { return height * width; }
    std::size_t count() const { return channels * places(); }
    std::size_t bytes() const {
        return is_signs ? places() * words() * sizeof(std::uint64_t) : count() * sizeof(float);
    }
};

// Counts bytes before they are taken.
class Budget {
   public:
    explicit Budget(std::size_t limit) : limit_(limit) {}
    void take(std::size_t bytes);  // throws TooLarge
    std::size_t taken() const { return taken_; }

   private:
    std::size_t limit_;
    std::size_t taken_ = 0;
};

struct TooLarge {
    std::size_t limit;
};

// What a layer is asked for: pieces [from, to) of values of one sketch, made from others. `scratch` has the layer's
// `scratch_bytes()`; if it is used, it still holds what an earlier job of the same sketch and layer left in it.
struct Job {
    const void* const* inputs;
    void* const* outputs;
    std::size_t from, to;
    void* scratch;
    bool is_used;

    template <typename T>
    const T* input(std::size_t i = 0) const {
        return static_cast<const T*>(inputs[i]);
    }
    template <typename T>
    T* output(std::size_t i = 0) const {
        return static_cast<T*>(outputs[i]);
    }
};

// One step of a network. It holds its weights, and nothing that changes: several threads may run it at once.
class Layer {
   public:
    virtual ~Layer() = default;
    // How many pieces its work has. They may be done in any order, or at the same time.
    virtual std::size_t pieces() const = 0;
    virtual void run(const Job& job) const = 0;
    virtual std::size_t scratch_bytes() const { return 0; }
};

class Network {
   public:
    // `threads` is how many may be at work in one call: on sketches of their own, or together on one.
    Network(Shape input, int threads, std::size_t max_memory);

    Budget& budget() { return budget_; }
    const Shape& shape(std::size_t value) const { return shapes_[value]; }

    // Adds a layer that makes the next values from these; returns the number of the first.
    std::size_t add(std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs, const std::vector<Shape>& outputs);

    // Gives every value its place in memory, and says which one is the answer. Values that are never needed at the same
    // time may share it.
    void plan(std::size_t answer);

    // Runs `batch` sketches (channels, height, width). Several threads may call it at once. Signs are answered as +1
    // and -1.
    void run(const float* sketches, std::size_t batch, float* answers) const;

    const Shape& output_shape(std::size_t step) const { return shapes_[steps_.at(step).outputs.front()]; }

    // The seconds that each step takes of one sketch, one thread at work on it.
    std::vector<double> time_steps(const float* sketch, float* answers) const;

    std::size_t answers() const { return shapes_[answer_].count(); }
    std::size_t memory() const { return budget_.taken(); }

   private:
    struct Step {
        std::unique_ptr<Layer> layer;
        std::vector<std::size_t> inputs;
        std::vector<std::size_t> outputs;
    };
    struct alignas(64) Line {
        std::byte bytes[64];
    };
    using Workspace = std::unique_ptr<Line[]>;
    // Of one sketch: where the values are.
    struct Values {
        const float* sketch;
        Line* workspace;
    };

    // Memory for each thread, and the way back to where it came from.
    class Borrowed {
       public:
        explicit Borrowed(const Network& network);
        ~Borrowed();
        Line* operator[](int thread) const { return workspaces_[static_cast<std::size_t>(thread)].get(); }

       private:
        const Network& network_;
        std::vector<Workspace> workspaces_;
    };

    // Notes the seconds that each step takes, if asked.
    void run_alone(const float* sketch, float* answers, Line* workspace, double* seconds = nullptr) const;
    void run_together(const float* sketch, float* answers, const Borrowed& workspaces) const;
    void run_step(std::size_t step, const Values& values, Line* scratch, std::size_t from, std::size_t to,
                  bool is_used) const;
    const void* find(std::size_t value, const Values& values) const;
    void put_in(const float* sketch, Line* workspace) const;
    void take_out(const Values& values, float* answers) const;

    int threads_;
    mutable Team team_;
    Budget budget_;
    std::vector<Shape> shapes_;
    std::vector<Step> steps_;
    std::size_t answer_ = 0;
    std::vector<std::size_t> offsets_;  // of each value in a workspace, in lines
    std::size_t scratch_ = 0;           // its offset
    std::size_t lines_ = 0;             // of a workspace

    mutable std::mutex mutex_;
    mutable std::vector<Workspace> idle_;
};

}  // namespace dabnet
