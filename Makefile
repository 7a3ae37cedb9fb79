# Every target sets up what it needs. The environment lives in .venv and follows constraints.txt, the lock file.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
SECONDS ?= 600

UI := src/omnigraph/server/ui/index.html
UI_SOURCES := $(shell find explorer/src explorer/public -type f 2>/dev/null) explorer/index.html explorer/vite.config.ts
NODE := $(shell node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null && command -v npm)

.PHONY: setup explorer check test nightly recorded fuzz docs-screenshots bench demo lock clean

setup: .venv/.installed $(if $(NODE),explorer)
	$(if $(NODE),,@echo "Node.js 20 is not there: the explorer is not built, and its tests are skipped")

.venv/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable ".[dev]"
	@touch $@

# The pages that the server shows at /ui. They are built anew when their sources changed.
explorer: $(UI)

$(UI): explorer/node_modules/.package-lock.json $(UI_SOURCES)
	cd explorer && npm run --silent build
	@touch $@

explorer/node_modules/.package-lock.json: explorer/package-lock.json
	cd explorer && npm ci --silent --no-progress
	@touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/test_tidy.py
	$(if $(NODE),cd explorer && npm run --silent check && npm test --silent)

test: setup
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not nightly"

nightly: setup
	OMNIGRAPH_NIGHTLY=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup
	$(MAKE) recorded

# Puts the figures the long runs counted into docs/reliability.md.
recorded: setup
	$(BIN)/python -m tests.support.record

# Takes the pictures of the tutorial from a run of the explorer's tests.
docs-screenshots: setup
	OMNIGRAPH_SCREENSHOTS=docs/tutorial/images $(BIN)/pytest tests/explorer

# Coverage-guided fuzzing of everything that reads; SECONDS are shared among all targets.
fuzz: setup
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS)

bench: setup
	$(BIN)/python -m benchmarks

demo: setup
	$(BIN)/omnigraph demo --engine spark --again

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir build/site

lock: setup
	$(BIN)/pip freeze --exclude-editable > constraints.txt

clean:
	rm -rf .venv build dist artifacts explorer/node_modules src/omnigraph/server/ui
