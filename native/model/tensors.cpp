#include "tensors.h"

#include <algorithm>
#include <cstring>

#include "json.h"
#include "text.h"

namespace dabnet {
namespace {

constexpr char kMetadata[] = "__metadata__";

// What safetensors knows, and what numpy calls it; packed models hold none of those that numpy has no name for.
struct Type {
    const char* name;
    unsigned bits;
    const char* numpy;
};
constexpr Type kTypes[] = {
    {"F32", 32, "float32"},  {"U8", 8, "uint8"},      {"I8", 8, "int8"},       {"BOOL", 8, "bool"},
    {"F64", 64, "float64"},  {"F16", 16, "float16"},  {"I64", 64, "int64"},    {"I32", 32, "int32"},
    {"I16", 16, "int16"},    {"U64", 64, "uint64"},   {"U32", 32, "uint32"},   {"U16", 16, "uint16"},
    {"BF16", 16, nullptr},   {"C64", 64, nullptr},    {"F8_E4M3", 8, nullptr}, {"F8_E5M2", 8, nullptr},
    {"F8_E8M0", 8, nullptr}, {"F6_E2M3", 6, nullptr}, {"F6_E3M2", 6, nullptr}, {"F4", 4, nullptr},
};

const Type* find_type(std::string_view name) {
    for (const Type& type : kTypes) {
        if (name == type.name) return &type;
    }
    return nullptr;
}

bool no_safetensors(Problem& problem, const std::string& why) {
    return problem.bad_model("it is not a safetensors file (" + why + ").");
}

// Multiplies; false if 64 bits cannot hold the product.
bool multiply(std::uint64_t& product, std::uint64_t factor) {
    if (factor != 0 && product > UINT64_MAX / factor) return false;
    product *= factor;
    return true;
}

bool read_entry(const std::string& name, Json entry, Tensor& tensor, Problem& problem) {
    const auto refuse = [&](const char* what) {
        return no_safetensors(problem, what + std::string(" of its tensor ") + quoted(cut(name, 40)));
    };
    Json type, shape, offsets;
    if (!entry.is_object() || entry.size() != 3 || !entry.find("dtype", type) || !entry.find("shape", shape) ||
        !entry.find("data_offsets", offsets)) {
        return refuse("there is no 'dtype', 'shape' and 'data_offsets'");
    }
    const Type* known = type.is_text() ? find_type(type.text()) : nullptr;
    if (known == nullptr) return refuse("nobody knows the type");
    if (!shape.is_list() || !shape.each_item([&](Json side) {
            tensor.shape.push_back(0);
            return side.integer(UINT64_MAX, tensor.shape.back());
        })) {
        return refuse("there is a number wrong in the shape");
    }
    std::uint64_t at[2];
    std::size_t count = 0;
    if (!offsets.is_list() || offsets.size() != 2 ||
        !offsets.each_item([&](Json offset) { return offset.integer(UINT64_MAX, at[count++]); }) || at[0] > at[1]) {
        return refuse("there is a number wrong in the offsets");
    }
    std::uint64_t bits = known->bits;
    for (const std::uint64_t side : tensor.shape) {
        if (!multiply(bits, side)) return refuse("no memory has room for the shape");
    }
    if (bits % 8 != 0 || bits / 8 != at[1] - at[0]) return refuse("the offsets do not fit the shape");
    tensor.name = name;
    tensor.type = known->name;
    tensor.begin = at[0];
    tensor.end = at[1];
    return true;
}

// Tensors follow each other without gaps, from the first byte of the data to the last.
bool check_offsets(std::vector<Tensor>& tensors, const std::uint8_t* data, std::uint64_t size, Problem& problem) {
    std::sort(tensors.begin(), tensors.end(),
              [](const Tensor& a, const Tensor& b) { return a.begin != b.begin ? a.begin < b.begin : a.end < b.end; });
    std::uint64_t end = 0;
    for (Tensor& tensor : tensors) {
        if (tensor.begin != end || tensor.end > size) {
            return no_safetensors(problem,
                                  "its tensor " + quoted(cut(tensor.name, 40)) + " does not follow the others");
        }
        end = tensor.end;
        tensor.data = data + tensor.begin;
    }
    if (end != size) return no_safetensors(problem, "its tensors do not fill it");
    std::sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
    return true;
}

bool read_header(Json header, Container& container, bool& is_described, Problem& problem) {
    return header.each_entry([&](const std::string& name, Json entry) {
        if (name != kMetadata) {
            container.tensors.emplace_back();
            return read_entry(name, entry, container.tensors.back(), problem);
        }
        const bool are_texts = entry.is_object() && entry.each_entry([&](const std::string& key, Json value) {
            if (!value.is_text()) return false;
            if (key == "dabnet") {
                is_described = true;
                container.description = value.text();
            }
            return true;
        });
        return are_texts || no_safetensors(problem, "its metadata are not texts");
    });
}

}  // namespace

std::string Tensor::type_name(std::string_view type) {
    const Type* known = find_type(type);
    return known == nullptr || known->numpy == nullptr ? std::string(type) : known->numpy;
}

std::string Tensor::shape_text() const { return dabnet::shape_text(shape); }

std::string shape_text(const std::vector<std::uint64_t>& shape) {
    std::string text = "(";
    for (std::size_t i = 0; i < shape.size() && i < 8; ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
    if (shape.size() > 8) text += ", ...";
    return text + (shape.size() == 1 ? ",)" : ")");
}

Tensor* Container::find(std::string_view name) {
    const auto found =
        std::lower_bound(tensors.begin(), tensors.end(), name,
                         [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
    return found == tensors.end() || found->name != name ? nullptr : &*found;
}

bool read_container(const std::uint8_t* bytes, std::size_t size, Container& container, Problem& problem) {
    std::uint64_t length = 0;
    if (size < sizeof length) return no_safetensors(problem, "it is too short");
    for (unsigned i = 0; i < sizeof length; ++i) length |= std::uint64_t{bytes[i]} << (8 * i);
    if (length > size - sizeof length) return no_safetensors(problem, "its header would be longer than it is");
    if (length > kLongestHeader) {
        return problem.bad_model("its header has " + grouped(length) + " bytes, and may have " +
                                 grouped(kLongestHeader) + ".");
    }
    const auto header_size = static_cast<std::size_t>(length);
    const char* text = reinterpret_cast<const char*>(bytes) + sizeof length;
    JsonDocument header;
    if (!header.parse({text, header_size})) return no_safetensors(problem, "its header is not JSON");
    if (!header.root().is_object()) return no_safetensors(problem, "its header is not a JSON object");
    bool is_described = false;
    if (!read_header(header.root(), container, is_described, problem)) return false;
    const std::size_t start = sizeof length + header_size;
    if (!check_offsets(container.tensors, bytes + start, size - start, problem)) return false;
    for (const Tensor& tensor : container.tensors) {
        if (find_type(tensor.type)->numpy == nullptr) {
            return problem.bad_model("it holds a tensor of type '" + tensor.type + "', and packed models have none.");
        }
    }
    if (!is_described) return problem.bad_model("it has no description of a model under 'dabnet' in its metadata.");
    return true;
}

}  // namespace dabnet
