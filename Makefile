# The README's two commands. Both need nothing but make and python3 >= 3.11 with venv; the first call
# of either makes .venv and installs into it (with uv, where uv is on the path, for speed).
#
#   make reproduce   run the main job on embedded data and write results/
#   make test        lint, types and tests
#   make check       lint, types and the tests of tests/check.txt: 90 seconds, for the loop of writing
#   make docs        the site of the documentation, into build/docs/html; DOCS_VERSION=0.2.0 make docs
#                    names a release, and writes into build/docs/0.2.0
#   make dist        the source archive and the wheel, into dist/, checked
#
# PYTHON=python3.13 make test   takes another interpreter.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= auto

DOCS_STAMP := $(VENV)/.docs-installed
DOCS_VERSION ?=
DOCS_OUT := build/docs/$(or $(DOCS_VERSION),html)

.PHONY: reproduce test check types suite quick docs dist install clean

reproduce: $(STAMP)
	$(BIN)/judgebayes reproduce distribution-calibrated --twins --out results

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	@$(MAKE) --no-print-directory --jobs 2 types suite

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/codespell
	@$(MAKE) --no-print-directory --jobs 2 types quick

suite: $(STAMP)
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder

types: $(STAMP)
	$(BIN)/python -m mypy

quick: $(STAMP)
	$(BIN)/python -m pytest -q @tests/check.txt

docs: $(DOCS_STAMP)
	DOCS_VERSION=$(DOCS_VERSION) $(BIN)/python -m sphinx --fail-on-warning --keep-going --fresh-env -q -b html -d build/docs/doctrees docs $(DOCS_OUT)
	@echo "The site is in $(DOCS_OUT): open index.html."

dist:
	PYTHON=$(PYTHON) tests/dist.sh dist

install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "judgebayes needs Python 3.11 or newer; $(PYTHON) is older or missing. Name another: make $(MAKECMDGOALS) PYTHON=python3.13"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "$(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable . --group dev; \
	else \
		$(BIN)/python -m pip install --quiet --upgrade pip && \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev; \
	fi
	@touch $(STAMP)

$(DOCS_STAMP): $(STAMP)
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --group docs; \
	else \
		$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs; \
	fi
	@touch $(DOCS_STAMP)

clean:
	rm -rf $(VENV) build dist results .jax_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
