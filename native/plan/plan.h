// Which nodes the runtime fuses into one step, and which work on bits.
//
// A convolution has its numbers at hand one position at a time. So what follows it and needs nothing else is done there
// and then, as its epilogue: adding another value, an affine, an activation, another affine, and signs. And where only
// signs of a value are wanted, they are taken before a max-pool, a concat or a ReLU instead of after it, and these work
// on bits: the largest number under a window reaches a threshold where any of them does. Whole numbers likewise are
// made before a max-pool or a concat: rounding keeps the order of numbers. Nothing changes but what is written to
// memory in between.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../model/model.h"

namespace dabnet {

using Value = std::uint32_t;
constexpr Value kNoValue = UINT32_MAX;

// Nodes in order, each by the number of the value that it makes; value 0 is the input.
struct Graph {
    std::vector<Value> order;
    std::vector<Node> nodes;    // by value
    std::vector<Shape> shapes;  // by value
    Value answer = kNoValue;

    // The values that are made of each value, in order.
    std::vector<std::vector<Value>> users() const;
};

// Arrays that a plan had to make.
struct PlanArrays {
    std::vector<std::unique_ptr<float[]>> floats;
    std::vector<std::unique_ptr<std::uint8_t[]>> bytes;
};

// A node and the nodes after it that are done with it: the sum, then `signs` of that, then `before`, the activation and
// `after`, then `late_signs` and whole numbers. With a pool, that comes before these.
struct Step {
    const Node* node = nullptr;
    Value value = kNoValue;  // that the node makes
    Value added = kNoValue;
    const Node* before = nullptr;  // an affine
    const Node* activation = nullptr;
    const Node* after = nullptr;  // an affine
    const Node* pool = nullptr;
    Value real = kNoValue;  // the value of real numbers that it makes, if any is wanted
    std::vector<std::pair<Value, const Node*>> signs, late_signs, quantized;

    // All values that it makes, in order.
    std::vector<Value> values() const;
};

// The graph has to outlive its steps, and the model's arrays both.
struct Plan {
    Graph graph;
    PlanArrays arrays;
    std::vector<Step> steps;
};

Plan make_plan(const Model& model);

// Moves signs to before the pools, concats and activations of which only signs are wanted, and quantizes to before the
// pools and concats of which only signs and whole numbers are.
void round_early(Graph& graph, PlanArrays& arrays);

std::vector<Step> fuse(const Graph& graph);

// What a step is and what it makes, such as "one-bit conv 3x3 + add + RPReLU + sign, to 64x56x56".
std::string describe(const Step& step, const Shape& output);

}  // namespace dabnet
