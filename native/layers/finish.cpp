#include "finish.h"

#include <algorithm>

namespace dabnet {

Finisher::Finisher(Budget& budget, std::size_t filters, const Followers& followers)
    : filters_(filters),
      adds_(followers.adds),
      makes_signs_(followers.makes_signs),
      makes_real_(followers.makes_real),
      low_(followers.low),
      high_(followers.high) {
    const std::size_t words = (filters + 63) / 64;
    budget.take(words * (2 * 64 * sizeof(float) + sizeof(std::uint64_t)));
    if (makes_signs_) {
        threshold_.resize(words * 64);
        if (followers.threshold != nullptr) {
            std::copy(followers.threshold, followers.threshold + filters, threshold_.begin());
        }
        flip_.resize(words);
        for (std::size_t i = 0; followers.flip != nullptr && i < filters; ++i) {
            flip_[i / 64] |= static_cast<std::uint64_t>(followers.flip[i / 8] >> (i % 8) & 1) << (i % 64);
        }
    }
    if (followers.slope != nullptr) {
        slope_.resize(words * 64);
        std::copy(followers.slope, followers.slope + filters, slope_.begin());
    }
}

Finish Finisher::job(const std::vector<const void*>& inputs, const std::vector<void*>& outputs) const {
    Finish job{};
    job.filters = filters_;
    if (adds_) job.added = static_cast<const float*>(inputs[1]);
    if (makes_real_) job.real = static_cast<float*>(outputs.front());
    if (makes_signs_) job.signs = static_cast<std::uint64_t*>(outputs.back());
    job.threshold = threshold_.data();
    job.flip = flip_.data();
    job.slope = slope_.empty() ? nullptr : slope_.data();
    job.low = low_;
    job.high = high_;
    return job;
}

}  // namespace dabnet
