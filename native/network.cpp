#include "network.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <utility>

#include "fence.h"

namespace dabnet {
namespace {

constexpr std::size_t kLine = 64;  // bytes of a cache line: values start at one

constexpr std::size_t kMostPieces = UINT32_MAX;  // of a step, that Stretches can share

std::size_t lines_of(std::size_t bytes) { return (bytes + kLine - 1) / kLine; }

// Where a value stands, and the last step at which it is needed.
struct Block {
    std::size_t from, to, last;
};

// Puts a value into the lowest gap between those that are still needed at step `first`, and returns its offset. The
// blocks are in the order of their offsets, and stay so.
std::size_t place_value(std::vector<Block>& blocks, std::size_t lines, std::size_t first, std::size_t last) {
    const auto is_over = [&](const Block& block) { return block.last < first; };
    blocks.erase(std::remove_if(blocks.begin(), blocks.end(), is_over), blocks.end());
    std::size_t offset = 0;
    auto next = blocks.begin();
    for (; next != blocks.end() && next->from < offset + lines; ++next) offset = next->to;
    blocks.insert(next, {offset, offset + lines, last});
    return offset;
}

// Notes the seconds between one step and the next, if there is a place for them.
class Stopwatch {
   public:
    explicit Stopwatch(double* seconds) : seconds_(seconds) {}
    void note(std::size_t step) {
        if (seconds_ == nullptr) return;
        const auto now = Clock::now();
        seconds_[step] = std::chrono::duration<double>(now - last_).count();
        last_ = now;
    }

   private:
    using Clock = std::chrono::steady_clock;
    double* seconds_;
    Clock::time_point last_ = Clock::now();
};

}  // namespace

void Budget::take(std::size_t bytes) {
    if (bytes > limit_ - taken_) throw TooLarge{limit_};
    taken_ += bytes;
}

Network::Network(Shape input, int threads, std::size_t max_memory)
    : threads_(std::max(threads, 1)), team_(threads_), budget_(max_memory), shapes_{input} {}

std::size_t Network::add(std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs,
                         const std::vector<Shape>& outputs) {
    budget_.take((inputs.size() + outputs.size()) * sizeof(std::size_t));
    std::vector<std::size_t> values;
    for (const Shape& output : outputs) {
        values.push_back(shapes_.size());
        shapes_.push_back(output);
    }
    if (layer->pieces() > kMostPieces) throw TooLarge{kMostPieces};
    const std::size_t first = values.front();
    steps_.push_back({std::move(layer), std::move(inputs), std::move(values)});
    return first;
}

void Network::plan(std::size_t answer) {
    answer_ = answer;
    // The input is there before all steps, the answer is needed after them.
    std::vector<std::size_t> first_use(shapes_.size()), last_use(shapes_.size());
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        for (std::size_t input : steps_[step].inputs) last_use[input] = step + 1;
        for (std::size_t output : steps_[step].outputs) first_use[output] = last_use[output] = step + 1;
    }
    last_use[answer] = steps_.size() + 1;

    std::vector<Block> blocks;
    std::size_t scratch_bytes = 0;
    for (std::size_t value = 0; value < shapes_.size(); ++value) {
        const std::size_t lines = lines_of(shapes_[value].bytes());
        offsets_.push_back(place_value(blocks, lines, first_use[value], last_use[value]));
        lines_ = std::max(lines_, offsets_.back() + lines);
    }
    for (const Step& step : steps_) scratch_bytes = std::max(scratch_bytes, step.layer->scratch_bytes());
    scratch_ = lines_;
    lines_ += lines_of(scratch_bytes);
    for (int i = 0; i < threads_; ++i) budget_.take(lines_ * kLine);
}

Network::Borrowed::Borrowed(const Network& network) : network_(network) {
    const auto count = static_cast<std::size_t>(network.threads_);
    {
        const std::lock_guard<std::mutex> lock(network.mutex_);
        while (workspaces_.size() < count && !network.idle_.empty()) {
            workspaces_.push_back(std::move(network.idle_.back()));
            network.idle_.pop_back();
        }
    }
    while (workspaces_.size() < count) workspaces_.push_back(std::make_unique<Line[]>(network.lines_));
}

Network::Borrowed::~Borrowed() {
    const std::lock_guard<std::mutex> lock(network_.mutex_);
    for (Workspace& workspace : workspaces_) network_.idle_.push_back(std::move(workspace));
}

void Network::run(const float* sketches, std::size_t batch, float* answers) const {
    const Borrowed workspaces(*this);
    const auto one = [&](std::size_t i, auto run) {
        run(sketches + i * shapes_.front().count(), answers + i * this->answers());
    };
    // As many as come out even, each thread its own; the rest one by one, all threads together.
    const std::size_t even = batch - batch % static_cast<std::size_t>(threads_);
    std::atomic<std::size_t> next{0};
    const auto work = [&](int thread) {
        for (std::size_t i = next++; i < even; i = next++) {
            one(i, [&](const float* x, float* y) { run_alone(x, y, workspaces[thread]); });
        }
    };
    if (even != 0) team_.run(work);
    for (std::size_t i = even; i < batch; ++i) {
        one(i, [&](const float* x, float* y) { run_together(x, y, workspaces); });
    }
}

std::vector<double> Network::time_steps(const float* sketch, float* answers) const {
    const Borrowed workspaces(*this);
    std::vector<double> seconds(steps_.size());
    run_alone(sketch, answers, workspaces[0], seconds.data());
    return seconds;
}

void Network::run_alone(const float* sketch, float* answers, Line* workspace, double* seconds) const {
    put_in(sketch, workspace);
    Stopwatch stopwatch(seconds);
    // Values lie side by side: a step may touch those that it takes and makes.
    const auto fence = [&](auto mark, std::size_t step) {
        for (std::size_t value : steps_[step].inputs) mark(workspace + offsets_[value], shapes_[value].bytes());
        for (std::size_t value : steps_[step].outputs) mark(workspace + offsets_[value], shapes_[value].bytes());
        mark(workspace + scratch_, steps_[step].layer->scratch_bytes());
    };
    close_fence(workspace, lines_ * kLine);
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        fence(open_fence, step);
        run_step(step, {sketch, workspace}, workspace, 0, steps_[step].layer->pieces(), false);
        stopwatch.note(step);
        fence(close_fence, step);
    }
    open_fence(workspace, lines_ * kLine);
    take_out({sketch, workspace}, answers);
}

void Network::run_together(const float* sketch, float* answers, const Borrowed& workspaces) const {
    if (threads_ == 1) return run_alone(sketch, answers, workspaces[0]);
    put_in(sketch, workspaces[0]);
    std::deque<Stretches> stretches;
    for (const Step& step : steps_) stretches.emplace_back(step.layer->pieces(), static_cast<std::size_t>(threads_));
    team_.run([&](int thread) {
        for (std::size_t step = 0; step < steps_.size(); ++step) {
            bool is_used = false;
            stretches[step].share(static_cast<std::size_t>(thread), [&](std::size_t from, std::size_t to) {
                run_step(step, {sketch, workspaces[0]}, workspaces[thread], from, to, is_used);
                is_used = true;
            });
        }
    });
    take_out({sketch, workspaces[0]}, answers);
}

// Runs pieces [from, to) of a step.
void Network::run_step(std::size_t step, const Values& values, Line* scratch, std::size_t from, std::size_t to,
                       bool is_used) const {
    const auto& [layer, inputs, outputs] = steps_[step];
    std::vector<const void*> in;
    std::vector<void*> out;
    for (std::size_t value : inputs) in.push_back(find(value, values));
    for (std::size_t value : outputs) out.push_back(values.workspace + offsets_[value]);
    layer->run({in.data(), out.data(), from, to, scratch + scratch_, is_used});
}

// A sketch of one channel has the order that layers want, and is taken where it is.
const void* Network::find(std::size_t value, const Values& values) const {
    if (value == 0 && shapes_.front().channels == 1) return values.sketch;
    return values.workspace + offsets_[value];
}

void Network::put_in(const float* sketch, Line* workspace) const {
    const Shape& in = shapes_.front();
    if (in.channels == 1) return;
    auto* input = reinterpret_cast<float*>(workspace + offsets_.front());
    for (std::size_t c = 0; c < in.channels; ++c) {
        for (std::size_t place = 0; place < in.places(); ++place) {
            input[place * in.channels + c] = sketch[c * in.places() + place];
        }
    }
}

void Network::take_out(const Values& values, float* answers) const {
    const Shape& out = shapes_[answer_];
    const void* last = find(answer_, values);
    for (std::size_t c = 0; c < out.channels; ++c) {
        for (std::size_t place = 0; place < out.places(); ++place) {
            float& answer = answers[c * out.places() + place];
            if (out.is_signs) {
                answer = static_cast<const std::uint64_t*>(last)[place * out.words() + c / 64] >> (c % 64) & 1 ? 1.0f
                                                                                                               : -1.0f;
            } else {
                answer = static_cast<const float*>(last)[place * out.channels + c];
            }
        }
    }
}

}  // namespace dabnet
