// What makes sense: references, shapes and arrays of each node. Whoever passes here may be given pointers.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../layers/window.h"
#include "../values.h"
#include "model.h"
#include "tensors.h"
#include "text.h"

namespace dabnet {
namespace {

static_assert(sizeof(float) == 4 && std::numeric_limits<float>::is_iec559);
#if defined(__BYTE_ORDER__)
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files and bits are little-endian");
#endif

constexpr std::uint64_t kMostOneBitTaps = std::uint64_t{1} << 24;  // float32 counts no farther
constexpr std::uint64_t kMostWholeTaps = kMostOneBitTaps / 256;    // of whole numbers up to 255

std::string text(std::uint64_t number) { return std::to_string(number); }

const char* name_of_numbers(const Shape& shape) {
    return shape.is_bits() ? "signs" : shape.is_whole() ? "whole numbers" : "real numbers";
}

std::string text(const Shape& shape) {
    return text(shape.channels) + "x" + text(shape.height) + "x" + text(shape.width) +
           (shape.type == ElementType::f32 ? "" : std::string(" ") + name_of_numbers(shape));
}

// Checks one node; what is wrong with it is left without the name of the node.
class NodeCheck {
   public:
    NodeCheck(Container& container, Model& model, std::size_t at)
        : container_(container), model_(model), node_(model.nodes[at]), at_(at) {}

    bool run() { return check_inputs() && check_arrays_are_there() && make_shape() && check_sides() && take_arrays(); }

    std::string wrong;
    Shape shape{};

   private:
    bool fail(std::string what) {
        wrong = std::move(what);
        return false;
    }
    const Shape& input(std::size_t i = 0) const { return model_.shapes[node_.inputs[i]]; }

    bool check_inputs() {
        const auto& inputs = node_.inputs;
        if (inputs.empty() || *std::max_element(inputs.begin(), inputs.end()) > at_) {
            std::string values = "[";
            for (std::size_t i = 0; i < inputs.size() && values.size() < 80; ++i) {
                values += (i == 0 ? "" : ", ") + text(inputs[i]);
            }
            return fail("it takes values " + cut(values + "]", 80) + ", and there are 0 to " + text(at_));
        }
        if (inputs.size() != 1 && node_.op != Op::kAdd && node_.op != Op::kConcat) {
            return fail("it takes one value, not " + text(inputs.size()));
        }
        return true;
    }

    const Tensor* tensor(const char* name) { return container_.find(text(at_) + "." + name); }

    bool check_arrays_are_there() {
        if (node_.op == Op::kAffine && (tensor("scale") == nullptr || tensor("shift") == nullptr)) {
            return fail("it needs 'scale' and 'shift'");
        }
        if (node_.op == Op::kPrelu && tensor("slope") == nullptr) return fail("it needs 'slope'");
        return true;
    }

    // Only a convolution of one-bit weights takes others.
    bool check_real() {
        return input().type == ElementType::f32 ||
               fail(std::string("it takes real numbers, and gets ") + name_of_numbers(input()));
    }

    std::string all_inputs() const {
        std::string shapes;
        for (std::size_t i = 0; i < node_.inputs.size() && shapes.size() < 80; ++i) {
            shapes += (i == 0 ? "" : " and ") + text(input(i));
        }
        return cut(shapes, 80);
    }

    bool make_shape() {
        switch (node_.op) {
            case Op::kConv:
                return check_conv();
            case Op::kMaxPool:
            case Op::kAvgPool:
                return check_pool();
            case Op::kAdd:
                if (node_.inputs.size() != 2 || !(input(0) == input(1))) {
                    return fail("it adds two values of one shape, not " + all_inputs());
                }
                break;
            case Op::kConcat:
                return check_concat();
            case Op::kClamp:
                if (!(-3.4e38 <= node_.low && node_.low <= node_.high && node_.high <= 3.4e38)) {
                    return fail("it cannot clamp to [" + decimal(node_.low) + ", " + decimal(node_.high) + "]");
                }
                break;
            default:
                break;
        }
        if (!check_real()) return false;
        shape = input();
        if (node_.op == Op::kSign) shape.type = ElementType::bit;
        if (node_.op == Op::kQuantize) return check_quantize();
        if (node_.op == Op::kAdaptiveMaxPool || node_.op == Op::kAdaptiveAvgPool) {
            shape.height = node_.size[0];
            shape.width = node_.size[1];
        }
        if (node_.op == Op::kFlatten) return make_flat();
        return true;
    }

    bool check_quantize() {
        if (model_.version < 3) return fail("whole numbers need version 3 of the format");
        const double low = node_.low, high = node_.high;
        if (!(-255 <= low && low <= 0 && 0 <= high && high - low >= 1 && high - low <= 255) || low != std::floor(low) ||
            high != std::floor(high)) {
            return fail("it cannot round to whole numbers of [" + decimal(low) + ", " + decimal(high) + "]");
        }
        const auto factor = static_cast<float>(node_.factor);
        if (!(factor > 0) || !std::isfinite(factor)) return fail("its scale cannot be " + decimal(node_.factor));
        shape = node_.quantized(input());
        return true;
    }

    bool make_flat() {
        if (input().count() > kLargestSide) return too_large(text(input().count()) + "x1x1");
        shape = {static_cast<std::size_t>(input().count()), 1, 1};
        return true;
    }

    bool too_large(const std::string& what) {
        return fail("it would make " + what + ", and a side has 1 to " + grouped(kLargestSide));
    }

    bool check_sides() {
        for (const std::size_t side : {shape.channels, shape.height, shape.width}) {
            if (side < 1 || side > kLargestSide) return too_large(text(shape));
        }
        return true;
    }

    bool check_concat() {
        std::uint64_t channels = 0;
        for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
            if (!(input(i).as(ElementType::f32) == Shape{input(i).channels, input().height, input().width}) ||
                input(i).type != input().type) {
                return fail("it concatenates maps of one size, not " + all_inputs());
            }
            channels += input(i).channels;
        }
        if (!check_real()) return false;
        shape = input();
        shape.channels = static_cast<std::size_t>(std::min<std::uint64_t>(channels, UINT32_MAX));
        return true;
    }

    bool check_conv() {
        const std::size_t channels = input().channels, groups = node_.groups, filters = node_.filters;
        if (filters < 1 || groups < 1) return fail("filters and groups are at least 1");
        if (channels % groups != 0 || filters % groups != 0) {
            return fail(text(groups) + " groups do not divide " + text(channels) + " channels and " + text(filters) +
                        " filters");
        }
        if (node_.pad_value > 1 || (node_.pad_value == 1 && !input().is_bits())) {
            return fail("a padded tap cannot hold " + text(node_.pad_value) + " here");
        }
        const bool has_weight = tensor("weight") != nullptr, has_int8 = tensor("int8") != nullptr;
        const bool has_bits = tensor("bits") != nullptr;
        if (has_weight + has_int8 + has_bits != 1 || has_weight == (tensor("scale") != nullptr)) {
            return fail("it needs either 'weight', or 'bits' and 'scale'");
        }
        if (!has_bits && (input().type != ElementType::f32 || tensor("middle") != nullptr)) {
            return fail("weights of " + std::string(has_int8 ? "8" : "32") +
                        " bits take real numbers, and have no 'middle'");
        }
        if (has_int8 && model_.version < 2) return fail("weights of 8 bits need version 2 of the format");
        const std::uint64_t most = input().is_whole() ? kMostWholeTaps : kMostOneBitTaps;
        if (has_bits && taps() > most) {
            return fail("a one-bit filter" + std::string(input().is_whole() ? " of whole numbers" : "") +
                        " has more than " + grouped(most) + " weights");
        }
        if (!make_positions()) return false;
        shape.channels = filters;
        return true;
    }

    std::uint64_t taps() const {
        return std::uint64_t{node_.kernel[0]} * node_.kernel[1] * (input().channels / node_.groups);
    }

    bool check_pool() {
        if (node_.count_padding > 1) return fail("count_padding is 0 or 1, not " + text(node_.count_padding));
        if (!check_real() || !make_positions()) return false;
        shape.channels = input().channels;
        return check_taps(0, "height", input().height, shape.height) &&
               check_taps(1, "width", input().width, shape.width);
    }

    bool make_positions() {
        for (const auto* sizes : {node_.kernel, node_.stride, node_.dilation}) {
            if (sizes[0] < 1 || sizes[1] < 1) {
                return fail("kernel, stride and dilation are at least 1, and padding at least 0");
            }
        }
        return count_positions(0, "height", input().height, shape.height) &&
               count_positions(1, "width", input().width, shape.width);
    }

    bool count_positions(std::size_t axis, const char* side, std::size_t size, std::size_t& positions) {
        const std::uint64_t before = node_.padding[axis], after = node_.padding[axis + 2];
        const std::uint64_t span = std::uint64_t{node_.dilation[axis]} * (node_.kernel[axis] - 1) + 1;
        const std::uint64_t room = size + before + after;
        if (room < span) {
            return fail("a window of " + text(span) + " does not fit into a " + side + " of " + text(size) +
                        " with padding [" + text(before) + ", " + text(after) + "]");
        }
        positions = static_cast<std::size_t>((room - span) / node_.stride[axis] + 1);
        return true;
    }

    // Refuses a pool with a window that sees nothing but padding.
    bool check_taps(std::size_t i, const char* side, std::size_t size, std::size_t positions) {
        if (positions > kLargestSide) {
            return fail(std::string("it would make a ") + side + " of " + grouped(positions) +
                        ", and a side has 1 to " + grouped(kLargestSide));
        }
        const Axis axis{size, positions, node_.kernel[i], node_.stride[i], node_.padding[i], node_.dilation[i]};
        for (std::size_t position = 0; position < positions; ++position) {
            if (axis.first(position) < axis.end(position)) continue;
            return fail(std::string("a window of it sees nothing but padding along its ") + side);
        }
        return true;
    }

    bool take_arrays() {
        const std::uint64_t channels = input().channels, filters = node_.filters;
        switch (node_.op) {
            case Op::kConv: {
                const std::uint64_t group_channels = channels / node_.groups;
                return take("weight", {filters, node_.kernel[0], node_.kernel[1], group_channels}, node_.weight) &&
                       take_int8({filters, node_.kernel[0], node_.kernel[1], group_channels}) &&
                       take_bits("bits", {filters, (taps() + 7) / 8}, taps(), node_.bits) &&
                       take("scale", {filters}, node_.scale) && take("middle", {filters}, node_.offset) &&
                       take("bias", {filters}, node_.bias) && check_int8_scale();
            }
            case Op::kSign:
                return take("threshold", {channels}, node_.threshold, true) &&
                       take_bits("flip", {(channels + 7) / 8}, channels, node_.flip);
            case Op::kAffine:
                return take("scale", {channels}, node_.scale) && take("shift", {channels}, node_.shift);
            case Op::kPrelu:
                return take("slope", {channels}, node_.slope);
            default:
                return true;
        }
    }

    // The tensor of an array, if there is one and it is what it has to be.
    bool find(const char* name, const char* type, const std::vector<std::uint64_t>& wanted, Tensor*& found) {
        found = container_.find(text(at_) + "." + name);
        if (found == nullptr) return true;
        found->is_used = true;
        if (found->type == type && found->shape == wanted) return true;
        return fail(std::string("'") + name + "' is " + Tensor::type_name(found->type) + " " + found->shape_text() +
                    ", and has to be " + Tensor::type_name(type) + " " + shape_text(wanted));
    }

    bool take(const char* name, const std::vector<std::uint64_t>& wanted, const float*& array,
              bool may_be_infinite = false) {
        Tensor* found = nullptr;
        if (!find(name, "F32", wanted, found)) return false;
        if (found == nullptr) return true;
        const auto count = static_cast<std::size_t>((found->end - found->begin) / sizeof(float));
        array = aligned(found->data, count);
        bool is_fine = may_be_infinite || are_finite(array, count);
        for (std::size_t i = 0; i < count && is_fine && may_be_infinite; ++i) is_fine = !std::isnan(array[i]);
        return is_fine || fail(std::string("'") + name + "' holds a number that is not finite");
    }

    const float* aligned(const std::uint8_t* data, std::size_t count) {
        if (reinterpret_cast<std::uintptr_t>(data) % alignof(float) == 0) return reinterpret_cast<const float*>(data);
        model_.copies.push_back(std::make_unique<float[]>(count));
        std::memcpy(model_.copies.back().get(), data, count * sizeof(float));
        return model_.copies.back().get();
    }

    bool take_int8(const std::vector<std::uint64_t>& wanted) {
        Tensor* found = nullptr;
        if (!find("int8", "I8", wanted, found)) return false;
        if (found != nullptr) node_.int8 = reinterpret_cast<const std::int8_t*>(found->data);
        return true;
    }

    // The products with whole numbers of 8 bits have to be finite, too.
    bool check_int8_scale() {
        for (std::size_t i = 0; node_.int8 != nullptr && i < node_.filters; ++i) {
            if (!std::isfinite(node_.scale[i] * 128.0f)) return fail("'scale' makes weights that are not finite");
        }
        return true;
    }

    bool take_bits(const char* name, const std::vector<std::uint64_t>& wanted, std::uint64_t bits,
                   const std::uint8_t*& array) {
        Tensor* found = nullptr;
        if (!find(name, "U8", wanted, found)) return false;
        if (found == nullptr) return true;
        array = found->data;
        const auto count = static_cast<std::size_t>(found->end - found->begin),
                   row = static_cast<std::size_t>(wanted.back());
        for (std::size_t end = row; end <= count && bits % 8 != 0; end += row) {
            if (array[end - 1] >> bits % 8 != 0)
                return fail(std::string("'") + name + "' has bits beyond the last one");
        }
        return true;
    }

    Container& container_;
    Model& model_;
    Node& node_;
    std::size_t at_;
};

bool check_labels(const Model& model, Problem& problem) {
    const std::uint64_t answers = model.shapes.back().count();
    if (!model.labels.empty() && model.labels.size() != answers) {
        return problem.bad_model("a model with " + text(answers) + " outputs has " + text(model.labels.size()) +
                                 " labels.");
    }
    std::vector<std::string_view> labels(model.labels.begin(), model.labels.end());
    std::sort(labels.begin(), labels.end());
    if (std::adjacent_find(labels.begin(), labels.end()) != labels.end()) {
        return problem.bad_model("two classes of a model have the same label.");
    }
    return true;
}

}  // namespace

bool read_model(const std::uint8_t* bytes, std::size_t size, Model& model, Problem& problem) {
    Container container;
    if (!read_container(bytes, size, container, problem) || !read_description(container, model, problem)) return false;
    model.shapes.reserve(model.nodes.size() + 1);
    for (std::size_t at = 0; at < model.nodes.size(); ++at) {
        NodeCheck check(container, model, at);
        if (check.run()) {
            model.shapes.push_back(check.shape);
            continue;
        }
        const Node& node = model.nodes[at];
        const std::string name = node.name.empty() ? "" : " (" + quoted(node.name) + ")";
        return problem.bad_model("node " + text(at) + ", " + name_of(node.op) + name + ": " + check.wrong + ".");
    }
    for (const Tensor& tensor : container.tensors) {
        if (!tensor.is_used) return problem.bad_model("no node uses its tensor " + quoted(cut(tensor.name, 40)) + ".");
    }
    return check_labels(model, problem);
}

}  // namespace dabnet
