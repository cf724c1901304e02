#include "network.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "fence.h"
#include "parallel.h"

namespace dabnet {
namespace {

constexpr std::size_t kLine = 64;  // bytes of a cache line: values start at one

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

}  // namespace

void Budget::take(std::size_t bytes) {
    if (bytes > limit_ - taken_) throw TooLarge{limit_};
    taken_ += bytes;
}

Network::Network(Shape input, int threads, std::size_t max_memory)
    : threads_(std::max(threads, 1)), budget_(max_memory), shapes_{input} {}

std::size_t Network::add(std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs,
                         const std::vector<Shape>& outputs) {
    budget_.take((inputs.size() + outputs.size()) * sizeof(std::size_t));
    std::vector<std::size_t> values;
    for (const Shape& output : outputs) {
        values.push_back(shapes_.size());
        shapes_.push_back(output);
    }
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

Network::Workspace Network::borrow() const {
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!idle_.empty()) {
            Workspace workspace = std::move(idle_.back());
            idle_.pop_back();
            return workspace;
        }
    }
    return std::make_unique<Line[]>(lines_);
}

void Network::give_back(Workspace workspace) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(workspace));
}

void Network::run(const float* sketches, std::size_t batch, float* answers) const {
    const std::size_t workers = std::min(static_cast<std::size_t>(threads_), batch);
    std::vector<Workspace> workspaces;
    for (std::size_t i = 0; i < workers; ++i) workspaces.push_back(borrow());
    std::atomic<std::size_t> next_worker{0}, next_sketch{0};
    work_together(static_cast<int>(workers), [&] {
        const std::size_t worker = next_worker++;
        if (worker >= workers) return;
        for (std::size_t i = next_sketch++; i < batch; i = next_sketch++) {
            run_one(sketches + i * shapes_.front().count(), answers + i * this->answers(), workspaces[worker].get());
        }
    });
    for (Workspace& workspace : workspaces) give_back(std::move(workspace));
}

void Network::run_one(const float* sketch, float* answers, Line* workspace) const {
    const Shape& in = shapes_.front();
    auto* input = reinterpret_cast<float*>(workspace + offsets_.front());
    for (std::size_t c = 0; c < in.channels; ++c) {
        for (std::size_t place = 0; place < in.places(); ++place) {
            input[place * in.channels + c] = sketch[c * in.places() + place];
        }
    }
    // Values lie side by side: a step may touch those that it takes and makes.
    const auto fence = [&](auto mark, std::size_t step) {
        for (std::size_t value : steps_[step].inputs) mark(workspace + offsets_[value], shapes_[value].bytes());
        for (std::size_t value : steps_[step].outputs) mark(workspace + offsets_[value], shapes_[value].bytes());
        mark(workspace + scratch_, steps_[step].layer->scratch_bytes());
    };
    close_fence(workspace, lines_ * kLine);
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (std::size_t step = 0; step < steps_.size(); ++step) {
        inputs.clear();
        outputs.clear();
        for (std::size_t value : steps_[step].inputs) inputs.push_back(workspace + offsets_[value]);
        for (std::size_t value : steps_[step].outputs) outputs.push_back(workspace + offsets_[value]);
        fence(open_fence, step);
        steps_[step].layer->run(inputs, outputs, workspace + scratch_);
        fence(close_fence, step);
    }
    open_fence(workspace, lines_ * kLine);
    const Shape& out = shapes_[answer_];
    const void* last = workspace + offsets_[answer_];
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
