#include <cstring>
#include <limits>
#include <map>

#include "plan.h"

namespace dabnet {
namespace {

constexpr int kDeepest = 256;                              // nodes that roundings move past, one after the other
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of thresholds that are made on the way

// Roundings of many concats could make a graph much larger: then it is left as it is.
std::size_t most_nodes(const Graph& graph) { return 4 * graph.order.size() + 16; }

// A convolution of real weights pools its numbers itself, and faster than whole numbers are pooled after it.
bool is_pooled_by_conv(const Graph& graph, const Node& pool) {
    const Node* before = &graph.nodes[pool.inputs[0]];
    while (!before->inputs.empty() && (before->is_activation() || before->op == Op::kAffine)) {
        before = &graph.nodes[before->inputs[0]];
    }
    return before->op == Op::kConv && before->bits == nullptr;
}

// Which nodes signs and whole numbers can be moved past, from after them to before them: max-pools and concats whose
// users are all signs, quantizes or such nodes themselves; and, for signs alone, ReLUs and clamps.
std::vector<bool> find_passed(const Graph& graph) {
    const auto users = graph.users();
    std::vector<bool> passed(graph.nodes.size()), are_only_signs(graph.nodes.size(), true);
    for (auto value = graph.order.rbegin(); value != graph.order.rend(); ++value) {
        const Node& node = graph.nodes[*value];
        bool can_pass = *value != graph.answer && !users[*value].empty();
        for (const Value user : users[*value]) {
            const Op op = graph.nodes[user].op;
            can_pass = can_pass && (passed[user] || op == Op::kSign || op == Op::kQuantize);
            if (op == Op::kQuantize || !are_only_signs[user]) are_only_signs[*value] = false;
        }
        const bool only_signs = are_only_signs[*value];
        if (node.op == Op::kMaxPool) {
            can_pass = can_pass && (only_signs || !is_pooled_by_conv(graph, node));
        } else if (node.op != Op::kConcat) {
            can_pass = can_pass && only_signs && (node.op == Op::kRelu || node.op == Op::kClamp);
        }
        passed[*value] = can_pass;
    }
    return passed;
}

// What is taken of a value: signs, or, with a node, the whole numbers that it makes.
struct Rounding {
    const float* threshold;
    const std::uint8_t* flip;
    const Node* quantize = nullptr;
};

// Makes the graph in which signs and whole numbers are taken early.
class EarlyRounding {
   public:
    EarlyRounding(const Graph& graph, const std::vector<bool>& passed, PlanArrays& arrays)
        : graph_(graph), passed_(passed), arrays_(arrays) {
        made_.nodes.resize(graph.nodes.size());
        made_.shapes = graph.shapes;
        moved_.resize(graph.nodes.size(), kNoValue);
    }

    // False if the new graph would be too large.
    bool run() {
        for (const Value value : graph_.order) {
            const Node& node = graph_.nodes[value];
            if (node.op == Op::kSign) {
                moved_[value] = make_rounded(node.inputs[0], {node.threshold, node.flip}, 0);
            } else if (node.op == Op::kQuantize) {
                moved_[value] = make_rounded(node.inputs[0], {nullptr, nullptr, &node}, 0);
            } else if (!passed_[value]) {
                Node kept = node;
                for (std::uint32_t& input : kept.inputs) input = moved(input);
                made_.nodes[value] = std::move(kept);
                made_.order.push_back(value);
            }
            if (gave_up_ || made_.order.size() > most_nodes(graph_)) return false;
        }
        made_.answer = moved(graph_.answer);
        return true;
    }
    Graph&& made() { return std::move(made_); }

   private:
    struct Taken {
        Rounding rounding;
        Value value;
    };

    Value moved(Value value) const { return moved_[value] == kNoValue ? value : moved_[value]; }
    std::size_t channels(Value value) const { return graph_.shapes[value].channels; }

    static bool are_same(const Rounding& a, const Rounding& b, std::size_t channels) {
        const auto is_same = [](const void* x, const void* y, std::size_t bytes) {
            return x == y || (x != nullptr && y != nullptr && std::memcmp(x, y, bytes) == 0);
        };
        if (a.quantize != nullptr && b.quantize != nullptr) {
            return a.quantize->factor == b.quantize->factor && a.quantize->low == b.quantize->low &&
                   a.quantize->high == b.quantize->high;
        }
        return a.quantize == b.quantize && is_same(a.threshold, b.threshold, channels * sizeof(float)) &&
               is_same(a.flip, b.flip, (channels + 7) / 8);
    }

    // Adds the nodes that make the signs or whole numbers of a value of the old graph, as early as possible; returns
    // the value that they make. The same ones are made once.
    Value make_rounded(Value value, const Rounding& rounding, int depth) {
        const std::size_t count = channels(value);
        for (const Taken& taken : taken_[value]) {
            if (are_same(taken.rounding, rounding, count)) return taken.value;
        }
        if (depth > kDeepest || bytes_ > kMostBytes || made_.order.size() > most_nodes(graph_)) {
            gave_up_ = true;
            return value;
        }
        const Node* node = passed_[value] ? &graph_.nodes[value] : nullptr;
        const bool is_clamp = node != nullptr && (node->op == Op::kRelu || node->op == Op::kClamp);
        const Value found =
            is_clamp ? make_rounded(node->inputs[0], {move_threshold(*node, count, rounding.threshold), rounding.flip},
                                    depth + 1)
                     : add(make_node(node, value, rounding, depth), value, rounding.quantize);
        taken_[value].push_back({rounding, found});
        return found;
    }

    // Adds a node that makes signs or, as `quantize` does, whole numbers, of the shape of `value`; returns the value.
    Value add(Node node, Value value, const Node* quantize) {
        const auto number = static_cast<Value>(made_.nodes.size());
        const Shape& shape = graph_.shapes[value];
        made_.nodes.push_back(std::move(node));
        made_.shapes.push_back(quantize == nullptr ? shape.as(ElementType::bit) : quantize->quantized(shape));
        made_.order.push_back(number);
        return number;
    }

    // Makes the node of what is taken of `value`: `node`, if it can be passed, on what is taken of its inputs, or else
    // a sign or a quantize.
    Node make_node(const Node* node, Value value, const Rounding& rounding, int depth) {
        const auto& [threshold, flip, quantize] = rounding;
        if (node != nullptr && node->op == Op::kMaxPool) {
            Node pool = *node;
            pool.op = quantize == nullptr ? Op::kSignPool : Op::kWholePool;
            pool.flip = flip;
            pool.inputs[0] = make_rounded(node->inputs[0], rounding, depth + 1);
            return pool;
        }
        if (node != nullptr && node->op == Op::kConcat) {
            Node concat = *node;
            std::size_t first = 0;
            for (std::uint32_t& part : concat.inputs) {
                const std::size_t count = channels(part);
                part = make_rounded(part,
                                    {threshold == nullptr ? nullptr : threshold + first,
                                     flip == nullptr ? nullptr : slice_bits(flip, first, count), quantize},
                                    depth + 1);
                first += count;
                if (gave_up_) break;
            }
            return concat;
        }
        Node made = quantize == nullptr ? Node{} : *quantize;
        if (quantize == nullptr) made.op = Op::kSign;
        made.inputs = {value};
        made.threshold = threshold;
        made.flip = flip;
        return made;
    }

    // The thresholds of a clamp's input that make the same signs as these of its output.
    const float* move_threshold(const Node& clamp, std::size_t count, const float* after) {
        constexpr float kInfinity = std::numeric_limits<float>::infinity();
        auto before = std::make_unique<float[]>(count);
        const auto low = static_cast<float>(clamp.low), high = static_cast<float>(clamp.high);
        for (std::size_t i = 0; i < count; ++i) {
            const float threshold = after == nullptr ? 0.0f : after[i];
            before[i] = threshold <= low ? -kInfinity : threshold > high ? kInfinity : threshold;
        }
        bytes_ += count * sizeof(float);
        arrays_.floats.push_back(std::move(before));
        return arrays_.floats.back().get();
    }

    const std::uint8_t* slice_bits(const std::uint8_t* bits, std::size_t first, std::size_t count) {
        if (first % 8 == 0 && count % 8 == 0) return bits + first / 8;
        auto slice = std::make_unique<std::uint8_t[]>((count + 7) / 8);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t at = first + i;
            slice[i / 8] = static_cast<std::uint8_t>(slice[i / 8] | (bits[at / 8] >> at % 8 & 1) << i % 8);
        }
        bytes_ += (count + 7) / 8;
        arrays_.bytes.push_back(std::move(slice));
        return arrays_.bytes.back().get();
    }

    const Graph& graph_;
    const std::vector<bool>& passed_;
    PlanArrays& arrays_;
    Graph made_;
    std::vector<Value> moved_;  // for each sign or quantize of the old graph: the value that it makes in the new one
    std::map<Value, std::vector<Taken>> taken_;  // what was made of each value
    std::size_t bytes_ = 0;
    bool gave_up_ = false;
};

}  // namespace

void round_early(Graph& graph, PlanArrays& arrays) {
    const std::vector<bool> passed = find_passed(graph);
    bool is_any = false;
    for (const bool is_passed : passed) is_any = is_any || is_passed;
    for (const Node& node : graph.nodes) is_any = is_any || node.op == Op::kQuantize;  // which may be alike
    if (!is_any) return;
    EarlyRounding early(graph, passed, arrays);
    if (early.run()) graph = early.made();
}

}  // namespace dabnet
