#include "picture.h"

#include <cstdint>

#include "../picture/picture.h"
#include "../raster.h"
#include "arrays.h"

namespace nb = nanobind;

void bind_picture(nb::module_& module) {
    using Pixels = Array<const std::uint8_t, nb::ndim<3>, nb::c_contig>;
    using Bitmap = Array<std::uint8_t, nb::shape<dabnet::kGrid, dabnet::kGrid / 2>, nb::c_contig>;

    module.def(
        "find_ink",
        [](Pixels pixels, Bitmap bitmap, bool is_clean) -> const char* {
            const dabnet::Picture picture{pixels.data(), pixels.shape(1), pixels.shape(0), pixels.shape(2)};
            nb::gil_scoped_release release;
            switch (dabnet::find_ink(picture, bitmap.data(), is_clean)) {
                case dabnet::PictureKind::kClean:
                    return "clean";
                case dabnet::PictureKind::kPhotograph:
                    return "photograph";
                default:
                    return nullptr;
            }
        },
        nb::arg("pixels").noconvert(), nb::arg("bitmap").noconvert(), nb::arg("is_clean"),
        "Write a picture's ink, (height, width, 1, 3 or 4), into `bitmap`; return its kind, or None without ink.");
}
