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

demo: setup
	$(BIN)/scrubjay demo --out out/demo

test: setup
	$(BIN)/python -m pytest -m "not slow"

test-all: setup
	$(BIN)/python -m pytest

check: lint test

lint: setup
	$(BIN)/ruff format --check src tests scripts
	$(BIN)/ruff check src tests scripts
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format src tests scripts
	$(BIN)/ruff check --fix src tests scripts

bench: setup
	$(BIN)/scrubjay bench world

clean:
	rm -rf .venv out build dist
