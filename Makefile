# `make demo` and `make test` work on a fresh machine: they create the environment and install into it first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all check lint format docs bench mutants clean

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	@echo "Setting up .venv with the packages of requirements.lock: a few minutes, once"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --disable-pip-version-check --requirement requirements.lock
	@echo "Installing Scrubjay itself"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

UNSEEN := FloorPlan21 FloorPlan22 FloorPlan221 FloorPlan222 FloorPlan321 FloorPlan322 FloorPlan421 FloorPlan422
# The released agent plays at once, if it is here. The others are trained from scratch each time. One thread: with two, small
# networks are many times slower on a busy machine.
demo: export OMP_NUM_THREADS = 1
demo: setup
	@rm -rf out/demo/run out/demo/study out/demo/released out/demo/agent out/demo/evaluation.jsonl
	@$(BIN)/scrubjay demo --released --out out/demo
	@echo "1/5  Training a small agent to explore two rooms: about two minutes"
	@$(BIN)/scrubjay train demo --out out/demo/run > /dev/null
	@echo "2/5  Measuring it, and random play, in eight rooms that it has never seen"
	@$(BIN)/scrubjay evaluate out/demo/run --task explore --against random --games 1 --scenes $(UNSEEN) > out/demo/evaluation.jsonl
	@echo "3/5  Drawing what it does and why"
	@$(BIN)/scrubjay watch out/demo/run --out out/demo/agent > /dev/null
	@echo "4/5  Studying what its encoder sees: about a minute"
	@$(BIN)/scrubjay study static --encoders ours@out/demo/run random efficientnet-lite0 --scale mini --out out/demo/study > /dev/null
	@echo "5/5  Playing and drawing a game"
	@$(BIN)/scrubjay demo --out out/demo

# One process per core, each of one thread: with two, small networks are many times slower on a busy machine.
test test-all: export OMP_NUM_THREADS = 1
test: setup
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not slow"

test-all: setup
	$(BIN)/python -m pytest -n auto --dist loadfile

check: lint test

lint: setup
	$(BIN)/ruff format --check src tests scripts examples
	$(BIN)/ruff check src tests scripts examples
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format src tests scripts examples
	$(BIN)/ruff check --fix src tests scripts examples

# The site, as HTML without anything from the network; a warning is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "Done: open out/site/index.html."

# Small faults in the rules, the losses and the physics: which ones do tests notice? Half an hour; writes results/mutants.md.
mutants: export OMP_NUM_THREADS = 1
mutants: setup
	$(BIN)/python scripts/mutants.py

bench: setup
	$(BIN)/scrubjay bench world

clean:
	rm -rf .venv out build dist
