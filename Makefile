# Everything works from a clean clone: each target makes what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JUDGES := node_modules/.ready
WORKERS ?= 2
FUZZ ?= 60
CALLS ?= 200000
SECONDS ?= 300

.PHONY: help setup run test conformance check demo bench fuzz soak clean

help:  ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY) $(JUDGES)  ## create .venv and node_modules with everything

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

# The official MCP suite and clients, for the tests alone. A registry may fail once.
NPM_INSTALL := npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error
$(JUDGES): package.json
	@$(NPM_INSTALL) || $(NPM_INSTALL)
	@touch $@

run: $(READY)  ## serve examples/calculator.py on port 8000
	$(BIN)/python examples/calculator.py serve --port 8000

test: setup  ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) -q

conformance: setup  ## the official MCP suite against examples/conformance.py
	$(BIN)/python -m tests.mcp.conformance

check: $(READY)  ## lint, types, imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(READY)  ## one call over every wire, side by side
	$(BIN)/python examples/demo.py

bench: $(READY)  ## the figures in docs/performance.md
	$(BIN)/python -m bench

fuzz: $(READY)  ## spoil messages, FUZZ seconds for each of some twenty properties
	ANSWERBACK_FUZZ=$(FUZZ) $(BIN)/python -m pytest -n $(WORKERS) -q tests/fuzz

soak: $(READY)  ## many calls over every wire, by clients that come, go and vanish
	$(BIN)/python -m bench.soak $(CALLS) $(SECONDS)

clean:
	rm -rf .venv node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
