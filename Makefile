# The one entry. `make` alone prints the verbs; every verb works on a fresh clone.

PYTHON ?= python3
# Tests wait as much as they work: half as many workers again as there are cores.
WORKERS ?= $(shell echo $$(( ($$(getconf _NPROCESSORS_ONLN) * 3 + 1) / 2 )))
BIN := .venv/bin
READY := .venv/.ready
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n $(WORKERS) --maxprocesses 8 --dist worksteal
FAST := tests/test_tidy.py tests/unit
DASHBOARD := src/everstep/doors/dashboard/static/build.json
TYPED := $(wildcard src tests examples bench scripts)

.DEFAULT_GOAL := help
.PHONY: help demo test check coverage screenshots bench bench-peers torture torture-release conformance peers docs clean

help:
	@sed -n 's/^\([a-z-]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | while IFS="$$(printf '\t')" read -r verb does; do printf '  make %-15s %s\n' "$$verb" "$$does"; done

demo: $(DASHBOARD) ## set up everything, perform the main job: a task killed in the middle that still ends
	$(BIN)/everstep demo

test: check $(DASHBOARD) ## set up everything, pass the checks and the rest of the suite, hold the requirement map against both
	$(PYTEST) $(PARALLEL) --part last $(FAST:%=--ignore=%)

# Development mode makes records really frozen, so the fast tests also prove that nobody writes to one.
check: $(READY) parts ## format, lint, types, import contracts, tidy, fast tests; before every commit
	$(MAKE) --no-print-directory -j2 --output-sync types rules
	PYTHONDEVMODE=1 PYTHONMALLOC=pymalloc $(PYTEST) -q $(PARALLEL) --part first $(FAST)

# Beside each other, since the types of a fresh clone take a minute.
.PHONY: types rules
types: $(READY)
	$(BIN)/mypy $(TYPED)
rules: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/write_docs.py --check
	@told=$$($(PYTEST) -qqq --collect-only 2>&1) || { printf '%s\n' "$$told" | tail -n 20; exit 1; }

# Engines that tests start in processes of their own are counted too.
coverage: $(DASHBOARD) parts ## the whole suite, counting lines and branches: fails below 95 % of the lines
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q $(PARALLEL) tests
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python scripts/line_coverage.py

# All of it is measured and told, whatever misses its target.
MEASURED := bench bench.growth bench.recovery bench.long_task bench.streams "bench.streams --slow 200 --seconds 45" \
	bench.calibration bench.dashboard bench.concurrency bench.api_reads bench.fleet bench.limits bench.proxy
bench: $(DASHBOARD) parts ## measure, against floors, and write docs/figures.md
	@missed=; for one in $(MEASURED); do echo "--- $$one"; $(BIN)/python -m $$one || missed="$$missed; $$one"; done; \
	$(BIN)/python -m bench.figures; $(BIN)/python scripts/readme_points.py; \
	if [ -n "$$missed" ]; then echo "below a floor, or broken$$missed" >&2; exit 1; fi

bench-peers: $(READY) ## the same workload by DBOS, LangGraph, Restate, Temporal and Prefect, each in an environment of its own
	$(BIN)/python -m bench.peers

# What fits into an hour on two cores. Results go to torture-results.jsonl, line by line: interrupted, it goes on where it
# stopped. The report is docs/proof.md.
torture: $(DASHBOARD) long-parts ## the long fault suites, up to an hour, and their report
	$(BIN)/python -m tests.fault.torture

torture-release: $(DASHBOARD) long-parts ## the same with the largest figures; a day, and it can be interrupted
	$(BIN)/python -m tests.fault.torture --release

conformance: $(READY) ## the official MCP conformance suite, counted check by check per revision
	$(BIN)/python tests/mcp_conformance/run.py

peers: $(READY) ## MCP clients and servers, and tools of frameworks, that others wrote, from npm and PyPI
	$(BIN)/python tests/mcp_conformance/peers.py
	$(BIN)/python tests/mcp_conformance/proxied.py
	$(BIN)/python tests/mcp_conformance/frameworks.py

screenshots: $(DASHBOARD) parts ## pictures of every page of the dashboard, into screenshots/
	$(BIN)/python scripts/shoot.py

docs: $(READY) ## write what is generated: state diagrams, the reference, the requirement map
	$(BIN)/python scripts/write_docs.py
	$(BIN)/python scripts/readme_points.py
	$(PYTEST) -qqq --collect-only --write-requirements >/dev/null

clean: ## remove what can be made again
	rm -rf .venv dist dashboard/node_modules src/everstep/doors/dashboard/static screenshots .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* requirements.json
	find src tests $(wildcard bench examples scripts) -name __pycache__ -type d -prune -exec rm -rf {} +

$(DASHBOARD): $(READY) $(shell find dashboard -path '*/node_modules' -prune -o -type f -print)
	$(BIN)/python scripts/build_dashboard.py
	@touch $@

# What the tests drive and Python cannot install, as COMMAND,OR,THAT:PACKAGE: a browser, a pooler before the database, a tracer of
# system calls, a host of its own; for the long suites also a machine with a kernel of its own.
PARTS := chromium,chromium-browser,google-chrome:chromium pgbouncer:pgbouncer strace:strace ip:iproute2
LONG_PARTS := qemu-system-x86_64:qemu-system-x86 busybox:busybox-static
.PHONY: parts long-parts
parts:
	@$(call install,$(PARTS))
long-parts: parts
	@$(call install,$(LONG_PARTS))

install = missing=; for part in $(1); do \
		found=; for one in $$(echo $${part%:*} | tr , ' '); do found="$$found$$(PATH="$$PATH:/usr/sbin" command -v $$one)"; done; \
		[ -n "$$found" ] || missing="$$missing $${part\#*:}"; \
	done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then apt-get update -qq && apt-get install -y -qq $$missing >/dev/null; \
		else echo "missing here: apt-get install$$missing" >&2; exit 1; fi; \
	fi

# uv when present, else venv and pip. What the machine lacks is named, before anything is made.
$(READY): pyproject.toml constraints.txt
	@if command -v uv >/dev/null; then \
		set -ex; \
		[ -x $(BIN)/python ] || uv venv --python '>=3.11' .venv; \
		uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[all,dev]'; \
	else \
		command -v $(PYTHON) >/dev/null || { echo 'Python is missing: install Python 3.11 or newer' >&2; exit 1; }; \
		$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$$($(PYTHON) --version) is too old: install Python 3.11 or newer, or name one: make PYTHON=python3.12" >&2; exit 1; }; \
		$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo 'Python has no venv module: install the package python3-venv' >&2; exit 1; }; \
		set -ex; \
		$(PYTHON) -m venv .venv; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[all,dev]'; \
	fi
	@touch $@
