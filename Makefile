# `make demo` and `make test` work on a fresh machine: they create the environment and install into it first.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all check lint format docs bench clean

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# The released agent plays at once, if it is here. Trains for about two minutes, from scratch each time, then studies in about one what the agent's encoder sees. One thread:
# with two, small networks are many times slower on a busy machine.
demo: export OMP_NUM_THREADS = 1
demo: setup
	rm -rf out/demo/run out/demo/study out/demo/released
	@$(BIN)/scrubjay demo --released --out out/demo
	$(BIN)/scrubjay train demo --out out/demo/run > /dev/null
	$(BIN)/scrubjay watch out/demo/run --out out/demo/agent > /dev/null
	$(BIN)/scrubjay study static --encoders ours@out/demo/run random efficientnet-lite0 --scale mini --out out/demo/study > /dev/null
	$(BIN)/scrubjay demo --out out/demo > /dev/null
	@echo "Done: open out/demo/index.html (a game), which links to rooms, the agent (out/demo/agent/index.html) and a study of its"
	@echo "encoder (out/demo/study/index.html)."

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

bench: setup
	$(BIN)/scrubjay bench world

clean:
	rm -rf .venv out build dist
