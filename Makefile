# Everything runs in .venv, which the first target that needs it makes.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := backend
# They are for this make alone: some tests run another one.
unexport ARGS DEERFLOW CONFIG HOST_PYTHON MODE CAPTURE

.PHONY: help install demo demo-exists test test-servers test-scripts test-host doctor apply unapply audit bench bench-recall bench-recall-cost deadlines fuzz soak crowd check format clean

help: ## List the targets
	@echo "For operators:"
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  \1\t/' | expand -t 16
	@echo "For contributors:"
	@grep -hE '^[a-z0-9-]+:.*##- ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*##- /  \1\t/' | expand -t 16

install: .venv/installed ##- Make .venv with everything the demo, the tests and the benches need

.venv/installed: requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; name one with PYTHON=") if sys.version_info < (3, 11) else None'
	@echo "Making .venv and installing requirements-dev.txt, a real PowerContext server included (550 MB, about a minute) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: demo-exists install ## Show it on a real PowerContext server, in half a minute; MODE=tool or CAPTURE=1 shows that, VERBOSE=1 prints all
	@$(BIN)/python backend/devhost/$(DEMO)

# Before anything is installed.
demo-exists:
	@: $(DEMO)

DEMO = $(if $(CAPTURE),$(CAPTURE_DEMO),$(or $(DEMO_$(or $(MODE),middleware)),$(error There is no demo for MODE=$(MODE): leave it out, or say MODE=tool)))
DEMO_middleware := demo.py
DEMO_tool := demo_tool_mode.py
CAPTURE_DEMO = $(if $(filter-out middleware,$(MODE)),$(error MODE=$(MODE) and CAPTURE=1 are two demos: leave one out),demo_capture.py)

# They start many Pythons, and each would compile everything anew.
test test-scripts test-servers: export PYTHONDONTWRITEBYTECODE :=

# Four processes: while some wait for a deadline to pass, the others work. Tests with a real server share one, in one of them.
test: install ## Run the tests, with a real PowerContext server; ARGS=for pytest
	@$(BIN)/python -m pytest -n 4 --dist loadgroup --ignore backend/tests/test_powercontext_measuring.py $(ARGS)

test-scripts: install ##- Run the tests of the measuring scripts, each in tiny (two minutes)
	@$(BIN)/python -m pytest backend/tests/test_powercontext_measuring.py

test-servers: install .venv-1.2.0/installed ##- Run the tests of both generations of PowerContext servers, 1.4.1 and 1.2.0
	@$(BIN)/python -m pytest backend/tests/test_powercontext_servers.py

.venv-1.2.0/installed: requirements-server-1.2.0.txt
	@echo "Making .venv-1.2.0 and installing PowerContext 1.2.0 (550 MB, about a minute) ..."
	@$(PYTHON) -m venv .venv-1.2.0
	@.venv-1.2.0/bin/pip install --quiet --disable-pip-version-check -r requirements-server-1.2.0.txt
	@touch $@

test-host: install ##- Run our tests inside a DeerFlow checkout, after `make apply`: DEERFLOW=folder, HOST_PYTHON=its Python, ARGS=for pytest
	@$(BIN)/python backend/scripts/host_tests.py $(if $(HOST_PYTHON),--python "$(HOST_PYTHON)") -- "$(DEERFLOW_CHECKOUT)" $(ARGS)

doctor: $(if $(DEERFLOW),,install) ## Diagnose a set-up: DEERFLOW=folder for a DeerFlow checkout, else the environment here and CONFIG=config.yaml
ifdef DEERFLOW
	@test -d "$(DEERFLOW)/backend/packages/harness" || { echo "There is no DeerFlow checkout at $(DEERFLOW). Name its top folder: DEERFLOW=" >&2; exit 2; }
	@test -d "$(DEERFLOW)/backend/packages/harness/deerflow/agents/memory/backends/powercontext" || { echo 'The backend is not in that checkout. Run: make apply DEERFLOW="$(DEERFLOW)"' >&2; exit 2; }
	@test -x "$(HOST_PYTHON_OF_DOCTOR)" || { echo "There is no Python at $(HOST_PYTHON_OF_DOCTOR). Run DeerFlow's own make install, or name the Python it runs with: HOST_PYTHON=" >&2; exit 2; }
	@"$(HOST_PYTHON_OF_DOCTOR)" -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("langchain_core") is None)' || { echo "The Python at $(HOST_PYTHON_OF_DOCTOR) is not the one DeerFlow runs with: its packages are not there. Name that: HOST_PYTHON=" >&2; exit 2; }
	@cd "$(DEERFLOW)/backend" && if $(DOTENV_STOPS); then export PYTHON_DOTENV_DISABLED=1; fi; PYTHONPATH="$(abspath_of_deerflow)/backend/packages/harness" "$(HOST_PYTHON_OF_DOCTOR)" -m deerflow.agents.memory.backends.powercontext.doctor --deerflow "$(abspath_of_deerflow)" $(if $(CONFIG),--config "$(abspath $(CONFIG))") $(ARGS)
else
	@echo "(The host lines are about the stand-in host; DEERFLOW=folder asks a real one.)" >&2
	@PYTHONPATH=backend/packages/harness:backend/devhost $(BIN)/python -m deerflow.agents.memory.backends.powercontext.doctor $(if $(CONFIG),--config "$(CONFIG)") $(ARGS)
endif

# DeerFlow reads .env, too, when Python imports it: what that cannot read would stop the doctor before it can say so.
DOTENV_STOPS = test -e ../.env && { ! test -f ../.env || ! iconv -f UTF-8 -t UTF-8 ../.env > /dev/null 2>&1 || ! tr -d '\000' < ../.env | cmp -s - ../.env; }

abspath_of_deerflow = $(shell cd "$(DEERFLOW)" 2> /dev/null && pwd)
HOST_PYTHON_OF_DOCTOR = $(or $(HOST_PYTHON),$(abspath_of_deerflow)/backend/.venv/bin/python)

apply: ## Put the backend, its tests and its guide into a DeerFlow checkout: DEERFLOW=folder, ARGS=--dry-run, --force or --only-files
	@$(PYTHON) backend/scripts/overlay apply $(ARGS) -- "$(DEERFLOW_CHECKOUT)"

unapply: ## Take them out again: DEERFLOW=folder, ARGS=--dry-run or --force
	@$(PYTHON) backend/scripts/overlay unapply $(ARGS) -- "$(DEERFLOW_CHECKOUT)"

DEERFLOW_CHECKOUT = $(or $(DEERFLOW),$(error Name the checkout: make $@ DEERFLOW=../deer-flow))

audit: install ##- Save, correct and forget through a bad network to a server that is killed again and again, and compare every claim with the store
	@$(BIN)/python backend/scripts/measuring/audit.py $(ARGS)
	@$(BIN)/python backend/scripts/measuring/audit_changes.py $(CHANGE_ARGS)
	@$(BIN)/python backend/scripts/measuring/audit_capture.py

bench-recall: install .venv-1.2.0/installed ##- Measure what recall finds for prompts as people type them (minutes; ARGS=--write)
	@$(BIN)/python backend/scripts/measuring/bench_recall.py $(ARGS)

bench-recall-cost: install ##- Measure what a recall of two requests costs beside one, on a real server (minutes; ARGS=--write)
	@$(BIN)/python backend/scripts/measuring/bench_recall_cost.py $(ARGS)

bench: install ##- Measure what a recall costs, beside httpx and PowerContext's client; ARGS=--write
	@$(BIN)/python backend/scripts/measuring/bench.py $(ARGS)

deadlines: install ##- Meet every fault with recall, the start-up check and saving, and see how late they are
	@$(BIN)/python backend/scripts/measuring/deadlines.py $(ARGS)

fuzz: install ##- Feed mutated replies and settings to everything that parses them
	@$(BIN)/python backend/scripts/measuring/fuzz.py $(ARGS)

soak: install ##- Recall 20,000 times among faults, cancelled runs and forked children: what is left behind? Then shut down under load
	@$(BIN)/python backend/scripts/measuring/soak.py $(ARGS)

crowd: install ##- Let 40 people use one process at once among faults: does anything of one reach another? ARGS=--tokens one
	@$(BIN)/python backend/scripts/measuring/crowd.py $(ARGS)

check: install ##- Formatting, lint and types; import rules and lengths are tests
	@$(BIN)/ruff format --check --quiet $(SOURCES)
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff check --quiet --isolated --target-version py312 --line-length 240 --select E,F,I,UP \
		--config 'lint.isort.known-first-party = ["deerflow", "app"]' $(SOURCES)/packages $(SOURCES)/tests # DeerFlow's own rules
	@$(BIN)/mypy $(SOURCES)/packages/harness/deerflow $(SOURCES)/devhost $(SOURCES)/scripts $(SOURCES)/tests

format: install ##- Format the code
	@$(BIN)/ruff format --quiet $(SOURCES)
	@$(BIN)/ruff check --quiet --fix $(SOURCES)

clean: ##- Remove .venv and caches
	rm -rf .venv .venv-1.2.0 .venv-host-tests .mypy_cache .pytest_cache .ruff_cache .hypothesis
