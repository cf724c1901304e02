// Drawings as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

void bind_drawings(nanobind::module_& module);
