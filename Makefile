# Everything works from a clean clone: each target makes what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
WORKERS ?= 2

.PHONY: help setup run test check demo bench clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## create .venv with everything

# uv where it is there, venv and pip where it is not.
$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv -q --allow-existing --python $(PYTHON) .venv && \
	  uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[all]' --group dev; \
	else \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check 'pip>=25.1' && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all]' --group dev; \
	fi
	@touch $@

run: setup  ## serve examples/calculator.py on port 8000
	$(BIN)/python examples/calculator.py serve --port 8000

test: setup  ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) -q

check: setup  ## lint, types, imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: setup  ## one call over every wire, side by side
	$(BIN)/python examples/demo.py

bench: setup  ## the figures in docs/performance.md
	$(BIN)/python -m bench

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
