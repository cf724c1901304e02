#include "network.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "../layers/layers.h"
#include "../network.h"
#include "../values.h"
#include "arrays.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <std::size_t N>
using Sizes = std::array<std::size_t, N>;
using Floats = Vector<const float>;
using Bytes = Vector<const std::uint8_t>;
using Sign = std::pair<std::optional<Floats>, std::optional<Bytes>>;  // thresholds, and which are flipped

using Pooling = std::tuple<Sizes<2>, Sizes<2>, Sizes<4>, Sizes<2>>;  // kernel, stride, padding, dilation

const float* data_of(const std::optional<Floats>& numbers) { return numbers ? numbers->data() : nullptr; }

// Builds a network, a layer at a time, from what dabnet.packed has checked.
class Builder {
   public:
    Builder(Sizes<3> input, int threads, std::size_t max_memory, const std::string& kernels)
        : kernels_(dabnet::find_kernels(kernels.empty() ? nullptr : kernels.c_str())),
          network_(
              std::make_unique<dabnet::Network>(dabnet::Shape{input[0], input[1], input[2]}, threads, max_memory)) {
        if (kernels_ == nullptr) throw nb::value_error("no such kernels");
    }

    // Returns the number of the first value that it makes: real numbers, then signs.
    std::size_t conv(std::size_t input, Sizes<2> kernel, Sizes<2> stride, Sizes<4> padding, Sizes<2> dilation,
                     std::size_t filters, std::size_t groups, bool pad_with_ones, std::optional<Floats> weight,
                     std::optional<Bytes> bits, std::optional<Floats> scale, std::optional<Floats> middle,
                     std::optional<Floats> bias, std::optional<std::size_t> added, const std::vector<Sign>& signs,
                     bool makes_real, std::optional<Floats> slope, float low, float high, std::optional<Pooling> pool) {
        if (signs.size() > dabnet::kMostSigns) throw nb::value_error("too many signs");
        const dabnet::Shape shape = network_->shape(input);
        const dabnet::Window window = window_over(shape, kernel, stride, padding, dilation);
        dabnet::Budget& budget = network_->budget();
        dabnet::Followers followers;
        followers.adds = added.has_value();
        for (const auto& [threshold, flip] : signs) {
            followers.signs.push_back({data_of(threshold), flip ? flip->data() : nullptr});
        }
        followers.makes_real = makes_real;
        followers.slope = data_of(slope);
        followers.low = low;
        followers.high = high;
        dabnet::Shape output{filters, window.down.places, window.across.places};
        dabnet::Window pool_window{};
        if (pool) {
            if (!weight || added) throw nb::value_error("only a plain convolution can be pooled");
            pool_window = std::apply([&](auto... sizes) { return window_over(output, sizes...); }, *pool);
            output = {filters, pool_window.down.places, pool_window.across.places};
            followers.pool = &pool_window;
        }
        std::unique_ptr<dabnet::Layer> layer;
        if (weight) {
            layer = dabnet::make_convolution(*kernels_, budget, shape, window, filters, groups, weight->data(),
                                             data_of(bias), followers);
        } else {
            const dabnet::OneBitWeights weights{bits->data(), scale->data(), data_of(middle), data_of(bias)};
            layer = shape.is_signs ? dabnet::make_binary_convolution(*kernels_, budget, shape, window, filters, groups,
                                                                     pad_with_ones, weights, followers)
                                   : dabnet::make_one_bit_convolution(*kernels_, budget, shape, window, filters, groups,
                                                                      weights, followers);
        }
        std::vector<dabnet::Shape> outputs;
        if (makes_real) outputs.push_back(output);
        output.is_signs = true;
        outputs.insert(outputs.end(), signs.size(), output);
        std::vector<std::size_t> inputs{input};
        if (added) inputs.push_back(*added);
        return network_->add(std::move(layer), std::move(inputs), outputs);
    }

    std::size_t sign(std::size_t input, std::optional<Floats> threshold, std::optional<Bytes> flip) {
        dabnet::Shape shape = network_->shape(input);
        auto layer =
            dabnet::make_sign(*kernels_, network_->budget(), shape, data_of(threshold), flip ? flip->data() : nullptr);
        shape.is_signs = true;
        return add(std::move(layer), {input}, shape);
    }

    std::size_t affine(std::size_t input, Floats scale, Floats shift) {
        const dabnet::Shape shape = network_->shape(input);
        return add(dabnet::make_affine(network_->budget(), shape, scale.data(), shift.data()), {input}, shape);
    }

    std::size_t clamp(std::size_t input, float low, float high) {
        const dabnet::Shape shape = network_->shape(input);
        return add(dabnet::make_clamp(shape, low, high), {input}, shape);
    }

    std::size_t prelu(std::size_t input, Floats slope) {
        const dabnet::Shape shape = network_->shape(input);
        return add(dabnet::make_prelu(network_->budget(), shape, slope.data()), {input}, shape);
    }

    std::size_t max_pool(std::size_t input, Sizes<2> kernel, Sizes<2> stride, Sizes<4> padding, Sizes<2> dilation) {
        const dabnet::Shape shape = network_->shape(input);
        const dabnet::Window window = window_over(shape, kernel, stride, padding, dilation);
        return add(dabnet::make_max_pool(*kernels_, shape, window), {input},
                   {shape.channels, window.down.places, window.across.places});
    }

    std::size_t average_pool(std::size_t input, Sizes<2> kernel, Sizes<2> stride, Sizes<4> padding, Sizes<2> dilation,
                             bool count_padding) {
        const dabnet::Shape shape = network_->shape(input);
        const dabnet::Window window = window_over(shape, kernel, stride, padding, dilation);
        return add(dabnet::make_average_pool(*kernels_, shape, window, count_padding), {input},
                   {shape.channels, window.down.places, window.across.places});
    }

    std::size_t adaptive_pool(std::size_t input, Sizes<2> size, bool largest) {
        const dabnet::Shape shape = network_->shape(input);
        return add(dabnet::make_adaptive_pool(*kernels_, shape, size[0], size[1], largest), {input},
                   {shape.channels, size[0], size[1]});
    }

    std::size_t add_values(std::size_t a, std::size_t b) {
        return add(dabnet::make_add(network_->shape(a)), {a, b}, network_->shape(a));
    }

    std::size_t concat(const std::vector<std::size_t>& inputs) {
        std::vector<dabnet::Shape> shapes;
        dabnet::Shape joined = network_->shape(inputs[0]);
        joined.channels = 0;
        for (std::size_t input : inputs) {
            shapes.push_back(network_->shape(input));
            joined.channels += shapes.back().channels;
        }
        auto layer = joined.is_signs ? dabnet::make_sign_concat(network_->budget(), shapes)
                                     : dabnet::make_concat(network_->budget(), shapes);
        return add(std::move(layer), inputs, joined);
    }

    std::size_t sign_pool(std::size_t input, Sizes<2> kernel, Sizes<2> stride, Sizes<4> padding, Sizes<2> dilation,
                          std::optional<Bytes> flip) {
        const dabnet::Shape shape = network_->shape(input);
        const dabnet::Window window = window_over(shape, kernel, stride, padding, dilation);
        auto layer = dabnet::make_sign_pool(network_->budget(), shape, window, flip ? flip->data() : nullptr);
        return add(std::move(layer), {input}, {shape.channels, window.down.places, window.across.places, true});
    }

    std::size_t flatten(std::size_t input) {
        const dabnet::Shape shape = network_->shape(input);
        return add(dabnet::make_flatten(shape), {input}, {shape.count(), 1, 1});
    }

    void plan(std::size_t answer) { network_->plan(answer); }

    bool run(Array<const float, nb::ndim<4>, nb::c_contig> sketches, Matrix<float> answers) const {
        const nb::gil_scoped_release release;
        if (!dabnet::are_finite(sketches.data(), sketches.size())) return false;
        network_->run(sketches.data(), sketches.shape(0), answers.data());
        return true;
    }

    std::vector<double> time_steps(Array<const float, nb::ndim<4>, nb::c_contig> sketch) const {
        std::vector<float> answers(network_->answers());
        const nb::gil_scoped_release release;
        return network_->time_steps(sketch.data(), answers.data());
    }

    // Of the first value that a step makes.
    Sizes<3> output_shape(std::size_t step) const {
        const dabnet::Shape& shape = network_->output_shape(step);
        return {shape.channels, shape.height, shape.width};
    }

    const char* kernels() const { return kernels_->name; }
    std::size_t memory() const { return network_->memory(); }

   private:
    std::size_t add(std::unique_ptr<dabnet::Layer> layer, std::vector<std::size_t> inputs, dabnet::Shape output) {
        return network_->add(std::move(layer), std::move(inputs), {output});
    }

    static dabnet::Window window_over(const dabnet::Shape& shape, Sizes<2> kernel, Sizes<2> stride, Sizes<4> padding,
                                      Sizes<2> dilation) {
        const auto axis = [&](std::size_t size, int i) {
            const std::size_t span = dilation[i] * (kernel[i] - 1) + 1;
            const std::size_t places = (size + padding[i] + padding[i + 2] - span) / stride[i] + 1;
            return dabnet::Axis{size, places, kernel[i], stride[i], padding[i], dilation[i]};
        };
        return {axis(shape.height, 0), axis(shape.width, 1)};
    }

    const dabnet::Kernels* kernels_;
    std::unique_ptr<dabnet::Network> network_;
};

std::vector<std::string> kernel_names() {
    std::vector<std::string> names;
    for (const dabnet::Kernels* const* kernels = dabnet::kAllKernels; *kernels != nullptr; ++kernels) {
        if ((*kernels)->runs_here()) names.emplace_back((*kernels)->name);
    }
    return names;
}

}  // namespace

void bind_network(nb::module_& module) {
    nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
        try {
            std::rethrow_exception(thrown);
        } catch (const dabnet::TooLarge&) {
            PyErr_SetString(PyExc_MemoryError, "it takes more memory than allowed");
        }
    });
    module.def("kernel_names", kernel_names, "Give the names of the kernels that run here, the fastest first.");
    nb::class_<Builder>(module, "Network", "A packed network; its layers are added in order, then it is planned.")
        .def(nb::init<Sizes<3>, int, std::size_t, const std::string&>(), "size"_a, "threads"_a, "max_memory"_a,
             "kernels"_a)
        .def("conv", &Builder::conv, "value"_a, "kernel"_a, "stride"_a, "padding"_a, "dilation"_a, "filters"_a,
             "groups"_a, "pad_with_ones"_a, "weight"_a.none(), "bits"_a.none(), "scale"_a.none(), "middle"_a.none(),
             "bias"_a.none(), "added"_a.none(), "signs"_a, "makes_real"_a, "slope"_a.none(), "low"_a, "high"_a,
             "pool"_a.none())
        .def("sign", &Builder::sign, "value"_a, "threshold"_a.none(), "flip"_a.none())
        .def("affine", &Builder::affine, "value"_a, "scale"_a, "shift"_a)
        .def("clamp", &Builder::clamp, "value"_a, "low"_a, "high"_a)
        .def("prelu", &Builder::prelu, "value"_a, "slope"_a)
        .def("max_pool", &Builder::max_pool, "value"_a, "kernel"_a, "stride"_a, "padding"_a, "dilation"_a)
        .def("average_pool", &Builder::average_pool, "value"_a, "kernel"_a, "stride"_a, "padding"_a, "dilation"_a,
             "count_padding"_a)
        .def("adaptive_pool", &Builder::adaptive_pool, "value"_a, "size"_a, "largest"_a)
        .def("sign_pool", &Builder::sign_pool, "value"_a, "kernel"_a, "stride"_a, "padding"_a, "dilation"_a,
             "flip"_a.none())
        .def("add", &Builder::add_values, "a"_a, "b"_a)
        .def("concat", &Builder::concat, "inputs"_a)
        .def("flatten", &Builder::flatten, "value"_a)
        .def("plan", &Builder::plan, "answer"_a)
        .def("run", &Builder::run, "sketches"_a.noconvert(), "answers"_a.noconvert(),
             "Run the sketches, unless a number in them is not finite; return whether they ran.")
        .def("time_steps", &Builder::time_steps, "sketch"_a.noconvert())
        .def("output_shape", &Builder::output_shape, "step"_a)
        .def_prop_ro("kernels", &Builder::kernels)
        .def_prop_ro("memory", &Builder::memory);
}
