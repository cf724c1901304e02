#include "../kernels/kernels.h"
#include "../layers/window.h"
#include "plan.h"

namespace dabnet {
namespace {

constexpr std::size_t kMostPooledRows = 16;  // of a convolution that a pool keeps: pieces stay small

// Walks over the nodes in order; each convolution takes in what follows it.
class Fusing {
   public:
    explicit Fusing(const Graph& graph)
        : graph_(graph), users_(graph.users()), rank_(graph.nodes.size()), is_done_(graph.nodes.size()) {
        for (std::size_t i = 0; i < graph.order.size(); ++i) rank_[graph.order[i]] = i + 1;
    }

    std::vector<Step> run() {
        std::vector<Step> steps;
        for (const Value value : graph_.order) {
            if (is_done_[value]) continue;
            Step step;
            step.node = &graph_.nodes[value];
            step.value = step.real = value;
            if (step.node->op == Op::kConv) fuse_conv(step);
            steps.push_back(std::move(step));
        }
        return steps;
    }

   private:
    const Node& node(Value value) const { return graph_.nodes[value]; }

    // The user of a value that has one, and is not the answer; else kNoValue.
    Value only_user(Value value) const {
        return value != graph_.answer && users_[value].size() == 1 ? users_[value][0] : kNoValue;
    }
    bool is(Value value, Op op) const { return value != kNoValue && node(value).op == op; }

    void fuse_conv(Step& step) {
        Value last = add_sum(step);
        is_done_[last] = true;
        Wanted wanted = take_signs(last, step.signs, step);
        const bool goes_on = wanted.users == 1 && wanted.user != kNoValue && follow_chain(step, wanted.user, last);
        if (fuse_pool(step, last) || goes_on) wanted = take_signs(last, step.late_signs, step);
        wanted.users -= take_quantized(last, step);
        const bool makes_others = !step.signs.empty() || !step.late_signs.empty() || !step.quantized.empty();
        step.real = wanted.users != 0 || !makes_others ? last : kNoValue;
    }

    // Fuses the sum that the convolution's value goes into, if the other term is made before; returns the sum's value.
    Value add_sum(Step& step) {
        const Value user = only_user(step.value);
        if (!is(user, Op::kAdd)) return step.value;
        Value other = step.value;
        for (const Value input : node(user).inputs) {
            if (input != step.value) other = input;
        }
        if (other == step.value || rank_[other] >= rank_[step.value]) return step.value;
        step.added = other;
        return user;
    }

    // Fuses affine, activation, affine, each of which may be missing, as long as nobody else needs a value between
    // them. False if there are none.
    bool follow_chain(Step& step, Value next, Value& last) {
        const Value start = last;
        const auto go_on = [&](const Node*& done) {
            done = &node(next);
            is_done_[next] = true;
            last = next;
            next = only_user(next);
        };
        if (is(next, Op::kAffine)) go_on(step.before);
        if (next != kNoValue && node(next).is_activation()) {
            go_on(step.activation);
            if (is(next, Op::kAffine)) go_on(step.after);
        }
        return last != start;
    }

    // Fuses a max-pool after a convolution of real weights, if nobody else needs the values before it.
    bool fuse_pool(Step& step, Value& last) {
        const Value user = only_user(last);
        if (!is(user, Op::kMaxPool) || step.node->bits != nullptr || step.added != kNoValue || !step.signs.empty()) {
            return false;
        }
        const Node& pool = node(user);
        if ((pool.kernel[0] - 1) * pool.dilation[0] >= kMostPooledRows) return false;
        step.pool = &pool;
        is_done_[user] = true;
        last = user;
        return true;
    }

    // Who else needs a value that a step makes: how many users, the answer counted as one, and the last of them.
    struct Wanted {
        std::size_t users;
        Value user;
    };

    // Fuses the signs of a value, as many as an epilogue has room for.
    Wanted take_signs(Value value, std::vector<std::pair<Value, const Node*>>& signs, const Step& step) {
        Wanted wanted{value == graph_.answer ? std::size_t{1} : 0, kNoValue};
        for (const Value user : users_[value]) {
            if (is(user, Op::kSign) && step.signs.size() + step.late_signs.size() < kMostSigns) {
                signs.emplace_back(user, &node(user));
                is_done_[user] = true;
            } else {
                ++wanted.users;
                wanted.user = user;
            }
        }
        return wanted;
    }

    // Lets the step make whole numbers of its last value; returns how many of its users that were.
    std::size_t take_quantized(Value last, Step& step) {
        for (const Value user : users_[last]) {
            if (!is(user, Op::kQuantize) || step.quantized.size() == kMostQuantized) continue;
            step.quantized.emplace_back(user, &node(user));
            is_done_[user] = true;
        }
        return step.quantized.size();
    }

    const Graph& graph_;
    std::vector<std::vector<Value>> users_;
    std::vector<std::size_t> rank_;  // of each value: when it is made; the input's is 0
    std::vector<bool> is_done_;
};

const char* name_of_step(const Node& node) {
    switch (node.op) {
        case Op::kConv:
            return node.bits == nullptr ? "real conv" : "one-bit conv";
        case Op::kMaxPool:
        case Op::kAdaptiveMaxPool:
            return "max-pool";
        case Op::kAvgPool:
        case Op::kAdaptiveAvgPool:
            return "mean pool";
        case Op::kSignPool:
            return "pool of signs";
        case Op::kWholePool:
            return "pool of whole numbers";
        case Op::kRelu:
            return "ReLU";
        case Op::kPrelu:
            return "PReLU";
        default:
            return name_of(node.op);
    }
}

}  // namespace

std::vector<std::vector<Value>> Graph::users() const {
    std::vector<std::vector<Value>> users(nodes.size());
    for (const Value value : order) {
        for (const Value input : nodes[value].inputs) {
            if (users[input].empty() || users[input].back() != value) users[input].push_back(value);
        }
    }
    return users;
}

std::vector<Value> Step::values() const {
    std::vector<Value> values;
    if (real != kNoValue) values.push_back(real);
    for (const auto& [value, sign] : signs) values.push_back(value);
    for (const auto& [value, sign] : late_signs) values.push_back(value);
    for (const auto& [value, quantize] : quantized) values.push_back(value);
    return values;
}

Plan make_plan(const Model& model) {
    Plan plan;
    plan.graph.nodes.emplace_back();  // the input's
    for (const Node& node : model.nodes) {
        plan.graph.order.push_back(static_cast<Value>(plan.graph.nodes.size()));
        plan.graph.nodes.push_back(node);
    }
    plan.graph.shapes = model.shapes;
    plan.graph.answer = static_cast<Value>(model.nodes.size());
    round_early(plan.graph, plan.arrays);
    plan.steps = fuse(plan.graph);
    return plan;
}

std::vector<Step> fuse(const Graph& graph) { return Fusing(graph).run(); }

std::string describe(const Step& step, const Shape& output) {
    const Node& node = *step.node;
    std::string text = name_of_step(node);
    if (node.is_windowed()) text += " " + std::to_string(node.kernel[0]) + "x" + std::to_string(node.kernel[1]);
    if (step.added != kNoValue) text += " + add";
    const bool is_rprelu = step.before != nullptr && step.after != nullptr && step.activation->op == Op::kPrelu;
    if (is_rprelu) {
        text += " + RPReLU";
    } else {
        if (step.before != nullptr) text += " + affine";
        if (step.activation != nullptr) text += std::string(" + ") + name_of_step(*step.activation);
        if (step.after != nullptr) text += " + affine";
    }
    if (step.pool != nullptr) text += " + max-pool";
    if (!step.signs.empty() || !step.late_signs.empty()) text += " + sign";
    if (!step.quantized.empty()) text += " + quantize";
    return text + ", to " + std::to_string(output.channels) + "x" + std::to_string(output.height) + "x" +
           std::to_string(output.width);
}

}  // namespace dabnet
