// Shows packed models to Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_model(nanobind::module_& module);
