# One place for every habit: setup fix check test test-all test-peers fuzz demo bench docs.
# Uses uv where it is found, plain venv + pip otherwise. Nothing but Python needs to be installed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
UV := $(shell command -v uv 2>/dev/null)
STAMP := $(VENV)/.penstock-installed
PEERS ?= .venv-peers
PEERS_STAMP := $(PEERS)/.penstock-installed

.PHONY: setup fix check test test-all test-peers fuzz demo bench docs

setup: $(STAMP)

# The JPEG kernel is built where libjpeg-turbo's headers are; without them a slower fallback does its work.
$(STAMP): pyproject.toml setup.py $(wildcard src/penstock/codecs/kernel/c/* src/penstock/tasks/inference/c/* src/penstock/storage/c/*)
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && [ ! -e /usr/include/jpeglib.h ]; then \
		{ apt-get update -qq && apt-get install -y -qq libjpeg62-turbo-dev; } >/dev/null 2>&1 || \
		echo "libjpeg62-turbo-dev could not be installed: JPEGs will be decoded without the kernel."; fi
ifneq ($(UV),)
	test -x $(BIN)/python || $(UV) venv --quiet --python $(PYTHON) $(VENV)
	$(UV) pip install --quiet --python $(BIN)/python -e '.[dev]'
else
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
endif
	@touch $(STAMP)

fix: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_architecture.py

# Workers that run tests side by side; each test runs in one thread of torch. `worksteal` keeps the tests of a file together
# until the end, when a worker without work takes half of what another one has left.
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

# At most ten minutes on two quiet cores.
test: setup
	$(PYTEST) -m 'not slow'

# Everything: trainings, demonstrations, notebooks and sanitizers too.
test-all: setup
	$(PYTEST)

# The frameworks that judge us (TensorFlow, JAX, …), in an environment of their own: 9 GB, some minutes the first time.
test-peers: $(PEERS_STAMP)
	$(PEERS)/bin/python -m pytest -q tests/peers

# The kernel is built by setup; the environment of the peers uses the same source folder.
$(PEERS_STAMP): pyproject.toml | $(STAMP)
ifneq ($(UV),)
	test -x $(PEERS)/bin/python || $(UV) venv --quiet --python $(PYTHON) $(PEERS)
	$(UV) pip install --quiet --python $(PEERS)/bin/python -e '.[peers]'
else
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
endif
	@touch $(PEERS_STAMP)

# Damaged files through every reader, half of the time; any bytes through the C code, with sanitizers, the other half.
FUZZ_SECONDS ?= 600
FUZZ_SEED ?= $(shell date +%s)
C_SOURCES := src/penstock/codecs/kernel/c
fuzz: setup
	@mkdir -p build
	PYTHONPATH=src:tests $(BIN)/python -W ignore -m tests.fuzzing.readers $$(($(FUZZ_SECONDS) / 2)) $(FUZZ_SEED) 2>build/fuzz-readers.log || \
		{ tail -3 build/fuzz-readers.log; exit 1; }
	@if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer -x c - -o build/fuzz-try 2>/dev/null; then \
		clang -std=c99 -O1 -g -DPENSTOCK_MOST_PIXELS='(1L<<20)' -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
			-I$(C_SOURCES) $$(ls $(C_SOURCES)/*.c | grep -v module.c) tests/fuzzing/c_entries.c -ljpeg -lm -o build/fuzz-c && \
		PYTHONPATH=src:tests $(BIN)/python -m tests.fuzzing.seeds build/fuzz-corpus && \
		build/fuzz-c -max_total_time=$$(($(FUZZ_SECONDS) / 2)) -max_len=20000 -print_final_stats=1 build/fuzz-corpus >build/fuzz-c.log 2>&1 && \
		tail -8 build/fuzz-c.log || { tail -30 build/fuzz-c.log; exit 1; }; \
	else echo "clang or its libFuzzer is not installed: the C code was not fuzzed (apt-get install clang libclang-rt-dev)."; fi

demo: setup
	$(BIN)/penstock demo --folder demo-output

# Every table that can run here, and docs/performance.md from what they found: hours, on an idle machine.
bench: setup
	$(BIN)/python -m benchmarks

# Reference pages first, from the code; then the site, where every warning is an error.
docs: setup
	$(BIN)/python docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	@echo "build/site/index.html"
