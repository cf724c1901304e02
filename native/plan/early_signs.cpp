#include <cstring>
#include <limits>
#include <map>

#include "plan.h"

namespace dabnet {
namespace {

constexpr int kDeepest = 256;                              // nodes that signs are moved past, one after the other
constexpr std::size_t kMostBytes = std::size_t{64} << 20;  // of thresholds that are made on the way

// Signs of many concats could make a graph much larger: then it is left as it is.
std::size_t most_nodes(const Graph& graph) { return 4 * graph.order.size() + 16; }

// Which nodes signs can be moved past, from after them to before them: max-pools, concats, ReLUs and clamps whose users
// are all signs, or such nodes themselves.
std::vector<bool> find_passed(const Graph& graph) {
    const auto users = graph.users();
    std::vector<bool> passed(graph.nodes.size());
    for (auto value = graph.order.rbegin(); value != graph.order.rend(); ++value) {
        const Op op = graph.nodes[*value].op;
        bool can_pass = op == Op::kMaxPool || op == Op::kConcat || op == Op::kRelu || op == Op::kClamp;
        can_pass = can_pass && *value != graph.answer && !users[*value].empty();
        for (std::size_t i = 0; can_pass && i < users[*value].size(); ++i) {
            const Value user = users[*value][i];
            can_pass = passed[user] || graph.nodes[user].op == Op::kSign;
        }
        passed[*value] = can_pass;
    }
    return passed;
}

// Makes the graph in which signs are taken early.
class EarlySigns {
   public:
    EarlySigns(const Graph& graph, const std::vector<bool>& passed, PlanArrays& arrays)
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
                moved_[value] = make_signs(node.inputs[0], node.threshold, node.flip, 0);
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
        const float* threshold;
        const std::uint8_t* flip;
        Value value;
    };

    Value moved(Value value) const { return moved_[value] == kNoValue ? value : moved_[value]; }
    std::size_t channels(Value value) const { return graph_.shapes[value].channels; }

    // Adds the nodes that make the signs of a value of the old graph, as early as possible; returns the value that they
    // make. The same signs are made once.
    Value make_signs(Value value, const float* threshold, const std::uint8_t* flip, int depth) {
        const std::size_t count = channels(value);
        const auto is_same = [](const void* a, const void* b, std::size_t bytes) {
            return a == b || (a != nullptr && b != nullptr && std::memcmp(a, b, bytes) == 0);
        };
        for (const Taken& taken : taken_[value]) {
            if (is_same(taken.threshold, threshold, count * sizeof(float)) &&
                is_same(taken.flip, flip, (count + 7) / 8)) {
                return taken.value;
            }
        }
        if (depth > kDeepest || bytes_ > kMostBytes || made_.order.size() > most_nodes(graph_)) {
            gave_up_ = true;
            return value;
        }
        const Node* node = passed_[value] ? &graph_.nodes[value] : nullptr;
        const bool is_clamp = node != nullptr && (node->op == Op::kRelu || node->op == Op::kClamp);
        const Value found = is_clamp
                                ? make_signs(node->inputs[0], move_threshold(*node, count, threshold), flip, depth + 1)
                                : add(make_node(node, value, threshold, flip, depth), value);
        taken_[value].push_back({threshold, flip, found});
        return found;
    }

    // Adds a node that makes signs, of the shape of `value`; returns the value that it makes.
    Value add(Node node, Value value) {
        const auto number = static_cast<Value>(made_.nodes.size());
        made_.nodes.push_back(std::move(node));
        made_.shapes.push_back(graph_.shapes[value].as(ElementType::bit));
        made_.order.push_back(number);
        return number;
    }

    // Makes the node of `value`'s signs: `node`, if it can be passed, on the signs of its inputs, or else a sign.
    Node make_node(const Node* node, Value value, const float* threshold, const std::uint8_t* flip, int depth) {
        if (node != nullptr && node->op == Op::kMaxPool) {
            Node pool = *node;
            pool.op = Op::kSignPool;
            pool.flip = flip;
            pool.inputs[0] = make_signs(node->inputs[0], threshold, flip, depth + 1);
            return pool;
        }
        if (node != nullptr && node->op == Op::kConcat) {
            Node concat = *node;
            std::size_t first = 0;
            for (std::uint32_t& part : concat.inputs) {
                const std::size_t count = channels(part);
                const float* thresholds = threshold == nullptr ? nullptr : threshold + first;
                part =
                    make_signs(part, thresholds, flip == nullptr ? nullptr : slice_bits(flip, first, count), depth + 1);
                first += count;
                if (gave_up_) break;
            }
            return concat;
        }
        Node sign;
        sign.op = Op::kSign;
        sign.inputs = {value};
        sign.threshold = threshold;
        sign.flip = flip;
        return sign;
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
    std::vector<Value> moved_;  // for each sign of the old graph: the value that has its signs in the new one
    std::map<Value, std::vector<Taken>> taken_;  // the signs that were made of each value
    std::size_t bytes_ = 0;
    bool gave_up_ = false;
};

}  // namespace

void take_signs_early(Graph& graph, PlanArrays& arrays) {
    const std::vector<bool> passed = find_passed(graph);
    bool is_any = false;
    for (const bool is_passed : passed) is_any = is_any || is_passed;
    if (!is_any) return;
    EarlySigns early(graph, passed, arrays);
    if (early.run()) graph = early.made();
}

}  // namespace dabnet
