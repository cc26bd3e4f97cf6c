# The one interface to everything here; `make help` lists it. GNU make.
# The recipes hold relative paths only, so that a checkout may lie under any name.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
.PHONY: help setup demo test lint validate golden golden-check bench studies clean

PY := .venv/bin/python
SETUP := sh .ci/setup.sh
# Tests run in two processes, a file at a time; `make test WORKERS=0` for one. ARGS goes to pytest:
# make test ARGS='tests/unit -k folds'
WORKERS ?= 2
ARGS ?=
PYTEST = OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -p no:cacheprovider $$($(PY) .ci/xdist.py $(WORKERS))

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

setup: ## set up .venv and the R packages for everything below
	@$(SETUP) test
	@$(SETUP) lint

demo: ## set up what is needed, then estimate the California schools from a tenth of their labels
	@$(SETUP) demo
	@$(PY) -m pybridge demo

test: ## set up all R packages, then run every test
	@$(SETUP) test
	@$(PYTEST) $(ARGS)

lint: ## black, flake8, mypy
	@$(SETUP) lint
	@status=0; \
	$(PY) -m black --check --quiet --diff . && echo "black: clean" || status=1; \
	$(PY) -m flake8 && echo "flake8: clean" || status=1; \
	$(PY) -m mypy || status=1; \
	exit $$status

validate: ## bridge, plain R and independent reimplementations over all cases: the table of agreement
	@$(SETUP) test
	@$(PY) -m validation $(ARGS)

golden: ## run the plain R scripts again and write their answers to r_reference/golden
	@$(SETUP) test
	@sh .ci/golden.sh write

golden-check: ## run the plain R scripts again, compare with the answers kept (ONLY=survey.R for one)
	@$(SETUP) test
	@sh .ci/golden.sh check $(PY)

bench: ## the speed ratios, measured in one run
	@$(SETUP) test
	@sh .ci/each.sh "$(PY)" validation/benchmarks 'bench_*.py'

studies: ## the long simulations
	@$(SETUP) test
	@sh .ci/each.sh "$(PY)" validation/studies '*.py'

clean: ## remove what setup, tests and linters left (R's packages stay)
	@rm -rf .venv .setup-stamps .mypy_cache .pytest_cache build dist pybridge-demo
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
