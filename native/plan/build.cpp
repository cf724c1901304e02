#include "build.h"

#include "../layers/layers.h"

namespace dabnet {
namespace {

Window window_over(const Shape& shape, const Node& node) {
    const auto axis = [&](std::size_t size, int i) {
        const std::size_t span = node.dilation[i] * (node.kernel[i] - 1) + 1;
        const std::size_t positions = (size + node.padding[i] + node.padding[i + 2] - span) / node.stride[i] + 1;
        return Axis{size, positions, node.kernel[i], node.stride[i], node.padding[i], node.dilation[i]};
    };
    return {axis(shape.height, 0), axis(shape.width, 1)};
}

class NetworkBuilder {
   public:
    NetworkBuilder(const Graph& graph, const Kernels& kernels, Network& network)
        : graph_(graph), network_(network), builder_{kernels, network.budget()}, at_(graph.nodes.size()) {}

    bool add(const Step& step) { return step.node->op == Op::kConv ? add_conv(step) : add_other(step); }
    std::size_t at(Value value) const { return at_[value]; }

   private:
    const Shape& shape(Value value) const { return network_.shape(at_[value]); }

    static AffineArrays arrays_of(const Node* affine) {
        return affine == nullptr ? AffineArrays{} : AffineArrays{affine->scale, affine->shift};
    }

    static Epilogue epilogue_of(const Step& step) {
        Epilogue epilogue;
        epilogue.filters = step.node->filters;
        epilogue.adds = step.added != kNoValue;
        epilogue.makes_real = step.real != kNoValue;
        epilogue.before = arrays_of(step.before);
        epilogue.after = arrays_of(step.after);
        if (step.activation != nullptr && step.activation->op == Op::kPrelu) {
            epilogue.slope = step.activation->slope;
        } else if (step.activation != nullptr) {
            epilogue.low = static_cast<float>(step.activation->low);
            epilogue.high = static_cast<float>(step.activation->high);
        }
        for (const auto* signs : {&step.signs, &step.late_signs}) {
            for (const auto& [value, sign] : *signs) {
                epilogue.signs[epilogue.signs_count++] = {sign->threshold, sign->flip, nullptr};
            }
        }
        epilogue.early_signs = step.signs.size();
        for (const auto& [value, quantize] : step.quantized) {
            epilogue.quantized[epilogue.quantized_count++] = {static_cast<float>(quantize->factor),
                                                              static_cast<float>(quantize->low),
                                                              static_cast<float>(quantize->high), nullptr};
        }
        return epilogue;
    }

    bool add_conv(const Step& step) {
        const Node& node = *step.node;
        const Shape& input = shape(node.inputs[0]);
        const Convolution convolution{input,
                                      window_over(input, node),
                                      node.filters,
                                      node.groups,
                                      node.pad_value != 0,
                                      node.weight,
                                      node.int8,
                                      node.bits,
                                      node.scale,
                                      node.offset,
                                      node.bias};
        Shape output = convolution.output();
        Window pool{};
        if (step.pool != nullptr) {
            pool = window_over(output, *step.pool);
            output = {node.filters, pool.height.positions, pool.width.positions};
        }
        auto layer = make_convolution(builder_, convolution, epilogue_of(step), step.pool == nullptr ? nullptr : &pool);
        std::vector<Shape> outputs;
        if (step.real != kNoValue) outputs.push_back(output);
        outputs.resize(step.values().size() - step.quantized.size(), output.as(ElementType::bit));
        for (const auto& [value, quantize] : step.quantized) outputs.push_back(quantize->quantized(output));
        std::vector<std::size_t> inputs{at_[node.inputs[0]]};
        if (step.added != kNoValue) inputs.push_back(at_[step.added]);
        return put(step, std::move(layer), std::move(inputs), outputs);
    }

    bool add_other(const Step& step) {
        const Node& node = *step.node;
        std::vector<std::size_t> inputs;
        std::vector<Shape> shapes;
        for (const Value value : node.inputs) {
            inputs.push_back(at_[value]);
            shapes.push_back(shape(value));
        }
        return put(step, make(node, shapes), std::move(inputs), {graph_.shapes[step.value]});
    }

    std::unique_ptr<Layer> make(const Node& node, const std::vector<Shape>& inputs) {
        const Shape& input = inputs[0];
        switch (node.op) {
            case Op::kSign:
                return make_sign(builder_, input, node.threshold, node.flip);
            case Op::kQuantize:
                return make_quantize(builder_, input, static_cast<float>(node.factor), static_cast<float>(node.low),
                                     static_cast<float>(node.high));
            case Op::kWholePool:
                return make_whole_pool(builder_, input, window_over(input, node));
            case Op::kSignPool:
                return make_sign_pool(builder_, input, window_over(input, node), node.flip);
            case Op::kAffine:
                return make_affine(builder_, input, node.scale, node.shift);
            case Op::kRelu:
            case Op::kClamp:
                return make_clamp(input, static_cast<float>(node.low), static_cast<float>(node.high));
            case Op::kPrelu:
                return make_prelu(builder_, input, node.slope);
            case Op::kMaxPool:
                return make_max_pool(builder_, input, window_over(input, node));
            case Op::kAvgPool:
                return make_average_pool(builder_, input, window_over(input, node), node.count_padding != 0);
            case Op::kAdaptiveMaxPool:
            case Op::kAdaptiveAvgPool:
                return make_adaptive_pool(builder_, input, node.size[0], node.size[1], node.op == Op::kAdaptiveMaxPool);
            case Op::kAdd:
                return make_add(input);
            case Op::kConcat:
                return input.is_bits()    ? make_sign_concat(builder_, inputs)
                       : input.is_whole() ? make_whole_concat(builder_, inputs)
                                          : make_concat(builder_, inputs);
            case Op::kFlatten:
                return make_flatten(input);
            case Op::kConv:
                break;
        }
        return nullptr;
    }

    bool put(const Step& step, std::unique_ptr<Layer> layer, std::vector<std::size_t> inputs,
             const std::vector<Shape>& outputs) {
        std::size_t first = 0;
        if (!network_.add(std::move(layer), std::move(inputs), outputs, first)) return false;
        for (const Value value : step.values()) at_[value] = first++;
        return true;
    }

    const Graph& graph_;
    Network& network_;
    Builder builder_;
    std::vector<std::size_t> at_;  // the number of each value of the plan among the network's
};

}  // namespace

std::unique_ptr<Network> build_network(const Plan& plan, const Kernels& kernels, int threads, std::uint64_t max_memory,
                                       std::vector<std::string>& steps) {
    auto network = std::make_unique<Network>(plan.graph.shapes[0], threads, max_memory);
    NetworkBuilder builder(plan.graph, kernels, *network);
    for (const Step& step : plan.steps) {
        if (!builder.add(step)) return nullptr;
        steps.push_back(describe(step, network->shape(builder.at(step.values().front()))));
        if (network->layer(network->steps() - 1).is_general()) steps.back() += ", on the slow general path";
    }
    return network->plan(builder.at(plan.graph.answer)) ? std::move(network) : nullptr;
}

}  // namespace dabnet
