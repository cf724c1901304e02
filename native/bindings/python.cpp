// What Python sees of the native code. Arrays arrive checked (dabnet.binarizers.split); no arithmetic here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "../split.h"

namespace nb = nanobind;

template <typename T, typename... Shape>
using Array = nb::ndarray<T, nb::numpy, nb::device::cpu, Shape...>;
template <typename T>
using Vector = Array<T, nb::ndim<1>, nb::c_contig>;

NB_MODULE(_native, module) {
    module.def(
        "split_filters",
        [](Array<const float, nb::ndim<2>> weights, std::optional<Vector<const std::int64_t>> least,
           std::optional<Vector<const std::int64_t>> most, int threads, Vector<double> alpha, Vector<double> beta,
           Array<bool, nb::ndim<2>, nb::c_contig> mask, Vector<std::int64_t> k) {
            const dabnet::Filters filters{weights.data(), weights.shape(0), weights.shape(1), weights.stride(0),
                                          weights.stride(1)};
            dabnet::LowCounts limits;
            if (least && most) limits = {least->data(), most->data()};
            const dabnet::SplitResults out{alpha.data(), beta.data(), mask.data(), k.data()};
            nb::gil_scoped_release release;
            return dabnet::split_filters(filters, limits, threads, out);
        },
        nb::arg("weights").noconvert(), nb::arg("least").none(), nb::arg("most").none(), nb::arg("threads"),
        nb::arg("alpha").noconvert(), nb::arg("beta").noconvert(), nb::arg("mask").noconvert(),
        nb::arg("k").noconvert(), "Split every row of `weights`; return the first row that is not finite, or -1.");
}
