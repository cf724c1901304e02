#pragma once

#include <nanobind/nanobind.h>

// Adds what Python sees of reading pictures.
void bind_picture(nanobind::module_& module);
