// Shows packed networks to Python.
#pragma once

#include <nanobind/nanobind.h>

void bind_network(nanobind::module_& module);
