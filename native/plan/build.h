// From a plan to a network that runs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "../kernels/kernels.h"
#include "../network.h"
#include "plan.h"

namespace dabnet {

// Builds the network of a plan and notes what each of its steps is; null where max_memory has no room for it.
std::unique_ptr<Network> build_network(const Plan& plan, const Kernels& kernels, int threads, std::uint64_t max_memory,
                                       std::vector<std::string>& steps);

}  // namespace dabnet
