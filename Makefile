# `make demo` and `make test` do everything on a fresh machine: environment, installation, and the job itself.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all check lint format bench clean

setup: .venv/.installed

.venv/.installed: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

# Trains for about two minutes, anew each time. One thread: on a busy machine two are many times slower for small networks.
demo: export OMP_NUM_THREADS = 1
demo: setup
	rm -rf out/demo/run
	$(BIN)/scrubjay train demo --out out/demo/run > /dev/null
	$(BIN)/scrubjay demo --out out/demo > /dev/null
	$(BIN)/scrubjay watch out/demo/run --out out/demo/agent > /dev/null
	@echo "Done: open out/demo/index.html (a game), out/demo/agent/index.html (the agent) and out/demo/rooms.html (rooms)."

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-all: setup
	$(BIN)/python -m pytest

check: lint test

lint: setup
	$(BIN)/ruff format --check src tests scripts examples
	$(BIN)/ruff check src tests scripts examples
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format src tests scripts examples
	$(BIN)/ruff check --fix src tests scripts examples

bench: setup
	$(BIN)/scrubjay bench world

clean:
	rm -rf .venv out build dist
