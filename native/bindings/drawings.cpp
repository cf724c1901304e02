#include "drawings.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

#include "../drawings.h"
#include "arrays.h"

namespace nb = nanobind;
using namespace nb::literals;
using dabnet::Drawings;

namespace {

using Points = Array<const float, nb::shape<-1, 2>, nb::c_contig>;

// The items of a plain list or tuple; a count of -1 for anything else. By functions, as the stable ABI has no macros.
struct Items {
    PyObject* object;
    bool is_list;
    Py_ssize_t count = -1;

    explicit Items(PyObject* object) : object(object), is_list(PyList_CheckExact(object)) {
        if (is_list) {
            count = PyList_Size(object);
        } else if (PyTuple_CheckExact(object)) {
            count = PyTuple_Size(object);
        }
    }

    // Borrowed.
    PyObject* operator[](Py_ssize_t i) const {
        return is_list ? PyList_GetItem(object, i) : PyTuple_GetItem(object, i);
    }
};

bool to_float(PyObject* object, float& value) {
    double number;
    if (PyFloat_CheckExact(object)) {
        number = PyFloat_AsDouble(object);
    } else if (PyLong_CheckExact(object)) {
        number = PyLong_AsDouble(object);
        if (number == -1.0 && PyErr_Occurred() != nullptr) return PyErr_Clear(), false;
    } else {
        return false;
    }
    if (!(std::fabs(number) <= static_cast<double>(std::numeric_limits<float>::max()))) return false;
    value = static_cast<float>(number);
    return true;
}

bool add_points(const Items& stroke, Drawings& drawings) {
    for (Py_ssize_t i = 0; i < stroke.count; ++i) {
        const Items point(stroke[i]);
        float x, y;
        if (point.count != 2 || !to_float(point[0], x) || !to_float(point[1], y)) return false;
        drawings.points.push_back(x);
        drawings.points.push_back(y);
    }
    if (stroke.count != 0) drawings.stroke_ends.push_back(static_cast<std::int64_t>(drawings.points.size() / 2));
    return true;
}

// Adds strokes [[(x, y), ...], ...] of plain lists, tuples and numbers; returns false, and adds nothing, for whatever
// else it may be.
bool add_strokes(Drawings& drawings, nb::handle strokes) {
    const Items all(strokes.ptr());
    std::int64_t points = 0;
    bool is_plain = all.count >= 0 && all.count <= dabnet::kMostPoints;
    for (Py_ssize_t i = 0; i < all.count && is_plain; ++i) {
        const Items stroke(all[i]);
        points += stroke.count;
        is_plain = stroke.count >= 0 && points <= dabnet::kMostPoints && add_points(stroke, drawings);
    }
    if (is_plain) return drawings.end_drawing();
    drawings.drop_drawing();
    return false;
}

// Adds a sketch that was checked.
void add(Drawings& drawings, Points points, Vector<const std::int64_t> ends) {
    const auto first = static_cast<std::int64_t>(drawings.points.size() / 2);
    drawings.points.insert(drawings.points.end(), points.data(), points.data() + points.size());
    for (std::size_t i = 0; i < ends.shape(0); ++i) drawings.stroke_ends.push_back(first + ends.data()[i]);
    drawings.drawing_ends.push_back(static_cast<std::int64_t>(drawings.stroke_ends.size()));
}

bool add_json(Drawings& drawings, nb::bytes data) {
    return dabnet::read_drawing({static_cast<const char*>(data.data()), data.size()}, drawings);
}

// (number, from, to, is_read) of each line that is not blank, and how many lines there are.
auto add_lines(Drawings& drawings, nb::bytes data, int threads) {
    std::vector<dabnet::Line> lines;
    std::size_t count;
    {
        const nb::gil_scoped_release release;
        count = dabnet::read_lines({static_cast<const char*>(data.data()), data.size()}, threads, drawings, lines);
    }
    std::vector<std::tuple<std::size_t, std::size_t, std::size_t, bool>> said;
    said.reserve(lines.size());
    for (const auto& [number, from, to, is_read] : lines) said.emplace_back(number, from, to, is_read);
    return std::pair(std::move(said), count);
}

// The points of a drawing, and where its strokes end.
auto strokes_of(const Drawings& drawings, std::size_t i) {
    if (i >= drawings.size()) throw nb::index_error();
    const std::size_t first = drawings.first_point(i), end = drawings.first_point(i + 1);
    auto* points = new float[2 * (end - first)];
    const nb::capsule owns_points(points, [](void* all) noexcept { delete[] static_cast<float*>(all); });
    std::copy(drawings.points.begin() + static_cast<std::ptrdiff_t>(2 * first),
              drawings.points.begin() + static_cast<std::ptrdiff_t>(2 * end), points);
    const std::size_t stroke = drawings.first_stroke(i), strokes = drawings.first_stroke(i + 1) - stroke;
    auto* ends = new std::int64_t[strokes];
    const nb::capsule owns_ends(ends, [](void* all) noexcept { delete[] static_cast<std::int64_t*>(all); });
    for (std::size_t j = 0; j < strokes; ++j) {
        ends[j] = drawings.stroke_ends[stroke + j] - static_cast<std::int64_t>(first);
    }
    return nb::make_tuple(Array<float, nb::shape<-1, 2>>(points, {end - first, 2}, owns_points),
                          Array<std::int64_t, nb::shape<-1>>(ends, {strokes}, owns_ends));
}

}  // namespace

void bind_drawings(nb::module_& module) {
    nb::class_<Drawings>(module, "Drawings", "Many drawings' strokes.")
        .def(nb::init<>())
        .def("__len__", &Drawings::size)
        .def("add", add, "points"_a.noconvert(), "ends"_a.noconvert(), "Add strokes that were checked.")
        .def("add_strokes", add_strokes, "strokes"_a.none(),
             "Add plain lists of numbers; return False for anything else.")
        .def("add_json", add_json, "data"_a, "Add a drawing of JSON in plain form; return False for anything else.")
        .def("add_lines", add_lines, "data"_a, "threads"_a,
             "Add a drawing per line; return (number, from, to, was added) of each line that is not blank, and their "
             "count.")
        .def("strokes", strokes_of, "i"_a, "Return a drawing's points, and where its strokes end.");
}
