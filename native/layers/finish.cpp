#include "finish.h"

#include <algorithm>

namespace dabnet {

Finisher::Finisher(Budget& budget, std::size_t filters, const Followers& followers)
    : filters_(filters),
      adds_(followers.adds),
      makes_real_(followers.makes_real),
      low_(followers.low),
      high_(followers.high) {
    const std::size_t words = (filters + 63) / 64;
    budget.take(words * ((1 + followers.signs.size()) * 64 * sizeof(float)));
    for (const auto& [threshold, flip] : followers.signs) {
        budget.take(words * sizeof(std::uint64_t));
        Sign sign{std::vector<float>(words * 64), std::vector<std::uint64_t>(words)};
        if (threshold != nullptr) std::copy(threshold, threshold + filters, sign.threshold.begin());
        for (std::size_t i = 0; flip != nullptr && i < filters; ++i) {
            sign.flip[i / 64] |= static_cast<std::uint64_t>(flip[i / 8] >> (i % 8) & 1) << (i % 64);
        }
        signs_.push_back(std::move(sign));
    }
    if (followers.slope != nullptr) {
        slope_.resize(words * 64);
        std::copy(followers.slope, followers.slope + filters, slope_.begin());
    }
}

Finish Finisher::finish(const Job& job) const {
    Finish finish{};
    finish.filters = filters_;
    if (adds_) finish.added = job.input<float>(1);
    if (makes_real_) finish.real = job.output<float>();
    std::size_t output = makes_real_ ? 1 : 0;
    for (const Sign& sign : signs_) {
        finish.signs[finish.signs_count++] = {sign.threshold.data(), sign.flip.data(),
                                              job.output<std::uint64_t>(output++)};
    }
    finish.slope = slope_.empty() ? nullptr : slope_.data();
    finish.low = low_;
    finish.high = high_;
    return finish;
}

}  // namespace dabnet
