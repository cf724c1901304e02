# Two commands do everything; each sets up what it needs. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
NATIVE := $(wildcard native/*.* native/*/*.* examples/c/*.c)
# Python may remember a compiler from where it was built; take the one that is here.
ifeq ($(origin CXX),default)
CXX := c++
endif
export CXX

.DEFAULT_GOAL := setup
.PHONY: setup help node demo test test-neon test-js test-scale wasm npm check docs figures fuzz fuzz-api fuzz-inputs library \
	race wheel wheels test-wheels sizes format clean
