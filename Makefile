# `make demo` and `make test`, from nothing but python >= 3.11, pip and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Workers of the test run; each runs torch on one thread.
WORKERS ?= 2

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help setup demo test lint types unit bench clean

help:
	@echo "make demo    set up .venv, run documents/v2/generate_probe.json, show what it says"
	@echo "make test    set up .venv, then lint, types and all tests"
	@echo "make lint | types | unit    one of the three; unit takes ARGS='tests/unit -k store'"
	@echo "make bench   time every job beside plain loops, write docs/performance.md; CAUSALAB_SMOLLM2=DIR for SmolLM2"
	@echo "make clean   remove .venv, out and caches"

setup: $(STAMP)

# The pins first, then the package alone on top of them, built with the pinned backend.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; say: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

demo: $(STAMP)
	$(BIN)/causalab-mini run documents/v2/generate_probe.json --out out/gen

test: lint types unit

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/basedpyright

unit: $(STAMP)
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n $(WORKERS) $(ARGS)

bench: $(STAMP)
	OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) out .ruff_cache .hypothesis
