# Every target installs what it needs. `make help` lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
BIN := $(VENV)/bin

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/ready: requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: venv
venv: $(VENV)/ready ## the locked Python environment

.PHONY: lock
lock: ## resolve the dependencies anew into requirements/*.txt
	$(PYTHON) -m venv build/uv && build/uv/bin/pip install --quiet uv
	build/uv/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" --extra operator --extra s3 --extra gcs --extra azure pyproject.toml -o requirements/operator.txt
	build/uv/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" --group pyproject.toml:build -o requirements/build.txt
	build/uv/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" --group pyproject.toml:docs -o requirements/docs.txt
	build/uv/bin/uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" --extra operator --extra s3 --extra gcs --extra azure --group dev pyproject.toml -o requirements/dev.txt

.PHONY: check
check: venv ## lint, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests marked `cluster` and `node` run on local clusters that are built and started when needed (docs/lab.md)
# and left running, so that the next run is quick: `make lab-down` ends them. What shares a lab runs one after
# another, other files beside it (tests/conftest.py); PYTEST_FLAGS="-n 0" is one process for all.
SIDE_BY_SIDE := -n 4 --no-loadscope-reorder
.PHONY: test
test: check ## everything but the slow suites; needs root, and the first time 20 minutes of building
	$(BIN)/pytest $(SIDE_BY_SIDE) -m "not slow" $(PYTEST_FLAGS)

.PHONY: test-unit
test-unit: venv ## tests that need nothing but Python
	$(BIN)/pytest tests/unit $(PYTEST_FLAGS)

.PHONY: test-all
test-all: check ## the slow suites too
	$(BIN)/pytest $(SIDE_BY_SIDE) $(PYTEST_FLAGS)

.PHONY: lab-up
lab-up: ## the local cluster `main`: a control plane, four nodes, an object store
	$(PYTHON) -m lab up

.PHONY: lab-down
lab-down: ## take all local clusters down; built programs and images are kept
	for name in $$($(PYTHON) -m lab list); do $(PYTHON) -m lab --name $$name down; done

.PHONY: manifests
manifests: venv ## make anew what is made from crds/, charts/ and metrics: copies, READMEs, install.yaml, boards, rules
	PYTHONPATH=.:operator $(PY) -m manifests.render

.PHONY: pictures
pictures: venv ## pictures of the Grafana boards (of a story on a local cluster), the report and the plugin: docs/pictures/*.png
	mkdir -p docs/pictures
	SPOTTRAIN_PICTURES=docs/pictures $(BIN)/pytest -n 0 tests/cluster/test_boards.py tests/cli/test_report_page.py tests/cli/test_terminal.py

build/docs/ready: requirements/docs.txt
	$(PYTHON) -m venv build/docs
	build/docs/bin/pip install --quiet --require-hashes -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: build/docs/ready ## docs/ as a site in build/site; a dead link, or a page without a place in mkdocs.yml, fails it
	NO_MKDOCS_2_WARNING=1 build/docs/bin/mkdocs build --strict

# What `make demo CLUSTER=current` is told: see docs/demo.md.
export IMAGE WORKER_IMAGE STORE_URI STORE_ENDPOINT TORCH_HOST_PATH
CLUSTER ?= lab

.PHONY: demo
demo: venv ## a training run loses two of its nodes and ends as if nothing had happened
	PYTHONPATH=.:operator $(PY) -m demo --cluster $(CLUSTER) $(DEMO_FLAGS)

.PHONY: bench-recovery
bench-recovery: venv ## how fast lost gangs run again, beside JobSet: a table and build/bench/recovery.json
	PYTHONPATH=.:operator $(PY) -m bench.recovery $(BENCH_FLAGS)

.PHONY: bench-scale
bench-scale: venv ## a thousand gangs on one operator: a table and build/bench/scale.json
	PYTHONPATH=.:operator $(PY) -m bench.scale $(BENCH_FLAGS)

.PHONY: bench-checkpoint
bench-checkpoint: venv ## what saves and restores cost, and 500 kills: a table and build/bench/checkpoint.json
	PYTHONPATH=.:operator $(PY) -m bench.checkpoint $(BENCH_FLAGS)

.PHONY: bench-notice
bench-notice: venv ## from a cloud's notice to SIGTERM, and the share of its window: a table and build/bench/notice.json
	PYTHONPATH=.:operator $(PY) -m bench.notice $(BENCH_FLAGS)

.PHONY: bench-policy
bench-policy: venv ## policies replayed on public traces (or on TRACES=DIR): tables and build/bench/policy.json
	PYTHONPATH=.:operator $(PY) -m bench.policy $(if $(TRACES),--traces $(TRACES)) $(BENCH_FLAGS)

.PHONY: chaos
chaos: venv ## 15 minutes of random faults against jobs, and whether any work was lost: build/chaos/report.json
	PYTHONPATH=.:operator $(PY) -m chaos $(CHAOS_FLAGS)
