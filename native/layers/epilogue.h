// The arrays of an epilogue as kernels want them.
#pragma once

#include <cstdint>
#include <vector>

#include "../kernels/kernels.h"
#include "../network.h"

namespace dabnet {

// Keeps copies of what the plan points to. Of the values that a layer makes, real numbers come first, then signs, then
// whole numbers.
class EpilogueArrays {
   public:
    // The bytes that the copies of a plan's epilogue take.
    static std::uint64_t bytes(const Epilogue& planned);

    explicit EpilogueArrays(const Epilogue& planned);
    EpilogueArrays(EpilogueArrays&&) = default;
    EpilogueArrays(const EpilogueArrays&) = delete;
    EpilogueArrays& operator=(const EpilogueArrays&) = delete;

    // The epilogue of a run: what is added is the second input.
    Epilogue bind(const Job& job) const;

   private:
    const float* keep(const float* numbers);
    AffineArrays keep(const AffineArrays& arrays);

    Epilogue epilogue_;
    std::vector<float> floats_;
    std::vector<std::uint8_t> bytes_;
};

// Runs the epilogue for all filters of a position.
inline void run_epilogue(const Kernels& kernels, const Epilogue& epilogue, std::size_t position, const float* values) {
    for (std::size_t first = 0; first < epilogue.filters; first += 64) {
        const std::size_t n = epilogue.filters - first < 64 ? epilogue.filters - first : 64;
        kernels.float_epilogue(epilogue, position, first, n, values + first);
    }
}

}  // namespace dabnet
