# Everything is set up inside this folder: .tools/ (uv, where the machine has none), .venv/ and .cache/.
# Needs make and a Python >= 3.11; nothing else is looked for but a Java >= 17, which is used when it is there.

SHELL := /bin/sh
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)
BIN := .venv/bin

# Use a Python that is on the machine: never download one. Never write bytecode or settings elsewhere, but keep bytecode here.
export UV_PYTHON_DOWNLOADS := never
export UV_NO_CONFIG := 1
export PYTHONDONTWRITEBYTECODE :=

# Compiled once, when it is set up: otherwise every process that may not write bytecode compiles what it imports, for seconds.
SYNC := $(UV) pip sync --quiet --compile-bytecode --python .venv
BYTECODE := $(BIN)/python -m compileall -q src

.PHONY: help demo test test-long soak test-pythons mutants swarm chaos vopr fuzz lint format bench docs lock clean

help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1\t/' | expand -t 14

demo: .venv/warm.stamp ## Run a live group of three processes, and prove its order on Spark
	$(BIN)/quire run --protocol single-phase --members 3 --messages 10000 --size 64 --out runs/demo --force --master 'local[*]'
	@printf '%s\n' '' 'Quire is installed in this folder. Call it like this:' \
	  '  $(BIN)/quire --help' \
	  '  $(BIN)/quire simulate --members 5 --crash 2@500 --out runs/five      # a member crashes in the simulator' \
	  '  $(BIN)/quire audit runs/five                                         # which orders hold all the same' \
	  '  $(BIN)/quire run --watch --messages 6000 --out runs/watched           # a page about a live group while it runs' \
	  '  $(BIN)/quire report runs/five                                        # and what it looks like'

test: .venv/dev.stamp .venv/warm.stamp ## Run the tests
	@$(BYTECODE)
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

test-long: .venv/dev.stamp .venv/warm.stamp ## Run the tests with everything that takes long: more random runs, larger worlds, the papers' evaluation, more kills
	QUIRE_TEST=long QUIRE_EXHAUSTIVE=full QUIRE_EVALUATION=full QUIRE_KILLS=10 QUIRE_SOAK_SECONDS=120 $(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

soak: .venv/dev.stamp ## Two minutes of full load: memory is flat, and nothing is lost
	QUIRE_SOAK_SECONDS=120 $(BIN)/python -m pytest tests/bench/test_bench.py -k Soak $(PYTEST_ARGS)

# Of every other Python that is on the machine, never of one that would have to be downloaded.
test-pythons: .venv/dev.stamp ## Try a selection of the tests with every other Python of 3.11, 3.12 and 3.13 that is here
	tests/other_pythons $(UV) $(BIN)/python

mutants: .venv/dev.stamp ## Plant wrong rules in a copy of the sources, each of which a test must catch (some minutes)
	$(BIN)/python -m tests.mutants $(MUTANTS)

swarm: .venv/dev.stamp ## Make ten thousand random runs of every protocol (some minutes), and of groups that change (some hours)
	QUIRE_SWARM_RUNS=10000 $(BIN)/python -m pytest -n auto tests/swarm tests/hierarchy tests/sequencing/test_swarm.py tests/sequencing/failover/test_swarm.py tests/objects/test_swarm.py tests/objects/test_departures.py tests/objects/test_returns.py tests/transactions/test_swarm.py tests/views/test_swarm.py $(PYTEST_ARGS)

vopr: .venv/dev.stamp ## Search for runs of changing groups that break a promise, for hours, until one is found or Ctrl-C
	$(BIN)/python -m tests.views.vopr $(VOPR)

chaos: .venv/dev.stamp ## Kill, stop, cut off and restart real processes at random, under load, and audit what came of it (five minutes)
	$(BIN)/python -m tests.faults.chaos $(CHAOS)

fuzz: .venv/dev.stamp ## Feed everything that reads a peer's bytes a million inputs (about an hour)
	$(UV) pip install --quiet --python .venv --require-hashes -r requirements/fuzz.txt
	$(BIN)/python tests/fuzz/fuzz_frames.py -runs=1000000

lint: .venv/dev.stamp ## Check style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: .venv/dev.stamp ## Rewrite the sources in the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: .venv/dev.stamp ## Measure speed against baselines in the same run
	$(BIN)/quire bench
	$(BIN)/python -m benchmarks.all_send
	$(BIN)/python -m benchmarks.failover
	$(BIN)/python -m benchmarks.sequencers
	$(BIN)/python -m benchmarks.journal
	$(BIN)/python -m benchmarks.watching
	$(BIN)/python -m benchmarks.simulator
	$(BIN)/python -m benchmarks.starting
	$(BIN)/python -m benchmarks.audit
	$(BIN)/python -m benchmarks.audit_checks
	$(BIN)/python -m benchmarks.hierarchy
	$(BIN)/python -m benchmarks.objects
	$(BIN)/python -m benchmarks.replicated
	$(BIN)/python -m benchmarks.transactions
	$(BIN)/python -m benchmarks.durable_transactions
	$(BIN)/python -m benchmarks.stream
	$(BIN)/python -m benchmarks.following
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.sweep

docs: .venv/dev.stamp ## Write the reference of the library to site/
	$(BIN)/python -m pdoc --output-directory site quire.model quire.protocols quire.objects quire.replicated quire.trace quire.journal quire.simulation quire.live quire.pipeline.auditing.auditor quire.pipeline.auditing.verdicts quire.pipeline.causality.times quire.pipeline.causality.queries quire.pipeline.ordering.stream.query quire.pipeline.ordering.stream.options quire.pipeline.source

# Locks name no index. They are compiled by hand after a change of pyproject.toml, and read like any diff.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header
lock: $(UV) ## Compile the lock files again
	$(COMPILE) pyproject.toml --extra spark --group build -o requirements/run.txt
	$(COMPILE) pyproject.toml -c requirements/run.txt -o requirements/core.txt
	$(COMPILE) pyproject.toml --extra spark --group build --group dev -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) --group fuzz -o requirements/fuzz.txt

clean: ## Remove everything that was set up or made here
	rm -rf .venv .tools .cache runs site
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

.tools/uv/bin/uv: requirements/uv.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target .tools/uv -r requirements/uv.txt
	@touch $@

.venv/pyvenv.cfg: | $(UV)
	$(UV) venv --quiet --python '>=3.11' .venv

.venv/run.stamp: requirements/run.txt pyproject.toml .venv/pyvenv.cfg
	@test -f .venv/dev.stamp || $(SYNC) requirements/run.txt
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $@

# Java's classes and the audit's loops are compiled once, too, so that the first use is as fast as any.
.venv/warm.stamp: .venv/run.stamp
	$(BIN)/python -m quire.cli.warming
	@touch $@

.venv/dev.stamp: requirements/dev.txt pyproject.toml .venv/pyvenv.cfg
	$(SYNC) requirements/dev.txt
	$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@$(BYTECODE)
	@touch $@ .venv/run.stamp
