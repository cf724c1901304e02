// What Python sees of the native code. Arrays arrive checked (dabnet.binarizers.split, dabnet.sketches.raster,
// dabnet.runtime.session); no arithmetic here.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include "../binarize.h"
#include "../raster.h"
#include "arrays.h"
#include "drawings.h"
#include "model.h"
#include "picture.h"

namespace nb = nanobind;

using Image = Matrix<std::uint8_t>;
using Bitmap = Array<const std::uint8_t, nb::shape<dabnet::kGrid, dabnet::kGrid / 2>, nb::c_contig>;

// What compiled this, for reports of problems.
const char* compiler() {
#define DABNET_TEXT(number) #number
#define DABNET_NUMBER(number) DABNET_TEXT(number)
#if defined(__clang__)
    return "Clang " __clang_version__;
#elif defined(__GNUC__)
    return "GCC " __VERSION__;
#elif defined(_MSC_VER)
    return "MSVC " DABNET_NUMBER(_MSC_FULL_VER);
#else
    return "another compiler";
#endif
}

NB_MODULE(_native, module) {
    module.attr("COMPILER") = compiler();
#ifdef Py_LIMITED_API
    module.attr("IS_STABLE_ABI") = true;
#else
    module.attr("IS_STABLE_ABI") = false;
#endif

    module.def(
        "split_filters",
        [](Array<const float, nb::ndim<2>> weights, std::optional<Vector<const std::int64_t>> least,
           std::optional<Vector<const std::int64_t>> most, int threads, Vector<double> alpha, Vector<double> beta,
           Matrix<std::uint8_t> mask, Vector<std::int64_t> k, std::optional<Matrix<float>> binary) {
            const dabnet::Filters filters{weights.data(), weights.shape(0), weights.shape(1), weights.stride(0),
                                          weights.stride(1)};
            dabnet::LowCounts limits;
            if (least && most) limits = {least->data(), most->data()};
            const dabnet::SplitResults out{alpha.data(), beta.data(), mask.data(), k.data(),
                                           binary ? binary->data() : nullptr};
            nb::gil_scoped_release release;
            return dabnet::split_filters(filters, limits, threads, out);
        },
        nb::arg("weights").noconvert(), nb::arg("least").none(), nb::arg("most").none(), nb::arg("threads"),
        nb::arg("alpha").noconvert(), nb::arg("beta").noconvert(), nb::arg("mask").noconvert(),
        nb::arg("k").noconvert(), nb::arg("binary").none(),
        "Split every row of `weights`; return the first row that is not finite, or -1.");

    module.def(
        "paper_gradient",
        [](Matrix<const float> gradient, Matrix<const float> weights, Matrix<const std::uint8_t> mask,
           Vector<const float> alpha, Vector<const float> beta, int threads, Matrix<float> out) {
            nb::gil_scoped_release release;
            dabnet::paper_gradient({gradient.data(), weights.data(), mask.data(), alpha.data(), beta.data(),
                                    weights.shape(0), weights.shape(1), out.data()},
                                   threads);
        },
        nb::arg("gradient").noconvert(), nb::arg("weights").noconvert(), nb::arg("mask").noconvert(),
        nb::arg("alpha").noconvert(), nb::arg("beta").noconvert(), nb::arg("threads"), nb::arg("out").noconvert(),
        "Write the paper's gradient of dab weights into `out`.");

    module.def(
        "rasterize_strokes",
        [](Array<const float, nb::shape<-1, 2>, nb::c_contig> points, Vector<const std::int64_t> stroke_ends,
           double margin, double pen, Image out) {
            nb::gil_scoped_release release;
            dabnet::rasterize_strokes(points.data(), stroke_ends.data(), stroke_ends.shape(0),
                                      {out.shape(0), margin, pen}, out.data());
        },
        nb::arg("points").noconvert(), nb::arg("stroke_ends").noconvert(), nb::arg("margin"), nb::arg("pen"),
        nb::arg("out").noconvert(), "Draw strokes into `out`.");

    module.def(
        "rasterize_bitmap",
        [](Bitmap bitmap, double line_width, double margin, double pen, Image out) {
            nb::gil_scoped_release release;
            return dabnet::rasterize_bitmap(bitmap.data(), line_width, {out.shape(0), margin, pen}, out.data());
        },
        nb::arg("bitmap").noconvert(), nb::arg("line_width"), nb::arg("margin"), nb::arg("pen"),
        nb::arg("out").noconvert(), "Redraw a bitmap into `out`; return whether it has ink.");

    module.def(
        "measure_line_width",
        [](Bitmap bitmap) {
            nb::gil_scoped_release release;
            return dabnet::measure_line_width(bitmap.data());
        },
        nb::arg("bitmap").noconvert(), "Estimate how wide a bitmap's lines are, in its pixels.");

    bind_drawings(module);
    bind_model(module);
    bind_picture(module);
}
