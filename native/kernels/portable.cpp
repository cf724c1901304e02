// Plain C++ for any processor, and the oracle that the other sets are tested against.
#include "kernels.h"

namespace dabnet {
namespace {

bool runs_here() { return true; }

// Ones are added up in pairs of bits, then in fours, then in bytes, and the bytes by one product.
std::uint32_t count_ones(std::uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0f;
    return static_cast<std::uint32_t>(word * 0x0101010101010101 >> 56);
}

std::uint32_t count_differences(const std::uint64_t* a, const std::uint64_t* b, std::size_t words) {
    std::uint32_t count = 0;
    for (std::size_t i = 0; i < words; ++i) count += count_ones(a[i] ^ b[i]);
    return count;
}

void add_signs(const std::uint64_t* words, std::size_t places, std::size_t channels, std::int32_t* sums) {
    const std::size_t count = (channels + 63) / 64;
    for (std::size_t place = 0; place < places; ++place, words += count) {
        std::int32_t ones = 0;
        for (std::size_t i = 0; i < count; ++i) ones += static_cast<std::int32_t>(count_ones(words[i]));
        sums[place] = 2 * ones - static_cast<std::int32_t>(channels);
    }
}

void add_up(const Sum& job) {
    constexpr std::size_t kBlock = 64;  // filters
    for (std::size_t first = 0; first < job.filters; first += kBlock) {
        const std::size_t n = job.filters - first < kBlock ? job.filters - first : kBlock;
        float* sums = job.sums + first;
        for (std::size_t i = 0; i < n; ++i) sums[i] = job.bias[first + i];
        for (std::size_t part = 0, term = 0; part < job.parts; ++part) {
            float inner[kBlock] = {};
            for (; term < job.ends[part]; ++term) {
                const float x = job.terms[term].x;
                const float* weights = job.terms[term].weights + first;
                for (std::size_t i = 0; i < n; ++i) inner[i] += x * weights[i];
            }
            for (std::size_t i = 0; i < n; ++i) sums[i] += inner[i];
        }
    }
}

void finish(const Finish& job, std::size_t place, std::size_t first, std::size_t n, const float* values) {
    const std::size_t word = place * ((job.filters + 63) / 64) + first / 64;
    for (std::size_t set = 0; set < job.signs_count; ++set) job.signs[set].out[word] = job.signs[set].flip[first / 64];
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t filter = first + i, at = place * job.filters + filter;
        float value = values[i];
        if (job.added != nullptr) value = value + job.added[at];
        for (std::size_t set = 0; set < job.signs_count; ++set) {
            const Signs& signs = job.signs[set];
            signs.out[word] ^= static_cast<std::uint64_t>(value >= signs.threshold[filter]) << i;
        }
        if (job.real == nullptr) continue;
        if (job.slope != nullptr) {
            value = value > 0 ? value : job.slope[filter] * value;
        } else {
            value = value > job.low ? value : job.low;
            value = value < job.high ? value : job.high;
        }
        job.real[at] = value;
    }
}

void make_sums(const float* channels, std::size_t count, float* out) {
    for (std::size_t i = 0; i < count; i += 3, out += 4) {
        const float x = channels[i], y = i + 1 < count ? channels[i + 1] : 0, z = i + 2 < count ? channels[i + 2] : 0;
        out[0] = (x + y) + z;
        out[1] = (x - y) + z;
        out[2] = (x + y) - z;
        out[3] = (x - y) - z;
    }
}

float add_sums_of(const SumJob& job, const float* taps, const std::uint8_t* patterns) {
    float total = 0;
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const float* sums = taps + job.runs[run];
        for (std::size_t from = 0; from < job.run_length; from += kSumPart) {
            const std::size_t to = job.run_length - from < kSumPart ? job.run_length : from + kSumPart;
            float part = 0;
            for (std::size_t group = from; group < to; ++group, patterns += 16) {
                const float sum = sums[4 * group + (*patterns & 3)];
                part += *patterns < 128 ? sum : -sum;
            }
            total += part;
        }
    }
    return total;
}

void add_sums(const SumJob& job) {
    const std::size_t n = job.finish->filters - job.first < 64 ? job.finish->filters - job.first : 64;
    const std::size_t block = job.run_count * job.run_length * 16;
    for (std::size_t i = 0; i < job.places; ++i) {
        const std::size_t place = job.first_place + i;
        float values[64];
        for (std::size_t filter = 0; filter < n; ++filter) {
            const std::uint8_t* patterns = job.patterns + filter / 16 * block + filter % 16;
            float value = job.scale[job.first + filter] * add_sums_of(job, job.input + job.starts[place], patterns);
            if (job.middle != nullptr) value = value + job.middle[job.first + filter] * job.sums[place];
            values[filter] = job.bias == nullptr ? value : value + job.bias[job.first + filter];
        }
        finish(*job.finish, place, job.first, n, values);
    }
}

void largest(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    for (std::size_t c = 0; c < channels; ++c) y[c] = x[0][c];
    for (std::size_t i = 1; i < count; ++i) {
        for (std::size_t c = 0; c < channels; ++c) y[c] = x[i][c] > y[c] ? x[i][c] : y[c];
    }
}

}  // namespace

const Kernels kPortableKernels{"portable", runs_here, count_differences, add_signs, add_up,   finish,
                               nullptr,    nullptr,   nullptr,           make_sums, add_sums, largest};

}  // namespace dabnet
