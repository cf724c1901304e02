// Plain C++ for any processor, and the oracle that the other sets are tested against.
#include <cstring>

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

void sum_signs(const std::uint64_t* words, std::size_t positions, std::size_t channels, std::int32_t* sums) {
    const std::size_t count = (channels + 63) / 64;
    for (std::size_t position = 0; position < positions; ++position, words += count) {
        std::int32_t ones = 0;
        for (std::size_t i = 0; i < count; ++i) ones += static_cast<std::int32_t>(count_ones(words[i]));
        sums[position] = 2 * ones - static_cast<std::int32_t>(channels);
    }
}

void float_conv(const FloatConvJob& job) {
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

float affine(const AffineArrays& arrays, std::size_t filter, float value) {
    if (arrays.shift == nullptr) return value;
    if (arrays.scale != nullptr) value = arrays.scale[filter] * value;
    return value + arrays.shift[filter];
}

float activation(const Epilogue& job, std::size_t filter, float value) {
    if (job.slope != nullptr) return value > 0 ? value : job.slope[filter] * value;
    value = value > job.low ? value : job.low;
    return value < job.high ? value : job.high;
}

// What is below 2^22 is rounded where a float32 has no more bits for a fraction.
std::uint8_t quantize(const Quantization& job, float value) {
    constexpr float kNoFractions = 12582912.0f;  // 2^23 + 2^22
    value = job.scale * value;
    value = value > job.low ? value : job.low;
    value = value < job.high ? value : job.high;
    const float rounded = (value + kNoFractions) - kNoFractions;
    return static_cast<std::uint8_t>(rounded - job.low);
}

void float_epilogue(const Epilogue& job, std::size_t position, std::size_t first, std::size_t n, const float* values) {
    const std::size_t word = position * ((job.filters + 63) / 64) + first / 64;
    for (std::size_t set = 0; set < job.signs_count; ++set) {
        std::memcpy(job.signs[set].out + word, job.signs[set].flip + first / 8, sizeof(std::uint64_t));
    }
    for (std::size_t i = 0; i < n; ++i) {
        const std::size_t filter = first + i, at = position * job.filters + filter;
        const auto sign = [&](std::size_t set, float value) {
            const SignArrays& signs = job.signs[set];
            signs.out[word] ^= static_cast<std::uint64_t>(value >= signs.threshold[filter]) << i;
        };
        float value = values[i];
        if (job.added != nullptr) value = value + job.added[at];
        for (std::size_t set = 0; set < job.early_signs; ++set) sign(set, value);
        value = affine(job.after, filter, activation(job, filter, affine(job.before, filter, value)));
        for (std::size_t set = job.early_signs; set < job.signs_count; ++set) sign(set, value);
        for (std::size_t set = 0; set < job.quantized_count; ++set) {
            job.quantized[set].out[at] = quantize(job.quantized[set], value);
        }
        if (job.real != nullptr) job.real[at] = value;
    }
}

void make_sums(const float* x, std::size_t positions, std::size_t channels, float* out) {
    for (; positions != 0; --positions, x += channels) {
        for (std::size_t i = 0; i < channels; i += 3, out += 4) {
            const float y = i + 1 < channels ? x[i + 1] : 0, z = i + 2 < channels ? x[i + 2] : 0;
            out[0] = (x[i] + y) + z;
            out[1] = (x[i] - y) + z;
            out[2] = (x[i] + y) - z;
            out[3] = (x[i] - y) - z;
        }
    }
}

float sum_conv_of(const SumConvJob& job, const float* taps, const std::uint8_t* patterns) {
    float total = 0;
    for (std::size_t run = 0; run < job.run_count; ++run) {
        const float* sums = taps + job.runs[run];
        for (std::size_t from = 0; from < job.run_length; from += kSumPart) {
            const std::size_t to = job.run_length - from < kSumPart ? job.run_length : from + kSumPart;
            float part = 0;
            for (std::size_t triple = from; triple < to; ++triple, patterns += 16) {
                const float sum = sums[4 * triple + (*patterns & 3)];
                part += *patterns < 128 ? sum : -sum;
            }
            total += part;
        }
    }
    return total;
}

void sum_conv(const SumConvJob& job) {
    const std::size_t n = job.epilogue->filters - job.first_filter < 64 ? job.epilogue->filters - job.first_filter : 64;
    const std::size_t block = job.run_count * job.run_length * 16;
    for (std::size_t i = 0; i < job.positions; ++i) {
        const std::size_t position = job.first_position + i;
        float values[64];
        for (std::size_t filter = 0; filter < n; ++filter) {
            const std::uint8_t* patterns = job.patterns + filter / 16 * block + filter % 16;
            float value =
                job.scale[job.first_filter + filter] * sum_conv_of(job, job.input + job.starts[position], patterns);
            if (job.offset != nullptr) value = value + job.offset[job.first_filter + filter] * job.sums[position];
            values[filter] = job.bias == nullptr ? value : value + job.bias[job.first_filter + filter];
        }
        float_epilogue(*job.epilogue, position, job.first_filter, n, values);
    }
}

void float_max(const float* const* x, std::size_t count, std::size_t channels, float* y) {
    for (std::size_t c = 0; c < channels; ++c) y[c] = x[0][c];
    for (std::size_t i = 1; i < count; ++i) {
        for (std::size_t c = 0; c < channels; ++c) y[c] = x[i][c] > y[c] ? x[i][c] : y[c];
    }
}

void byte_max(const std::uint8_t* const* x, std::size_t count, std::size_t length, std::uint8_t* y) {
    std::memcpy(y, x[0], length);
    for (std::size_t row = 1; row < count; ++row) {
        for (std::size_t i = 0; i < length; ++i) y[i] = x[row][i] > y[i] ? x[row][i] : y[i];
    }
}

void spread_signs(const std::uint64_t* words, std::size_t channels, std::int8_t* out) {
    for (std::size_t c = 0; c < channels; ++c) {
        out[c] = static_cast<std::int8_t>(2 * static_cast<int>(words[c / 64] >> (c % 64) & 1) - 1);
    }
}

void byte_conv(const ByteConvJob& job) {
    for (std::size_t i = 0; i < job.positions; ++i) {
        const std::int8_t* taps = job.input + i * job.step;
        for (std::size_t first = 0; first < job.epilogue->filters; first += 64) {
            const std::size_t n = job.epilogue->filters - first < 64 ? job.epilogue->filters - first : 64;
            std::int8_t dots[64] = {}, sums[64] = {};
            for (std::size_t tap = 0; tap < job.taps; ++tap) {
                const std::int8_t* x = taps + job.offsets[tap] + first;
                const std::int8_t* weights = job.weights + tap * job.length + first;
                for (std::size_t f = 0; f < n; ++f) {
                    dots[f] = static_cast<std::int8_t>(dots[f] + x[f] * weights[f]);
                    sums[f] = static_cast<std::int8_t>(sums[f] + x[f]);
                }
            }
            float values[64];
            for (std::size_t f = 0; f < n; ++f) {
                float value = job.scale[first + f] * static_cast<float>(dots[f]);
                if (job.offset != nullptr) value = value + job.offset[first + f] * static_cast<float>(sums[f]);
                values[f] = job.bias == nullptr ? value : value + job.bias[first + f];
            }
            float_epilogue(*job.epilogue, job.first_position + i, first, n, values);
        }
    }
}

void depthwise_conv(const DepthwiseConvJob& job) {
    for (std::size_t p = 0; p < job.positions; ++p) {
        for (std::size_t first = 0; first < job.epilogue->filters; first += 64) {
            const std::size_t n = job.epilogue->filters - first < 64 ? job.epilogue->filters - first : 64;
            float values[64];
            for (std::size_t i = 0; i < n; ++i) values[i] = job.bias[first + i];
            for (std::size_t part = 0, tap = 0; part < job.parts; ++part) {
                float sums[64] = {};
                for (; tap < job.ends[part]; ++tap) {
                    const float *x = job.x[tap] + p * job.step + first, *weights = job.weights[tap] + first;
                    for (std::size_t i = 0; i < n; ++i) sums[i] += x[i] * weights[i];
                }
                for (std::size_t i = 0; i < n; ++i) values[i] += sums[i];
            }
            float_epilogue(*job.epilogue, job.first_position + p, first, n, values);
        }
    }
}

}  // namespace

const Kernels kPortableKernels{"portable", runs_here, count_differences, sum_signs, float_conv,     float_epilogue,
                               nullptr,    nullptr,   nullptr,           make_sums, sum_conv,       nullptr,
                               nullptr,    float_max, spread_signs,      byte_conv, depthwise_conv, nullptr,
                               nullptr,    nullptr,   byte_max};

}  // namespace dabnet
