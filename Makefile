# Every target sets up what it needs. The environment lives in .venv and follows constraints.txt, the lock file.
PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2
SECONDS ?= 600
SAMPLE ?= 200

# Tests start hundreds of processes; they share what one of them compiled.
export PYTHONDONTWRITEBYTECODE :=

UI := src/omnigraph/server/ui/index.html
UI_SOURCES := $(shell find explorer/src explorer/public -type f 2>/dev/null) explorer/index.html explorer/vite.config.ts
NODE := $(shell node -e 'process.exit(+process.versions.node.split(".")[0] < 20 ? 1 : 0)' 2>/dev/null && command -v npm)

.PHONY: setup explorer check test nightly recorded reference coverage mutants fuzz audit fresh-clone release-check docs-screenshots bench demo lock clean

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

# Not `npm ci`: it refuses a lock file that does not name the parts of other platforms, which not every registry has.
explorer/node_modules/.package-lock.json: explorer/package-lock.json
	cd explorer && npm install --no-save --silent --no-progress
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

# Its tests wait for disks, servers and each other: three workers keep two cores busy.
nightly: JOBS = 3
nightly: setup
	OMNIGRAPH_NIGHTLY=1 $(BIN)/pytest -n $(JOBS) --dist loadgroup
	$(MAKE) recorded

# Puts the figures the long runs counted into docs/reliability.md.
recorded: setup
	$(BIN)/python -m tests.support.record

# Writes the pages of the reference that are made from code.
reference: setup
	$(BIN)/python -m docs.generate docs/reference

# Takes the pictures of the tutorial from a run of the explorer's tests, and the recording of the home page.
docs-screenshots: setup
	OMNIGRAPH_SCREENSHOTS=docs/tutorial/images $(BIN)/pytest tests/explorer tests/docs/test_recording.py

# How much of the languages and of the core their tests go through; fails below 95 % of branches. Bounds on the time of
# hostile texts do not hold while every line is counted.
coverage: setup
	$(BIN)/coverage run -m pytest tests/unit/lang tests/unit/core tests/unit/write tests/unit/merge \
		-k "not hostile"
	$(BIN)/python -m tests.support.covered lang core

# Changes the sources in small ways and sees whether tests notice; fails below 85 %. SAMPLE=0 takes every change.
mutants: setup
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.mutation.run --sample $(SAMPLE)

# Coverage-guided fuzzing of everything that reads; SECONDS are shared among all targets.
fuzz: setup
	$(BIN)/python -m tests.fuzz.run --seconds $(SECONDS)

# What is installed: consistent, pinned, of accepted licences; and without known flaws, where pip-audit can ask.
audit: setup
	$(BIN)/pip check
	$(BIN)/pytest tests/docs/test_dependencies.py
	$(if $(wildcard $(BIN)/pip-audit),$(BIN)/pip-audit --requirement constraints.txt --no-deps --disable-pip)

# What somebody new would do: clone, set up, run the demo, try every example of the documentation.
fresh-clone:
	rm -rf build/clone
	git clone --quiet . build/clone
	$(MAKE) -C build/clone setup demo docs
	cd build/clone && .venv/bin/pytest tests/docs

# Everything, in hours. Its figures are in docs/reliability.md afterwards.
release-check: export OMNIGRAPH_RING = make release-check
release-check:
	$(MAKE) check
	$(MAKE) nightly
	$(MAKE) coverage
	$(MAKE) mutants SAMPLE=0
	$(MAKE) fuzz SECONDS=3600
	$(MAKE) audit
	$(MAKE) fresh-clone
	$(MAKE) recorded

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
