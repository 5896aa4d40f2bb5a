# make help says what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
JOBS ?= 2
# As deploy/chart wants it where no value says otherwise.
IMAGE ?= sume-operator:$(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' operator/sume_operator/__init__.py)

.PHONY: help
help: ## Say what there is
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: install
install: $(STAMP) ## Make .venv with everything that is needed (Python >= 3.11)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed, $(PYTHON) is $$($(PYTHON) --version 2>&1): make install PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the locked packages into $(VENV)"
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: demo
demo: install ## Watch a dozen renders end, from nothing (KEEP=1: keep it running; CONTEXT=NAME: on your own cluster)
	@$(BIN)/python deploy/demo

.PHONY: test
test: install ## Run every test but those that need a whole node (JOBS=2: so many files at once)
	@$(BIN)/pytest --numprocesses $(JOBS) --dist loadfile

.PHONY: test-node
test-node: install ## Test image and chart on a node of its own, where pods really run (root, on Debian)
	@$(BIN)/pytest --timeout=1800 tests/node

.PHONY: bench
bench: install ## Measure: five hundred renders at the limits of a real plan (about a quarter of an hour)
	@$(BIN)/pytest tests/bench

.PHONY: lint
lint: install ## Check style, types and layers
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/zizmor --offline --quiet .github/workflows deploy/pipelines/github-actions.yaml

.PHONY: check
check: lint test ## lint + test: what every commit must pass

.PHONY: format
format: install ## Put the code into its one form
	@$(BIN)/ruff check --quiet --fix .
	@$(BIN)/ruff format --quiet .

COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.PHONY: image
image: ## Build the image with Docker, Podman or Buildah (IMAGE=NAME:TAG PYTHON_IMAGE=BASE SOURCE=URL ARCHIVE=FILE)
	@$(PYTHON) deploy/image --image "$(IMAGE)" --python-image "$(PYTHON_IMAGE)" --source "$(SOURCE)" $(if $(ARCHIVE),--archive "$(ARCHIVE)")

.PHONY: lock
lock: install ## Bring the lock files up to date with pyproject.toml
	@$(COMPILE) --all-extras --upgrade pyproject.toml -o requirements.lock
	@$(COMPILE) --extra sandbox --extra cli --upgrade -c requirements.lock pyproject.toml -o deploy/image/requirements.lock
	@echo hatchling | $(COMPILE) --upgrade -c requirements.lock - -o deploy/image/build.lock

.PHONY: chart
chart: install ## Bring up to date what is made of the chart: its copy of the CRD, its table of values, install.yaml
	@$(BIN)/python deploy/chart/render.py

.PHONY: clean
clean: ## Remove what was made here (the cache of built binaries stays: ~/.cache/sume-operator)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
