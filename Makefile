# A thin front over the CMake presets: `make help` lists what there is.
#
# Nothing is decided here that CMakeLists.txt or CMakePresets.json could decide; this file only adds
# what CMake does not know: installing what is missing, Python environments, and short names.
BUILD   := build
JOBS    ?= $(shell nproc)
T       ?= 60
PREFIX  ?= /usr/local
WERROR  ?= $(if $(CI),ON,OFF)
VENV    := $(BUILD)/venv
ORACLES := $(BUILD)/oracles

# One thing at a time: each tool below uses all cores by itself.
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

python_tests := $(wildcard tests/python/test_*.py)
oracle_tests := $(wildcard tests/oracles/test_*.py)
fuzzers      := $(wildcard tests/fuzz/fuzz_*.c)

# Asked when it runs, since Ninja may have been installed a moment ago.
configure = CMAKE_GENERATOR="$$(command -v ninja >/dev/null && echo Ninja || echo Unix Makefiles)" cmake --preset $(1)
build = cmake --build $(1) --parallel $(JOBS)
ctest = ctest --test-dir $(1) --output-on-failure --parallel $(JOBS) --no-tests=error

# What a Python test finds: the command, and the folder of the build.
pytest_env = TIKI_BIN=$(CURDIR)/$(BUILD)/bin/tiki TIKI_BUILD=$(CURDIR)/$(BUILD) PYTHONPATH=$(CURDIR)/$(BUILD)/python PYTHONDONTWRITEBYTECODE=1

.PHONY: all help demo python test test-c test-python wheel test-wheel check-fast test-passes test-gpu nvptxcompiler sanitize sanitize-memory sanitize-threads \
        bench lint format fuzz test-oracles test-cute environments coverage docs install clean distclean

all: $(BUILD)/.configured ## the library and build/bin/tiki, optimised
	@$(call build,$(BUILD)) --target core

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

demo: all ## train a small language model for two minutes and let it write
	@tools/demo.sh $(BUILD)

test: test-c test-python ## all tests of the optimised build

test-c: deps-test $(BUILD)/.configured
	@$(call build,$(BUILD))
	@rm -rf $(BUILD)/kernels
	@$(call ctest,$(BUILD))

python: deps-python $(BUILD)/.python ## the package tiki in build/python, for PYTHONPATH
	@$(call build,$(BUILD)) --target tiki_python

$(BUILD)/.python: $(BUILD)/.configured | deps-python
	@cmake -DTIKI_PYTHON=ON $(BUILD) >/dev/null
	@touch $@

test-python: deps-test $(BUILD)/.configured
ifneq ($(python_tests),)
	@$(call build,$(BUILD)) --target core
	@$(MAKE) python
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@$(pytest_env) $(VENV)/bin/python -m pytest -q -p no:cacheprovider --numprocesses $(JOBS) --dist loadfile --no-loadscope-reorder tests/python
else
	@echo "tests/python: skipped, there are none yet"
endif

wheel: deps-python all ## the Python package in build/dist, with the libraries it needs
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@rm -rf $(BUILD)/dist
	@$(VENV)/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(BUILD)/dist \
	    --config-settings=build-dir=$(BUILD)/wheel-of-archive \
	    --config-settings=cmake.define.TIKI_ARCHIVE=$(CURDIR)/$(BUILD)/lib/libtiki.a .
	@ls -l $(BUILD)/dist

test-wheel: wheel ## install it into an empty environment and use it there
	@rm -rf $(BUILD)/wheel-venv
	@python3 -m venv $(BUILD)/wheel-venv
	@$(BUILD)/wheel-venv/bin/python -m pip install --quiet --disable-pip-version-check pytest $(BUILD)/dist/*.whl
	@test $$(stat -c %s $(BUILD)/dist/*.whl) -lt 15000000 || { echo "the wheel has more than 15 MB"; exit 1; }
	@env -u PYTHONPATH $(BUILD)/wheel-venv/bin/python -m pytest -q -p no:cacheprovider tests/wheel

check-fast: deps-test $(BUILD)/.configured ## the tests that take under a minute in all
	@$(call build,$(BUILD))
	@$(call ctest,$(BUILD)) --label-regex fast

test-passes: deps-test $(BUILD)/.configured ## ten thousand random kernels through every pass (about four minutes)
	@$(call build,$(BUILD)) --target test_kernel_passes_random
	@$(BUILD)/tests/test_kernel_passes_random --count 10000

test-gpu: deps-test $(BUILD)/.configured ## what needs a card: tests, sanitizers, benches; skipped without one
	@$(call build,$(BUILD)) --target gpu
	@rm -rf $(BUILD)/gpu/results
	@if [ -n "$$TIKI_CUTE_PYTHON" ]; then \
	    for test in $(BUILD)/gpu/test_gpu_cute*; do $$test --write $(BUILD)/gpu/cute || exit 1; done; fi
	@bench/gpu.sh $(BUILD)/gpu

nvptxcompiler: deps-python $(BUILD)/.configured ## the assembler as a shared object, for machines without ptxas; ARCHIVE=path of NVIDIA's, else from its Python package
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@tools/nvptxcompiler.sh $(BUILD) $(VENV)/bin/python $(ARCHIVE)

sanitize: sanitize-memory sanitize-threads ## all C tests with ASan, LSan and UBSan; threads with TSan

sanitize-memory: deps-sanitize $(BUILD)/asan-ubsan/.configured
	@$(call build,$(BUILD)/asan-ubsan)
	@$(call ctest,$(BUILD)/asan-ubsan)

sanitize-threads: deps-sanitize $(BUILD)/tsan/.configured
	@$(call build,$(BUILD)/tsan)
	@$(call ctest,$(BUILD)/tsan)

bench: deps-test $(BUILD)/.configured ## measure; RECORD=1 appends to bench/history
	@$(call build,$(BUILD))
	@$(MAKE) python
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@$(pytest_env) tools/bench.sh $(BUILD) $(VENV)/bin/python $(ORACLES)/bin/python

lint: deps-lint $(BUILD)/.configured ## format, clang-tidy, include direction, sizes, text
	@$(call build,$(BUILD)) --target tiki_headers tiki
	@tools/lint.sh $(BUILD)

format: deps-lint ## format all C files in place
	@find src include tests bench examples tools -name '*.[ch]' -o -name '*.inc' -o -name '*.cpp' | xargs clang-format -i

fuzz: ## run each fuzzer for T seconds (60); ONLY=layout runs that one
ifneq ($(fuzzers),)
	@$(MAKE) deps-sanitize $(BUILD)/asan-ubsan/.configured
	@$(call build,$(BUILD)/asan-ubsan) --target $(if $(ONLY),fuzz_$(ONLY),fuzzers)
	@tools/fuzz.sh $(BUILD)/asan-ubsan $(T) $(JOBS) $(ONLY)
else
	@echo "fuzz: skipped, there are no fuzzers yet"
endif

test-oracles: deps-test $(BUILD)/.configured ## compare with PyTorch and transformers (installs about 6 GB into build/oracles)
ifneq ($(oracle_tests),)
	@$(call build,$(BUILD))
	@$(MAKE) python
	@tools/venv.sh $(ORACLES) tests/oracles/requirements.txt
	@$(pytest_env) $(ORACLES)/bin/python -m pytest -q -p no:cacheprovider tests/oracles
else
	@echo "tests/oracles: skipped, there are none yet"
endif

test-cute: deps-test $(BUILD)/.configured ## build all kernels with NVIDIA's CuTe compiler too (installs about 400 MB into build/cute-venv)
	@$(call build,$(BUILD))
	@tools/venv.sh $(BUILD)/cute-venv tests/target/cute/requirements.txt
	@[ -d $(BUILD)/kernels ] || $(call ctest,$(BUILD)) --tests-regex '^(kernel|library|compile|target)\.'
	@TIKI_CUTE_PYTHON=$(CURDIR)/$(BUILD)/cute-venv/bin/python $(call ctest,$(BUILD)) --tests-regex '^(target\.cute|target\.both)'
	@$(MAKE) python
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@TIKI_CUTE_PYTHON=$(CURDIR)/$(BUILD)/cute-venv/bin/python $(pytest_env) $(VENV)/bin/python -m pytest -q -p no:cacheprovider tests/python/test_cute.py

environments: deps-python ## install the Python environments of all targets, which else do it when they run
	@tools/venv.sh $(VENV) tests/python/requirements.txt
	@tools/venv.sh $(BUILD)/cute-venv tests/target/cute/requirements.txt
	@tools/venv.sh $(BUILD)/docs-venv docs/requirements.txt
	@tools/venv.sh $(ORACLES) tests/oracles/requirements.txt

coverage: deps-coverage $(BUILD)/coverage/.configured ## lines of src that the tests reach
	@$(call build,$(BUILD)/coverage)
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@$(call ctest,$(BUILD)/coverage)
	@gcovr --root . --filter 'src/' --object-directory $(BUILD)/coverage --html-details $(BUILD)/coverage/index.html --print-summary

docs: all python ## the documentation as a site in build/docs
	@tools/venv.sh $(BUILD)/docs-venv docs/requirements.txt
	@tools/docs.sh $(BUILD) $(BUILD)/docs-venv/bin/python

install: all ## into DESTDIR and PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## remove what was built, keep the Python environments
	@find $(BUILD) -mindepth 1 -maxdepth 1 ! -name '*venv' ! -name oracles -exec rm -rf {} + 2>/dev/null || true

distclean: ## remove build/
	@rm -rf $(BUILD)

.PHONY: deps-build deps-python deps-test deps-sanitize deps-lint deps-coverage
deps-build deps-python deps-test deps-sanitize deps-lint deps-coverage: deps-%:
	@tools/deps.sh $*

$(BUILD)/.configured: CMakePresets.json $(BUILD)/.werror-$(WERROR) | deps-build
	@$(call configure,release) -DTIKI_WERROR=$(WERROR)
	@touch $@

# Changing WERROR configures again.
$(BUILD)/.werror-$(WERROR):
	@mkdir -p $(BUILD) && rm -f $(BUILD)/.werror-* && touch $@

$(BUILD)/asan-ubsan/.configured $(BUILD)/tsan/.configured: $(BUILD)/%/.configured: CMakePresets.json | deps-sanitize
	@$(call configure,$*)
	@touch $@

$(BUILD)/coverage/.configured: CMakePresets.json | deps-coverage
	@$(call configure,coverage)
	@touch $@
