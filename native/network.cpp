#include "network.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <new>
#include <utility>

#include "fence.h"

namespace dabnet {
namespace {

constexpr std::uint64_t kLine = 64;  // bytes of a cache line: values start at one

constexpr std::uint64_t kMostPieces = UINT32_MAX;  // of a step, that WorkRanges can share

std::uint64_t lines_of(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine; }

// Where a value stands, and the last step at which it is needed.
struct Block {
    std::uint64_t from, to;
    std::size_t last;
};

// Finds the lowest gap between the values still needed at step `first`, and returns its offset. The
// blocks are in the order of their offsets, and stay so.
std::uint64_t allocate_block(std::vector<Block>& blocks, std::uint64_t lines, std::size_t first, std::size_t last) {
    const auto is_over = [&](const Block& block) { return block.last < first; };
    blocks.erase(std::remove_if(blocks.begin(), blocks.end(), is_over), blocks.end());
    std::uint64_t offset = 0;
    auto next = blocks.begin();
    for (; next != blocks.end() && next->from < offset + lines; ++next) offset = next->to;
    blocks.insert(next, {offset, offset + lines, last});
    return offset;
}

// Notes the seconds between one step and the next, if there is an array for them.
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

Network::Network(Shape input, int threads, std::uint64_t max_memory)
    : threads_(std::max(threads, 1)), pool_(threads_), budget_(max_memory), shapes_{input} {}

bool Network::add(std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs, const std::vector<Shape>& outputs,
                  std::size_t& first) {
    if (layer == nullptr || layer->pieces() > kMostPieces) return false;
    if (!budget_.take((inputs.size() + outputs.size()) * sizeof(std::size_t))) return false;
    work_ += layer->work();
    std::vector<std::size_t> values;
    for (const Shape& output : outputs) {
        values.push_back(shapes_.size());
        shapes_.push_back(output);
    }
    first = values.front();
    steps_.push_back({std::move(layer), std::move(inputs), std::move(values)});
    return true;
}

bool Network::plan(std::size_t answer) {
    answer_ = answer;
    // The input is there before all steps, the answer is needed after them.
    std::vector<std::size_t> first_use(shapes_.size()), last_use(shapes_.size());
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        for (std::size_t input : steps_[step].inputs) last_use[input] = step + 1;
        for (std::size_t output : steps_[step].outputs) first_use[output] = last_use[output] = step + 1;
    }
    last_use[answer] = steps_.size() + 1;

    std::vector<Block> blocks;
    std::uint64_t lines = 0, scratch_bytes = 0;
    for (std::size_t value = 0; value < shapes_.size(); ++value) {
        const std::uint64_t own = lines_of(shapes_[value].bytes());
        const std::uint64_t offset = allocate_block(blocks, own, first_use[value], last_use[value]);
        lines = std::max(lines, offset + own);
        if (!budget_.has_room(lines * kLine)) return false;
        offsets_.push_back(static_cast<std::size_t>(offset));
    }
    for (const BoundLayer& step : steps_) scratch_bytes = std::max(scratch_bytes, step.layer->scratch_bytes());
    scratch_ = static_cast<std::size_t>(lines);
    lines += lines_of(scratch_bytes);
    for (int i = 0; i < threads_; ++i) {
        if (!budget_.take(lines * kLine)) return false;
    }
    lines_ = static_cast<std::size_t>(lines);
    return true;
}

Network::Borrowed::Borrowed(const Network& network) : network_(network) {
    const auto count = static_cast<std::size_t>(network.threads_);
    network.mutex_.lock();
    while (workspaces_.size() < count && !network.idle_.empty()) {
        workspaces_.push_back(std::move(network.idle_.back()));
        network.idle_.pop_back();
    }
    network.mutex_.unlock();
    while (workspaces_.size() < count && is_complete_) {
        workspaces_.emplace_back(new (std::nothrow) Line[network.lines_]);
        is_complete_ = workspaces_.back() != nullptr;
    }
}

Network::Borrowed::~Borrowed() {
    if (!is_complete_) return;
    network_.mutex_.lock();
    for (Workspace& workspace : workspaces_) network_.idle_.push_back(std::move(workspace));
    network_.mutex_.unlock();
}

template <typename One>
dabnet_status Network::run_each(std::size_t batch, Stop& stop, One one) const {
    const Borrowed workspaces(*this);
    if (!workspaces.is_complete()) return DABNET_NO_MEMORY;
    // As many as come out even, each thread its own; the rest one by one, all threads together.
    const std::size_t even = batch - batch % static_cast<std::size_t>(threads_);
    std::atomic<std::size_t> next{0};
    const auto work = [&](int thread) {
        Pace pace(stop, thread == 0);
        for (std::size_t i = next++; i < even && !stop.is_set(); i = next++) {
            one(i, thread, [&](const float* x, float* y) { run_alone(x, y, workspaces[thread], pace); });
        }
    };
    if (even != 0) pool_.run(work, [&] { stop.ask(); });
    for (std::size_t i = even; i < batch && !stop.is_set(); ++i) {
        one(i, 0, [&](const float* x, float* y) { run_together(x, y, workspaces, stop); });
    }
    return stop.is_set() ? DABNET_CANCELLED : DABNET_OK;
}

dabnet_status Network::run(const float* images, std::size_t batch, float* answers, Stop& stop) const {
    const auto count = static_cast<std::size_t>(shapes_.front().count());
    return run_each(batch, stop,
                    [&](std::size_t i, int, auto run) { run(images + i * count, answers + i * this->answers()); });
}

dabnet_status Network::run_drawn(std::size_t batch, const Draw& draw, const Take& take, Stop& stop) const {
    const auto count = static_cast<std::size_t>(shapes_.front().count());
    // An image and its answers for each thread.
    std::vector<std::unique_ptr<float[]>> numbers;
    for (int i = 0; i < threads_; ++i) {
        numbers.emplace_back(new (std::nothrow) float[count + answers()]);
        if (numbers.back() == nullptr) return DABNET_NO_MEMORY;
    }
    return run_each(batch, stop, [&](std::size_t i, int thread, auto run) {
        float* image = numbers[static_cast<std::size_t>(thread)].get();
        if (!draw(i, image)) return;
        run(image, image + count);
        if (!stop.is_set()) take(i, image + count);
    });
}

dabnet_status Network::time_steps(const float* image, float* answers, double* seconds) const {
    const Borrowed workspaces(*this);
    if (!workspaces.is_complete()) return DABNET_NO_MEMORY;
    Stop never(nullptr, nullptr);
    Pace pace(never, false);
    run_alone(image, answers, workspaces[0], pace, seconds);
    return DABNET_OK;
}

void Network::run_alone(const float* image, float* answers, Line* workspace, Pace& pace, double* seconds) const {
    put_in(image, workspace);
    Stopwatch stopwatch(seconds);
    // Values lie side by side: a step may touch those that it takes and makes.
    const auto bytes = [&](std::size_t value) { return static_cast<std::size_t>(shapes_[value].bytes()); };
    const auto fence = [&](auto mark, std::size_t step) {
        for (std::size_t value : steps_[step].inputs) mark(workspace + offsets_[value], bytes(value));
        for (std::size_t value : steps_[step].outputs) mark(workspace + offsets_[value], bytes(value));
        mark(workspace + scratch_, static_cast<std::size_t>(steps_[step].layer->scratch_bytes()));
    };
    close_fence(workspace, lines_ * kLine);
    for (std::size_t step = 0; step < steps_.size() && !pace.is_stopped(); ++step) {
        fence(open_fence, step);
        const auto pieces = static_cast<std::size_t>(steps_[step].layer->pieces());
        run_step(step, {image, workspace}, workspace, 0, pieces, false, pace);
        stopwatch.note(step);
        fence(close_fence, step);
    }
    open_fence(workspace, lines_ * kLine);
    take_out({image, workspace}, answers);
}

void Network::run_together(const float* image, float* answers, const Borrowed& workspaces, Stop& stop) const {
    if (threads_ == 1) {
        Pace pace(stop, true);
        return run_alone(image, answers, workspaces[0], pace);
    }
    put_in(image, workspaces[0]);
    std::deque<WorkRanges> ranges;
    for (const BoundLayer& step : steps_) {
        ranges.emplace_back(static_cast<std::size_t>(step.layer->pieces()), static_cast<std::size_t>(threads_));
    }
    const auto work = [&](int thread) {
        Pace pace(stop, thread == 0);
        const auto wait = [&] {
            if (thread == 0) stop.ask();
        };
        for (std::size_t step = 0; step < steps_.size(); ++step) {
            bool is_used = false;
            const auto run = [&](std::size_t from, std::size_t to) {
                if (stop.is_set()) return;
                run_step(step, {image, workspaces[0]}, workspaces[thread], from, to, is_used, pace);
                is_used = true;
            };
            ranges[step].share(static_cast<std::size_t>(thread), run, wait);
        }
    };
    pool_.run(work, [&] { stop.ask(); });
    take_out({image, workspaces[0]}, answers);
}

// Runs pieces [from, to) of a step.
void Network::run_step(std::size_t step, const Values& values, Line* scratch, std::size_t from, std::size_t to,
                       bool is_used, Pace& pace) const {
    const auto& [layer, inputs, outputs] = steps_[step];
    std::vector<const void*> in;
    std::vector<void*> out;
    for (std::size_t value : inputs) in.push_back(find(value, values));
    for (std::size_t value : outputs) out.push_back(values.workspace + offsets_[value]);
    layer->run({in.data(), out.data(), from, to, scratch + scratch_, is_used, &pace});
}

// An image of one channel has the order that layers want, and is taken where it is.
const void* Network::find(std::size_t value, const Values& values) const {
    if (value == 0 && shapes_.front().channels == 1) return values.image;
    return values.workspace + offsets_[value];
}

void Network::put_in(const float* image, Line* workspace) const {
    const Shape& in = shapes_.front();
    if (in.channels == 1) return;
    const auto positions = static_cast<std::size_t>(in.positions());
    auto* input = reinterpret_cast<float*>(workspace + offsets_.front());
    for (std::size_t c = 0; c < in.channels; ++c) {
        for (std::size_t at = 0; at < positions; ++at) input[at * in.channels + c] = image[c * positions + at];
    }
}

void Network::take_out(const Values& values, float* answers) const {
    const Shape& out = shapes_[answer_];
    const void* last = find(answer_, values);
    const auto positions = static_cast<std::size_t>(out.positions());
    for (std::size_t c = 0; c < out.channels; ++c) {
        for (std::size_t at = 0; at < positions; ++at) {
            float& answer = answers[c * positions + at];
            if (out.is_bits()) {
                const std::uint64_t word = static_cast<const std::uint64_t*>(last)[at * out.words() + c / 64];
                answer = word >> (c % 64) & 1 ? 1.0f : -1.0f;
            } else if (out.is_whole()) {
                const int byte = static_cast<const std::uint8_t*>(last)[at * out.channels + c];
                answer = static_cast<float>(byte - out.zero);
            } else {
                answer = static_cast<const float*>(last)[at * out.channels + c];
            }
        }
    }
}

}  // namespace dabnet
