// Compares all kernels that run here with the portable ones, bit for bit, in layers and small networks drawn at random.
//
//     compare_kernels COUNT [SEED]
//
// draws one from each of the seeds SEED, SEED + 1, ...; every fourth is a network.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "../layers/layers.h"

namespace dabnet {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::size_t kMostProducts = 400'000;  // of a layer: an emulator takes its time
constexpr std::size_t kMemory = std::size_t{1} << 30;

// Numbers that depend on the seed alone, by Steele, Lea and Flood's SplitMix.
class Random {
   public:
    explicit Random(std::uint64_t seed) : state_(seed) {}

    std::uint64_t bits() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    std::size_t from(std::size_t low, std::size_t high) { return low + bits() % (high - low + 1); }
    bool one_in(std::size_t count) { return bits() % count == 0; }
    template <typename T>
    T pick(std::initializer_list<T> choices) {
        return choices.begin()[bits() % choices.size()];
    }
    // Any bits, or all alike, so that counts are as large as can be.
    template <typename Word>
    std::vector<Word> words(std::size_t count) {
        std::vector<Word> all(count, one_in(2) ? 0 : static_cast<Word>(-1));
        if (one_in(5)) return all;
        for (Word& word : all) word = static_cast<Word>(bits());
        return all;
    }
    std::vector<std::uint8_t> bytes(std::size_t count) { return words<std::uint8_t>(count); }

    // A third are 0 or a few halves, which meet thresholds; with `odd`, some are what arithmetic treats apart.
    float number(bool odd = false) {
        if (odd && one_in(20)) return pick({kInfinity, -kInfinity, std::nanf(""), -0.0f, 1e-42f, 3e38f, -3e38f});
        if (one_in(3)) return static_cast<float>(from(0, 6)) / 2 - 1.5f;
        return static_cast<float>(static_cast<std::int64_t>(bits()) >> 32) / 1e9f;
    }
    std::vector<float> numbers(std::size_t count, bool odd = false) {
        std::vector<float> all(count);
        for (float& each : all) each = number(odd);
        return all;
    }

   private:
    std::uint64_t state_;
};

std::string text(std::size_t number) { return std::to_string(number); }

std::string text(const Shape& shape) {
    return text(shape.channels) + "x" + text(shape.height) + "x" + text(shape.width);
}

std::string text(const char* name, const Axis& axis) {
    return std::string(", ") + name + " kernel " + text(axis.kernel) + " stride " + text(axis.stride) + " before " +
           text(axis.before) + " dilation " + text(axis.dilation) + " positions " + text(axis.positions);
}

std::string text(const Window& window) { return text("height", window.height) + text("width", window.width); }

// Padding may be wider than the window.
Axis draw_axis(Random& random, std::size_t size, std::size_t kernel) {
    const std::size_t dilation = kernel <= 5 ? random.from(1, 2) : 1;
    const std::size_t span = dilation * (kernel - 1) + 1, stride = random.from(1, 3);
    const std::size_t before = random.from(0, span + 1);
    const std::size_t least = span > size + before ? span - size - before : 0;
    const std::size_t after = random.from(least, std::max(least, span + 1));
    return {size, (size + before + after - span) / stride + 1, kernel, stride, before, dilation};
}

// Every window of a pool sees the map.
Axis draw_pool_axis(Random& random, std::size_t size) {
    const std::size_t kernel = random.from(1, std::min<std::size_t>(size, 4)), stride = random.from(1, 3);
    const std::size_t before = random.from(0, kernel - 1), after = random.from(0, kernel - 1);
    return {size, (size + before + after - kernel) / stride + 1, kernel, stride, before, 1};
}

// A layer, and what it makes.
struct Drawn {
    std::unique_ptr<Layer> layer;
    std::vector<Shape> inputs, outputs;
    std::string about;
};

// The least and the largest of some whole numbers, of 4 bits or of 8.
std::pair<float, float> draw_range(Random& random) {
    const std::size_t levels = random.pick<std::size_t>({15, 255, random.from(1, 255)});
    const std::size_t zero = random.one_in(2) ? 0 : random.from(0, levels);
    return {-static_cast<float>(zero), static_cast<float>(levels - zero)};
}

Shape whole_shape(const Shape& shape, float low, float high) {
    return shape.as(high - low <= 15 ? ElementType::u4 : ElementType::u8, static_cast<std::uint8_t>(-low));
}

// Bits beyond the last channel are 0.
void clear_unused(std::vector<std::uint8_t>& bits, std::size_t channels) {
    if (channels % 8 != 0) bits.back() &= static_cast<std::uint8_t>((1u << channels % 8) - 1);
}

// What follows a convolution, and the numbers for it.
struct DrawnEpilogue {
    Epilogue epilogue;
    std::vector<std::vector<float>> arrays;
    std::vector<std::vector<std::uint8_t>> flips;

    DrawnEpilogue(Random& random, std::size_t filters, bool may_add) {
        epilogue.filters = filters;
        epilogue.signs_count = random.pick<std::size_t>({0, 1, 1, 2, kMostSigns});
        epilogue.early_signs = random.from(0, epilogue.signs_count);
        epilogue.adds = may_add && random.one_in(3);
        epilogue.quantized_count = random.one_in(2) ? 0 : random.from(1, kMostQuantized);
        for (std::size_t i = 0; i < epilogue.quantized_count; ++i) {
            const auto [low, high] = draw_range(random);
            epilogue.quantized[i] = {random.pick({0.5f, 1.0f, 7.3f}), low, high, nullptr};
        }
        epilogue.makes_real = epilogue.signs_count + epilogue.quantized_count == 0 || random.one_in(2);
        const auto draw = [&](std::vector<float> numbers) {
            arrays.push_back(std::move(numbers));
            return arrays.back().data();
        };
        for (std::size_t i = 0; i < epilogue.signs_count; ++i) {
            std::vector<float> thresholds = random.numbers(filters);
            for (float& threshold : thresholds) {
                if (random.one_in(10)) threshold = random.pick({kInfinity, -kInfinity});
            }
            flips.push_back(random.bytes((filters + 7) / 8));
            clear_unused(flips.back(), filters);
            epilogue.signs[i] = {random.one_in(4) ? nullptr : draw(std::move(thresholds)),
                                 random.one_in(2) ? nullptr : flips.back().data(), nullptr};
        }
        for (AffineArrays* affine : {&epilogue.before, &epilogue.after}) {
            if (random.one_in(3)) continue;
            affine->scale = draw(random.one_in(2) ? std::vector<float>(filters, 1.0f) : random.numbers(filters));
            affine->shift = draw(random.numbers(filters));
        }
        if (random.one_in(2)) {
            epilogue.slope = draw(random.numbers(filters));
        } else {
            epilogue.low = random.pick({-kInfinity, -0.5f, 0.0f});
            epilogue.high = random.pick({kInfinity, 1.0f});
        }
    }

    // Appends what the epilogue makes of maps of this shape.
    void append_outputs(const Shape& shape, std::vector<Shape>& outputs) const {
        if (epilogue.makes_real) outputs.push_back(shape);
        outputs.resize(outputs.size() + epilogue.signs_count, shape.as(ElementType::bit));
        for (std::size_t i = 0; i < epilogue.quantized_count; ++i) {
            outputs.push_back(whole_shape(shape, epilogue.quantized[i].low, epilogue.quantized[i].high));
        }
    }

    std::string text() const {
        return ", " + dabnet::text(epilogue.quantized_count) + " quantized, " + dabnet::text(epilogue.signs_count) +
               " signs, " + dabnet::text(epilogue.early_signs) + " early" + (epilogue.adds ? ", adds" : "") +
               (epilogue.makes_real ? ", real" : "") + (epilogue.before.shift != nullptr ? ", before" : "") +
               (epilogue.slope != nullptr ? ", slope" : "") + (epilogue.after.shift != nullptr ? ", after" : "");
    }
};

Drawn draw_convolution(Random& random, const Kernels& kernels, Budget& budget, const Shape& input, bool may_add) {
    Window window{};
    std::size_t filters = 1, groups = 1;
    const bool is_large = input.is_bits() && input.channels > 120 && random.one_in(4);  // too large for tables
    const std::size_t most_products = is_large ? 10 * kMostProducts : kMostProducts;    // but counted by words
    do {
        const std::size_t least = is_large ? 17 : 1, most = is_large ? 17 : random.pick<std::size_t>({1, 3, 5, 9});
        window = {draw_axis(random, input.height, random.from(least, most)),
                  draw_axis(random, input.width, random.from(least, most))};
        groups = random.one_in(4) ? random.pick({random.from(1, 8), input.channels}) : 1;
        if (input.channels % groups != 0) groups = 1;
        filters = random.one_in(4) ? random.from(1, 12)
                                   : random.pick<std::size_t>({16, 24, 31, 32, 33, 48, 64, 65, 100, 130});
        filters = (filters + groups - 1) / groups * groups;
    } while (filters * (input.channels / groups) * window.taps() * window.positions() > most_products);
    const std::size_t weights = static_cast<std::size_t>(window.taps()) * (input.channels / groups);

    const DrawnEpilogue drawn(random, filters, may_add);
    const bool is_one_bit = input.type != ElementType::f32 || random.one_in(2);
    const std::vector<float> weight = random.numbers(is_one_bit ? 0 : filters * weights);
    const std::vector<float> scale = random.numbers(filters);
    const std::vector<float> offset = random.numbers(is_one_bit && random.one_in(2) ? filters : 0);
    const std::vector<float> bias = random.numbers(random.one_in(2) ? filters : 0);
    const std::vector<std::uint8_t> bits = random.bytes(filters * ((weights + 7) / 8));
    const auto or_null = [](const auto& array) { return array.empty() ? nullptr : array.data(); };
    const Convolution convolution{input,
                                  window,
                                  filters,
                                  groups,
                                  input.is_bits() && random.one_in(2),
                                  or_null(weight),
                                  nullptr,
                                  is_one_bit ? bits.data() : nullptr,
                                  scale.data(),
                                  or_null(offset),
                                  or_null(bias)};
    Drawn made;
    made.layer = make_convolution({kernels, budget}, convolution, drawn.epilogue, nullptr);
    const std::string name = !is_one_bit ? "convolution" : "one-bit convolution of " + std::string(name_of(input.type));
    const Shape output{filters, window.height.positions, window.width.positions};
    made.inputs.push_back(input);
    if (drawn.epilogue.adds) made.inputs.push_back(output);
    drawn.append_outputs(output, made.outputs);
    made.about = name + " of " + text(input) + ", filters " + text(filters) + ", groups " + text(groups) +
                 text(window) + (convolution.pads_with_ones ? ", padded with +1" : "") +
                 (offset.empty() ? "" : ", offset") + (bias.empty() ? "" : ", bias") + drawn.text();
    return made;
}

// A layer that leaves its work to kernels.
Drawn draw_layer(Random& random, const Kernels& kernels, Budget& budget, const Shape& input, bool may_add) {
    const std::size_t kind = input.type != ElementType::f32 ? 4 : random.from(0, 9);
    Drawn made;
    made.inputs.push_back(input);
    if (kind == 0) {
        const std::vector<float> threshold = random.numbers(input.channels);
        std::vector<std::uint8_t> flip = random.bytes((input.channels + 7) / 8);
        clear_unused(flip, input.channels);
        made.layer = make_sign({kernels, budget}, input, random.one_in(4) ? nullptr : threshold.data(),
                               random.one_in(2) ? nullptr : flip.data());
        made.outputs.push_back(input.as(ElementType::bit));
        made.about = "sign of " + text(input);
    } else if (kind == 1) {
        const Window window{draw_pool_axis(random, input.height), draw_pool_axis(random, input.width)};
        made.layer = make_max_pool({kernels, budget}, input, window);
        made.outputs.push_back({input.channels, window.height.positions, window.width.positions});
        made.about = "max-pool of " + text(input) + text(window);
    } else if (kind == 2) {
        const Shape output{input.channels, random.from(1, input.height + 1), random.from(1, input.width + 1)};
        made.layer = make_adaptive_pool({kernels, budget}, input, output.height, output.width, true);
        made.outputs.push_back(output);
        made.about = "adaptive max-pool of " + text(input) + " to " + text(output);
    } else if (kind == 3) {
        const auto [low, high] = draw_range(random);
        made.layer = make_quantize({kernels, budget}, input, random.pick({0.5f, 1.0f, 7.3f}), low, high);
        made.outputs.push_back(whole_shape(input, low, high));
        made.about = "quantize of " + text(input);
    } else {
        return draw_convolution(random, kernels, budget, input, may_add);
    }
    return made;
}

Shape draw_shape(Random& random) {
    const std::size_t channels =
        random.one_in(2) ? random.from(1, 20) : random.pick<std::size_t>({31, 32, 33, 63, 64, 65, 100, 127, 128, 130});
    const bool is_high = random.one_in(12);  // so that rows are done a few at a time
    return {channels, is_high ? random.from(30, 70) : random.from(1, 9), random.from(1, 9)};
}

// A value, at a multiple of 64 as in a network, and no byte longer than it has to be.
class Memory {
   public:
    Memory(std::size_t size, std::uint8_t filling)
        : size_(size), bytes_(static_cast<std::uint8_t*>(::operator new(size, kLine))) {
        std::memset(bytes_, filling, size);
    }
    Memory(Memory&& other) noexcept : size_(other.size_), bytes_(std::exchange(other.bytes_, nullptr)) {}
    ~Memory() { ::operator delete(bytes_, kLine); }

    std::size_t size() const { return size_; }
    std::uint8_t* bytes() const { return bytes_; }

   private:
    static constexpr std::align_val_t kLine{64};
    std::size_t size_;
    std::uint8_t* bytes_;
};

// The sign and the payload of NaN are left open.
void forget_which_nan(float* numbers, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
        if (std::isnan(numbers[i])) numbers[i] = std::nanf("");
    }
}

struct Result {
    std::vector<Memory> values;
    std::vector<std::string> about;  // of each layer
};

// Runs one layer, its pieces in two goes; what nobody writes stays as `filling`.
Result run_layer(std::uint64_t seed, const Kernels& kernels, std::uint8_t filling) {
    Random random(seed);
    Budget budget(kMemory);
    Shape input = draw_shape(random);
    const auto [low, high] = draw_range(random);
    input = random.pick({input, input.as(ElementType::bit), whole_shape(input, low, high)});
    const Drawn drawn = draw_layer(random, kernels, budget, input, true);
    Result result;
    result.about.push_back(drawn.about);

    const bool odd = random.one_in(4);
    std::vector<Memory> given;
    std::vector<const void*> inputs;
    for (const Shape& shape : drawn.inputs) {
        given.emplace_back(shape.bytes(), 0);
        inputs.push_back(given.back().bytes());
        if (shape.is_bits()) {
            auto words = random.words<std::uint64_t>(shape.positions() * shape.words());
            const std::size_t unused = shape.words() * 64 - shape.channels;
            for (std::size_t i = 1; i <= shape.positions(); ++i) words[i * shape.words() - 1] >>= unused;
            std::memcpy(given.back().bytes(), words.data(), shape.bytes());
        } else if (shape.is_whole()) {
            auto bytes = random.bytes(shape.count());
            for (std::uint8_t& byte : bytes) byte &= shape.type == ElementType::u4 ? 15 : 255;
            std::memcpy(given.back().bytes(), bytes.data(), shape.bytes());
        } else {
            const std::vector<float> numbers = random.numbers(shape.count(), odd);
            std::memcpy(given.back().bytes(), numbers.data(), shape.bytes());
        }
    }
    std::vector<void*> outputs;
    for (const Shape& shape : drawn.outputs) {
        result.values.emplace_back(shape.bytes(), filling);
        outputs.push_back(result.values.back().bytes());
    }

    const std::size_t pieces = static_cast<std::size_t>(drawn.layer->pieces()), half = random.from(0, pieces - 1);
    for (const auto& [from, to] : {std::pair{std::size_t{0}, half}, std::pair{half, pieces}}) {
        const Memory scratch(drawn.layer->scratch_bytes(), filling);
        if (from < to) drawn.layer->run({inputs.data(), outputs.data(), from, to, scratch.bytes(), false, nullptr});
    }
    for (std::size_t i = 0; i < drawn.outputs.size(); ++i) {
        if (drawn.outputs[i].type == ElementType::f32)
            forget_which_nan(static_cast<float*>(outputs[i]), drawn.outputs[i].count());
    }
    return result;
}

// Runs a few layers in a row, of three sketches and with one or two threads.
Result run_network(std::uint64_t seed, const Kernels& kernels, std::uint8_t filling) {
    constexpr std::size_t kSketches = 3;
    Random random(seed);
    const Shape input = draw_shape(random);
    Network network(input, static_cast<int>(random.from(1, 2)), kMemory);
    Result result;
    std::size_t value = 0;
    for (std::size_t left = random.from(2, 4); left != 0; --left) {
        Drawn drawn = draw_layer(random, kernels, network.budget(), network.shape(value), false);
        const std::size_t output = random.from(0, drawn.outputs.size() - 1);
        std::size_t first = 0;
        network.add(std::move(drawn.layer), {value}, drawn.outputs, first);
        value = first + output;
        result.about.push_back(drawn.about);
    }
    network.plan(value);
    result.values.emplace_back(kSketches * network.answers() * sizeof(float), filling);
    auto* answers = reinterpret_cast<float*>(result.values.back().bytes());
    Stop never(nullptr, nullptr);
    network.run(random.numbers(kSketches * input.count()).data(), kSketches, answers, never);
    forget_which_nan(answers, kSketches * network.answers());
    return result;
}

bool are_alike(const Result& a, const Result& b) {
    return std::equal(a.values.begin(), a.values.end(), b.values.begin(), b.values.end(),
                      [](const Memory& x, const Memory& y) {
                          return x.size() == y.size() && std::memcmp(x.bytes(), y.bytes(), x.size()) == 0;
                      });
}

int compare_all(std::uint64_t first, std::uint64_t count) {
    std::vector<const Kernels*> sets;
    std::string names;
    for (const Kernels* const* kernels = kAllKernels; *kernels != &kPortableKernels; ++kernels) {
        if (!(*kernels)->runs_here()) continue;
        names += (names.empty() ? "" : ", ") + std::string((*kernels)->name);
        sets.push_back(*kernels);
    }
    if (sets.empty()) {
        std::puts("only the portable kernels run here: there is nothing to compare them with");
        return 1;
    }
    std::size_t layers = 0, networks = 0, mismatches = 0;
    for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const auto run = seed % 4 == 3 ? run_network : run_layer;
        const Result expected = run(seed, kPortableKernels, 0xaa);
        layers += expected.about.size();
        networks += seed % 4 == 3;
        for (const Kernels* kernels : sets) {
            if (are_alike(run(seed, *kernels, 0x55), expected)) continue;
            ++mismatches;
            std::printf("seed %llu: %s and portable differ\n", static_cast<unsigned long long>(seed), kernels->name);
            for (const std::string& about : expected.about) std::printf("    %s\n", about.c_str());
        }
    }
    std::printf("%s against portable: %zu layers, some in %zu networks, %zu mismatches\n", names.c_str(), layers,
                networks, mismatches);
    return mismatches == 0 ? 0 : 1;
}

}  // namespace
}  // namespace dabnet

int main(int count, char** arguments) {
    if (count != 2 && count != 3) {
        std::fputs("usage: compare_kernels COUNT [SEED]\n", stderr);
        return 2;
    }
    const std::uint64_t seed = count == 3 ? std::strtoull(arguments[2], nullptr, 10) : 0;
    return dabnet::compare_all(seed, std::strtoull(arguments[1], nullptr, 10));
}
