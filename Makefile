# Every target does its own set-up in .venv; a machine needs git, make and Python 3.11 or newer, nothing else.
# Another interpreter has a venv of its own: `make PYTHON=python3.13 test` makes .venv-python3.13.

PYTHON ?= python3
VENV := .venv$(addprefix -,$(filter-out python3,$(notdir $(PYTHON))))
RUN := $(VENV)/bin/python -m
REFOLD := $(VENV)/bin/refold
READY := $(VENV)/.ready

# Compiled tests are kept, whatever the environment says: collecting them takes half as long then.
unexport PYTHONDONTWRITEBYTECODE

TASK := m1-done-after-delete
DEMO := .demo

.PHONY: demo test test-again covered test-fast test-full slow faults check format-check lint types arrows coverage format bench bench-database bench-full kill-peers conformance lowest clean

# The stamp names the folder it was made for: scripts and the editable install hold absolute paths, so a copied or
# moved tree would otherwise run the code of the old one.
ifneq ($(shell cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif

# An editable install holds copies of the pytest plugin and the script, the files that are shipped under other names.
$(READY): pyproject.toml runner/testing/_plugin.py runner/_cli/_script.py
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "refold needs Python 3.11 or newer; name one: make PYTHON=python3.13")'
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --upgrade 'pip>=25.1'
	$(RUN) pip install --quiet --group dev --editable '.[triage,web,mcp,anthropic,openai,prices,otel,postgres,procrastinate,report,ui,pydantic-ai,langchain]'
	@printf '%s\n' '$(CURDIR)' > $@

# $(call step,STATUS,ARGUMENTS,AFTERWARDS): one refold command of the demo, which must end with that exit status.
define step
@echo '$$ refold $(2)'
@$(REFOLD) $(2); got=$$?; $(3) test $$got -eq $(1) || { echo "demo: exit status $$got where $(1) was expected" >&2; exit 1; }
endef

# A run dies by SIGKILL (128 + 9) after its patch was applied and before that was saved, is looked at, is resumed to
# the end, and its log is verified.
demo: $(READY)
	@rm -rf $(DEMO) && mkdir $(DEMO)
	$(call step,137,triage --task $(TASK) --runs $(DEMO)/runs --approve off --die-after code_patch)
	@$(REFOLD) ls --runs $(DEMO)/runs --json > $(DEMO)/ls.json
	@$(VENV)/bin/python -c 'import json, sys; print(json.load(sys.stdin)[0]["run"])' < $(DEMO)/ls.json > $(DEMO)/run
	$(call step,0,show "$$(cat $(DEMO)/run)" --runs $(DEMO)/runs)
	$(call step,0,triage --task $(TASK) --runs $(DEMO)/runs --approve off > $(DEMO)/answer,cat $(DEMO)/answer;)
	@grep -q '16/16' $(DEMO)/answer || { echo 'demo: the resumed run did not pass 16 of 16 checks' >&2; exit 1; }
	$(call step,0,verify "$$(cat $(DEMO)/run)" --runs $(DEMO)/runs)

# MEASURED adds coverage: make test MEASURED=1. It doubles the time of tests that compute, so the largest sweeps, which go
# where other tests go, too, are left to `make test-full UNMEASURED=1`.
COVERED := $(if $(MEASURED),-m 'not full and not unmeasured' --cov --cov-report=term)

test: $(READY)
	$(RUN) pytest $(COVERED)

# What failed in the last run, alone and one after the other.
test-again: $(READY)
	$(RUN) pytest -n0 -m '' --last-failed --last-failed-no-failures=none

# The verdict on the branches that the last measured run took.
covered: $(READY)
	$(RUN) coverage report

# For the inner loop, less than 40 seconds: the quickest tests, more than half of all. The list of the others is made by
# `make slow`, which runs the tests of `make test` and measures them.
test-fast: $(READY)
	$(RUN) pytest -m 'not full and not slow'

slow: $(READY)
	$(RUN) pytest -p tests.support.slow

# The long tests: minutes of simulated power cuts, faults and deaths. They print what they counted.
test-full: $(READY)
	$(RUN) pytest -m '$(if $(UNMEASURED),full or unmeasured,full)' -p tests.support.figures -o faulthandler_timeout=900

# Which tests try which fault: a table made from the tests' marks.
faults: $(READY)
	@$(RUN) tests.support.faults

# A group of dependencies with a venv of its own, .venv-GROUP, so that what it brings stays out of .venv: other runners
# beside ours, what a framework's own tests need, the lowest versions of the frameworks.
GROUPS := peers conformance conformance-pydantic-ai lowest
STAMPS := $(GROUPS:%=.venv-%/.ready)
EXTRAS_peers := [postgres]
EXTRAS_lowest := [postgres]
PEERS := .venv-peers

.PHONY: $(foreach stamp,$(STAMPS),$(if $(filter $(CURDIR),$(shell cat $(stamp) 2>/dev/null)),,$(stamp)))

$(STAMPS): .venv-%/.ready: pyproject.toml
	test -x .venv-$*/bin/python || $(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	.venv-$*/bin/python -m pip install --quiet --group $* --editable '.$(EXTRAS_$*)'
	@printf '%s\n' '$(CURDIR)' > $@

# A framework's own tests with every agent on a log: LangChain's, of its source distribution, which pip fetches, or with
# PYDANTIC_AI=DIR those of a checkout of pydantic-ai. SAMPLE=1 takes some of them.
SUITE := conformance$(if $(PYDANTIC_AI),-pydantic-ai)

conformance: .venv-$(SUITE)/.ready
	.venv-$(SUITE)/bin/python -m tests.conformance $(if $(SAMPLE),--sample) $(PYDANTIC_AI:%=--pydantic-ai %)

# Our tests of the frameworks, on their lowest versions.
lowest: .venv-lowest/.ready
	.venv-lowest/bin/python -m pytest tests/frameworks

# What does a save cost? The tables' scripts, each with one question; `make bench` takes two minutes and keeps its figures
# apart, `make bench-full` makes the page and its plots. BENCH_DIR=DIR measures another disk.
BENCHES := begin append limit resume look conversation turns around frameworks many stream pieces ui

bench: $(READY)
	$(RUN) pip install --quiet --group bench
	@set -e; for name in $(BENCHES) page; do $(RUN) benchmarks.$$name --quick; done

bench-full: $(READY) $(PEERS)/.ready
	$(RUN) pip install --quiet --group bench
	@set -e; for name in $(BENCHES); do $(RUN) benchmarks.$$name; done
	$(PEERS)/bin/python -m benchmarks.peers
	$(PEERS)/bin/python -m benchmarks.database
	$(RUN) benchmarks.page

bench-database: $(PEERS)/.ready
	$(PEERS)/bin/python -m benchmarks.database

kill-peers: $(PEERS)/.ready
	$(PEERS)/bin/python benchmarks/kill_peers.py --json benchmarks/results/kill_peers.json

check: format-check lint types arrows coverage

format-check: $(READY)
	$(RUN) ruff format --check

lint: $(READY)
	$(RUN) ruff check

types: $(READY)
	$(RUN) mypy

arrows: $(READY)
	$(RUN) pytest -n0 -q tests/structure

coverage: $(READY)
	$(RUN) coverage erase
	$(MAKE) test MEASURED=1
	$(RUN) pytest -m 'unmeasured and not full'

format: $(READY)
	$(RUN) ruff format
	$(RUN) ruff check --fix

clean:
	rm -rf .venv .venv-* $(DEMO) benchmarks/.work dist htmlcov .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
