// The container of a packed model: a safetensors file, taken apart and checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../problem.h"

namespace dabnet {

constexpr std::size_t kLongestHeader = std::size_t{4} << 20;

struct Tensor {
    std::string name;
    std::string type;  // as safetensors names it: F32, U8
    std::vector<std::uint64_t> shape;
    std::uint64_t begin, end;  // in the data
    const std::uint8_t* data;
    bool is_used = false;

    // As numpy writes them: "float32", "(2, 3)".
    static std::string type_name(std::string_view type);
    std::string shape_text() const;
};

std::string shape_text(const std::vector<std::uint64_t>& shape);

struct Container {
    std::string description;      // what the metadata has under "dabnet"
    std::vector<Tensor> tensors;  // by name

    Tensor* find(std::string_view name);
};

// Tensors point into `bytes`.
bool read_container(const std::uint8_t* bytes, std::size_t size, Container& container, Problem& problem);

}  // namespace dabnet
