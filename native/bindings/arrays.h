// Arrays as Python hands them over.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

template <typename T, typename... Shape>
using Array = nanobind::ndarray<T, nanobind::numpy, nanobind::device::cpu, Shape...>;
template <typename T>
using Vector = Array<T, nanobind::ndim<1>, nanobind::c_contig>;
template <typename T>
using Matrix = Array<T, nanobind::ndim<2>, nanobind::c_contig>;
