# Everything is set up inside this folder: .tools/ (uv, where the machine has none), .venv/ and .cache/.
# Needs make and a Python >= 3.11; nothing else is looked for but a Java >= 17, which is used when it is there.

SHELL := /bin/sh
PYTHON ?= python3
UV := $(or $(shell command -v uv 2>/dev/null),.tools/uv/bin/uv)
BIN := .venv/bin

# Use a Python that is on the machine: never download one. Never write bytecode or settings elsewhere.
export UV_PYTHON_DOWNLOADS := never
export UV_NO_CONFIG := 1
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba

.PHONY: help demo test swarm fuzz lint format bench docs lock clean

help: ## Show what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

demo: .venv/run.stamp ## Run a live group of three processes, and prove its order on Spark
	$(BIN)/quire run --protocol single-phase --members 3 --messages 10000 --size 64 --out runs/demo --force

test: .venv/dev.stamp ## Run the tests
	$(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

swarm: .venv/dev.stamp ## Make ten thousand random runs of every protocol (some minutes)
	QUIRE_SWARM_RUNS=10000 $(BIN)/python -m pytest tests/swarm tests/hierarchy tests/sequencing/test_swarm.py tests/objects/test_swarm.py tests/transactions/test_swarm.py $(PYTEST_ARGS)

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
	$(BIN)/python -m benchmarks.simulator
	$(BIN)/python -m benchmarks.audit
	$(BIN)/python -m benchmarks.hierarchy
	$(BIN)/python -m benchmarks.objects
	$(BIN)/python -m benchmarks.stream
	$(BIN)/python -m benchmarks.following
	$(BIN)/python -m benchmarks.importing
	$(BIN)/python -m benchmarks.sweep

docs: .venv/dev.stamp ## Write the reference of the library to site/
	$(BIN)/python -m pdoc --output-directory site quire.model quire.protocols quire.objects quire.trace quire.simulation quire.live quire.pipeline.auditing.auditor quire.pipeline.auditing.verdicts quire.pipeline.causality.times quire.pipeline.causality.queries quire.pipeline.ordering.stream.query quire.pipeline.ordering.stream.wishes quire.pipeline.source

# Locks name no index. They are compiled by hand after a change of pyproject.toml, and read like any diff.
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header
lock: $(UV) ## Compile the lock files again
	$(COMPILE) pyproject.toml --group build -o requirements/run.txt
	$(COMPILE) pyproject.toml --group build --group dev -c requirements/run.txt -o requirements/dev.txt
	$(COMPILE) --group fuzz -o requirements/fuzz.txt

clean: ## Remove everything that was set up or made here
	rm -rf .venv .tools .cache runs site

.tools/uv/bin/uv: requirements/uv.txt
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --target .tools/uv -r requirements/uv.txt
	@touch $@

.venv/pyvenv.cfg: | $(UV)
	$(UV) venv --quiet --python '>=3.11' .venv

.venv/run.stamp: requirements/run.txt pyproject.toml .venv/pyvenv.cfg
	@test -f .venv/dev.stamp || $(UV) pip sync --quiet --python .venv requirements/run.txt
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev.stamp: requirements/dev.txt pyproject.toml .venv/pyvenv.cfg
	$(UV) pip sync --quiet --python .venv requirements/dev.txt
	$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation --editable .
	@touch $@ .venv/run.stamp
