# Every target sets up what it needs. The environment lives in .venv and follows constraints.txt, the lock file.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

.PHONY: setup check test nightly recorded bench demo lock clean

setup: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_tidy.py

test: setup
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not nightly"

nightly: setup
	OMNIGRAPH_NIGHTLY=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup
	$(MAKE) recorded

# Puts the figures the long runs counted into docs/reliability.md.
recorded: setup
	$(BIN)/python -m tests.support.record

bench: setup
	$(BIN)/python -m benchmarks

demo: setup
	$(BIN)/omnigraph demo

lock: setup
	$(BIN)/pip freeze --exclude-editable > constraints.txt

clean:
	rm -rf .venv build dist
