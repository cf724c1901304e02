// From a file's description, JSON, to nodes.
#include <algorithm>
#include <cmath>

#include "json.h"
#include "model.h"
#include "tensors.h"
#include "text.h"

namespace dabnet {
namespace {

constexpr std::uint64_t kNewestVersion = 3;

// The settings of nodes, and which kinds have them.
enum Setting : unsigned {
    kKernel = 1 << 0,
    kStride = 1 << 1,
    kPadding = 1 << 2,
    kDilation = 1 << 3,
    kSize = 1 << 4,
    kFilters = 1 << 5,
    kGroups = 1 << 6,
    kPadValue = 1 << 7,
    kCountPadding = 1 << 8,
    kLow = 1 << 9,
    kHigh = 1 << 10,
    kInputs = 1 << 11,
    kName = 1 << 12,
    kScale = 1 << 13,
    kWindow = kKernel | kStride | kPadding | kDilation,
};
struct SettingName {
    const char* name;
    Setting setting;
};
// In the order in which one that is missing is named.
constexpr SettingName kSettings[] = {
    {"inputs", kInputs},      {"name", kName},
    {"kernel", kKernel},      {"stride", kStride},
    {"padding", kPadding},    {"dilation", kDilation},
    {"filters", kFilters},    {"groups", kGroups},
    {"pad_value", kPadValue}, {"count_padding", kCountPadding},
    {"scale", kScale},        {"low", kLow},
    {"high", kHigh},          {"size", kSize},
};

struct OpName {
    const char* name;
    Op op;
    unsigned settings;
    unsigned needed;
};
constexpr OpName kOps[] = {
    {"conv", Op::kConv, kWindow | kFilters | kGroups | kPadValue, kFilters},
    {"sign", Op::kSign, 0, 0},
    {"quantize", Op::kQuantize, kScale | kLow | kHigh, kScale | kLow | kHigh},
    {"affine", Op::kAffine, 0, 0},
    {"relu", Op::kRelu, 0, 0},
    {"clamp", Op::kClamp, kLow | kHigh, kLow | kHigh},
    {"prelu", Op::kPrelu, 0, 0},
    {"max_pool", Op::kMaxPool, kWindow, 0},
    {"avg_pool", Op::kAvgPool, kWindow | kCountPadding, 0},
    {"adaptive_max_pool", Op::kAdaptiveMaxPool, kSize, kSize},
    {"adaptive_avg_pool", Op::kAdaptiveAvgPool, kSize, kSize},
    {"add", Op::kAdd, 0, 0},
    {"concat", Op::kConcat, 0, 0},
    {"flatten", Op::kFlatten, 0, 0},
};

bool read_side(Json value, std::size_t& side) {
    std::uint64_t number = 0;
    if (!value.integer(kLargestSide, number)) return false;
    side = static_cast<std::size_t>(number);
    return true;
}

template <std::size_t Count>
bool read_sides(Json value, std::size_t (&sides)[Count]) {
    std::size_t at = 0;
    return value.is_list() && value.size() == Count &&
           value.each_item([&](Json item) { return read_side(item, sides[at++]); });
}

bool read_number(Json value, double& number) {
    if (!value.is_number()) return false;
    number = value.number();
    return std::isfinite(number);
}

bool read_inputs(Json value, std::vector<std::uint32_t>& inputs) {
    if (!value.is_list() || value.size() > kLargestSide) return false;
    inputs.reserve(value.size());
    return value.each_item([&](Json item) {
        std::size_t number = 0;
        if (!read_side(item, number)) return false;
        inputs.push_back(static_cast<std::uint32_t>(number));
        return true;
    });
}

bool read_setting(Setting setting, Json value, Node& node) {
    switch (setting) {
        case kKernel:
            return read_sides(value, node.kernel);
        case kStride:
            return read_sides(value, node.stride);
        case kPadding:
            return read_sides(value, node.padding);
        case kDilation:
            return read_sides(value, node.dilation);
        case kSize:
            return read_sides(value, node.size);
        case kFilters:
            return read_side(value, node.filters);
        case kGroups:
            return read_side(value, node.groups);
        case kPadValue:
            return read_side(value, node.pad_value);
        case kCountPadding:
            return read_side(value, node.count_padding);
        case kScale:
            return read_number(value, node.factor);
        case kLow:
            return read_number(value, node.low);
        case kHigh:
            return read_number(value, node.high);
        case kInputs:
            return read_inputs(value, node.inputs);
        case kName:
            if (!value.is_text()) return false;
            node.name = value.text();
            return is_text(node.name);
        default:
            return false;
    }
}

bool read_node(std::size_t at, Json described, Node& node, Problem& problem) {
    const std::string number = "node " + std::to_string(at);
    Json op;
    const bool has_op = described.is_object() && described.find("op", op);
    const OpName* known = nullptr;
    for (const OpName& each : kOps) {
        if (has_op && op.is_text() && op.text() == each.name) known = &each;
    }
    if (known == nullptr) {
        const Json said = has_op ? op : described;
        const std::string what = described.is_object() && !has_op ? "None"
                                 : said.is_text()                 ? said.text()
                                                                  : said.describe(40);
        return problem.bad_model(number + " is " + quoted(cut(what, 40)) + ", and that is no operation.");
    }
    node.op = known->op;
    if (node.op == Op::kRelu) node.low = 0;
    const std::string who = number + ", " + known->name;
    unsigned given = 0;
    const bool are_known = described.each_entry([&](const std::string& key, Json value) {
        if (key == "op") return true;
        for (const auto& [name, setting] : kSettings) {
            if (key != name || ((known->settings | kInputs | kName) & setting) == 0) continue;
            given |= setting;
            if (read_setting(setting, value, node)) return true;
            return problem.bad_model(who + ": '" + key + "' cannot be " + value.describe(40) + ".");
        }
        return problem.bad_model(who + ", has an unknown entry, " + quoted(cut(key, 40)) + ".");
    });
    if (!are_known) return false;
    for (const auto& [name, setting] : kSettings) {
        if ((known->needed | kInputs) & setting & ~given) return problem.bad_model(who + ", lacks '" + name + "'.");
    }
    return true;
}

bool read_labels(Json labels, Model& model, Problem& problem) {
    if (!labels.is_list()) return problem.bad_model("its labels are not a list.");
    model.labels.reserve(labels.size());
    const bool are_texts = labels.each_item([&](Json label) {
        if (!label.is_text()) return false;
        model.labels.push_back(label.text());
        return !model.labels.back().empty() && is_text(model.labels.back());
    });
    if (!are_texts) {
        return problem.bad_model("a model's labels are texts of 1 to " + grouped(kMostCharacters) + " characters.");
    }
    return true;
}

bool read_raster(Json raster, Model& model, Problem& problem) {
    Json size, margin, pen;
    model.has_raster = raster.is_object() && raster.size() == 3 && raster.find("size", size) &&
                       raster.find("margin", margin) && raster.find("pen", pen) && read_side(size, model.raster.size) &&
                       read_number(margin, model.raster.margin) && read_number(pen, model.raster.pen);
    return model.has_raster || problem.bad_model("its way to rasterize is not a size, a margin and a pen.");
}

bool check_version(Json about, Model& model, Problem& problem) {
    Json settings, version;
    if (about.find("settings", settings)) {
        return problem.bad_model("it holds the weights of a network that is not packed yet: dabnet export packs it.");
    }
    std::uint64_t number = 0;
    const bool is_there = about.find("version", version);
    if (is_there && version.integer(kNewestVersion, number) && number >= 1) {
        model.version = static_cast<int>(number);
        return true;
    }
    const std::string found = is_there ? version.describe(40) : "None";
    return problem.bad_model("its format is version " + found + ", and this dabnet reads 1, 2 and 3.");
}

bool check_entries(Json about, Problem& problem) {
    std::string unknown;
    about.each_entry([&](const std::string& key, Json) {
        const bool is_known = key == "version" || key == "input" || key == "nodes" || key == "labels" ||
                              key == "raster" || key == "temperature" || key == "views_temperature";
        if (!is_known && (unknown.empty() || key < unknown)) unknown = key.empty() ? " " : key;
        return true;
    });
    if (!unknown.empty()) {
        return problem.bad_model("its description has an unknown entry, " + quoted(cut(unknown, 40)) + ".");
    }
    Json entry;
    for (const char* name : {"input", "nodes"}) {
        if (!about.find(name, entry)) return problem.bad_model(std::string("its description lacks '") + name + "'.");
    }
    return true;
}

bool read_nodes(Json nodes, Model& model, Problem& problem) {
    if (!nodes.is_list()) return problem.bad_model("its nodes are not a list.");
    if (nodes.size() == 0) return problem.bad_model("a model needs at least one node.");
    if (nodes.size() > kMostNodes) {
        return problem.bad_model("a model has at most " + grouped(kMostNodes) + " nodes, not " + grouped(nodes.size()) +
                                 ".");
    }
    model.nodes.resize(nodes.size());
    std::size_t at = 0;
    return nodes.each_item([&](Json described) {
        const bool is_read = read_node(at, described, model.nodes[at], problem);
        ++at;
        return is_read;
    });
}

// `name` is "temperature" or "views_temperature"; where it is left out, `value` stays.
bool read_temperature(Json about, const std::string& name, double& value, Problem& problem) {
    Json temperature;
    if (!about.find(name, temperature)) return true;
    if (!read_number(temperature, value)) return problem.bad_model("its " + name + " is not a finite number.");
    if (value > 0) return true;
    const std::string found = std::string(temperature.source().substr(0, 38)) + (temperature.is_integer() ? ".0" : "");
    return problem.bad_model("a model's " + name + " is a finite number above 0, not " + found + ".");
}

bool read_temperatures(Json about, Model& model, Problem& problem) {
    Json found;
    if (model.version < 2 && about.find("views_temperature", found)) {
        return problem.bad_model("its views_temperature needs version 2 of the format.");
    }
    return read_temperature(about, "temperature", model.temperature, problem) &&
           read_temperature(about, "views_temperature", model.views_temperature, problem);
}

}  // namespace

const char* name_of(Op op) {
    for (const OpName& each : kOps) {
        if (each.op == op) return each.name;
    }
    return op == Op::kWholePool ? "whole_pool" : "sign_pool";
}

bool read_description(Container& container, Model& model, Problem& problem) {
    JsonDocument document;
    if (!document.parse(container.description)) {
        return problem.bad_model("it has no description of a model under 'dabnet' in its metadata.");
    }
    const Json about = document.root();
    if (!about.is_object()) return problem.bad_model("its description is not a JSON object.");
    Json input, nodes, entry;
    if (!check_version(about, model, problem) || !check_entries(about, problem)) return false;
    about.find("input", input);
    about.find("nodes", nodes);
    if (!read_nodes(nodes, model, problem)) return false;
    std::size_t size[3];
    if (!read_sides(input, size)) {
        return problem.bad_model("its input is not a list of channels, height and width.");
    }
    if (size[0] == 0 || size[1] == 0 || size[2] == 0) {
        return problem.bad_model("a model's input cannot be " + std::to_string(size[0]) + "x" +
                                 std::to_string(size[1]) + "x" + std::to_string(size[2]) + ".");
    }
    model.shapes.push_back({size[0], size[1], size[2]});
    if (about.find("labels", entry) && !read_labels(entry, model, problem)) return false;
    if (!read_temperatures(about, model, problem)) return false;
    return !about.find("raster", entry) || entry.is_null() || read_raster(entry, model, problem);
}

}  // namespace dabnet
