#include "epilogue.h"

#include <algorithm>

namespace dabnet {
namespace {

std::size_t filled_up(std::size_t filters) { return (filters + 63) / 64 * 64; }

std::size_t count_arrays(const Epilogue& planned) {
    std::size_t count = planned.signs_count + (planned.slope != nullptr ? 1 : 0);
    for (const AffineArrays& affine : {planned.before, planned.after}) count += affine.shift != nullptr ? 2 : 0;
    return count;
}

}  // namespace

std::uint64_t EpilogueArrays::bytes(const Epilogue& planned) {
    const std::uint64_t filters = filled_up(planned.filters);
    return count_arrays(planned) * filters * sizeof(float) + planned.signs_count * filters / 8;
}

EpilogueArrays::EpilogueArrays(const Epilogue& planned) : epilogue_(planned) {
    const std::size_t filters = filled_up(planned.filters);
    floats_.reserve(count_arrays(planned) * filters);  // so that nothing moves
    bytes_.resize(planned.signs_count * filters / 8);
    epilogue_.before = keep(planned.before);
    epilogue_.after = keep(planned.after);
    if (planned.slope != nullptr) epilogue_.slope = keep(planned.slope);
    for (std::size_t i = 0; i < planned.signs_count; ++i) {
        std::uint8_t* flip = bytes_.data() + i * filters / 8;
        if (const std::uint8_t* from = planned.signs[i].flip) std::copy(from, from + (planned.filters + 7) / 8, flip);
        epilogue_.signs[i] = {keep(planned.signs[i].threshold), flip, nullptr};
    }
}

// Zeros for a null pointer.
const float* EpilogueArrays::keep(const float* numbers) {
    const std::size_t start = floats_.size();
    floats_.resize(start + filled_up(epilogue_.filters));
    if (numbers != nullptr) std::copy(numbers, numbers + epilogue_.filters, floats_.data() + start);
    return floats_.data() + start;
}

// A scale that is 1 everywhere changes no number, and is left out.
AffineArrays EpilogueArrays::keep(const AffineArrays& arrays) {
    if (arrays.shift == nullptr) return {};
    const bool has_scale = std::any_of(arrays.scale, arrays.scale + epilogue_.filters, [](float x) { return x != 1; });
    return {has_scale ? keep(arrays.scale) : nullptr, keep(arrays.shift)};
}

Epilogue EpilogueArrays::bind(const Job& job) const {
    Epilogue bound = epilogue_;
    if (bound.adds) bound.added = job.input<float>(1);
    if (bound.makes_real) bound.real = job.output<float>();
    for (std::size_t i = 0; i < bound.signs_count; ++i) {
        bound.signs[i].out = job.output<std::uint64_t>(i + (bound.makes_real ? 1 : 0));
    }
    for (std::size_t i = 0; i < bound.quantized_count; ++i) {
        bound.quantized[i].out = job.output<std::uint8_t>(i + bound.signs_count + (bound.makes_real ? 1 : 0));
    }
    return bound;
}

}  // namespace dabnet
