# Needs Python >= 3.11, git and make; everything else is installed into $(VENV).
#   make demo    see it run          make test    everything that must pass before a commit lands
#   make bench   measure it          make docs    build the documentation
#   make campaign CAMPAIGN=2h        try to make it crash, hang or lie, for so long
#   make lanes LANES="3.12-lowest"   test with other Pythons, the oldest packages we accept, the newest
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
PYTEST_ARGS ?=
BENCH_ARGS ?=
CAMPAIGN ?= 10m
CAMPAIGN_ARGS ?=
LANES ?=
LANES_ARGS ?=
# PyTorch without CUDA, which alone would be gigabytes: on Linux a build that pip must be told of (PIP_FIND_LINKS, an index).
TORCH ?= $(if $(filter Linux,$(shell uname)),torch==2.13.0+cpu,torch>=2.13)

.PHONY: help demo test lint types layers pytest slow lanes bench campaign docs format clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/.viz
	@mkdir -p build
	$(BIN)/linkwise demo -o build/demo.html
	@echo "Open it in a browser."

test: lint types layers pytest

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy --strict linkwise

layers: $(VENV)/.dev
	$(BIN)/lint-imports

pytest: $(VENV)/.dev $(VENV)/.torch
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

slow: $(VENV)/.dev $(VENV)/.torch $(VENV)/.models
	$(BIN)/python -m pytest -n auto -m slow $(PYTEST_ARGS)
	$(MAKE) lanes

# The lowest versions that pyproject.toml declares and the newest, each with its own Python: build/lanes.
lanes: $(VENV)/.lanes
	$(BIN)/python -m tests.lanes $(LANES) $(LANES_ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m bench.core $(BENCH_ARGS)

campaign: $(VENV)/.dev
	$(BIN)/python -m campaign --time $(CAMPAIGN) $(CAMPAIGN_ARGS)

docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build/html
	@echo "The documentation is docs/_build/html/index.html"

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist docs/_build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find linkwise tests bench campaign -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is renewed when pyproject.toml changes; the developers' install includes the viewer's.
$(VENV)/.viz: $(BIN)/python pyproject.toml
	$(PIP) install --quiet --editable ".[viz]"
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml
	$(PIP) install --quiet --editable ".[dev]"
	touch $(VENV)/.viz $@

# Where there is no such build, the tests that need it are skipped, and say so.
$(VENV)/.torch: $(VENV)/.dev
	$(PIP) install -qq --retries 1 "$(TORCH)" stable-baselines3 \
	  || echo "$(TORCH) could not be installed: the tests of PyTorch are skipped"
	touch $@

# Their model files alone: what these packages need besides would be gigabytes.
$(VENV)/.models: $(VENV)/.dev
	$(PIP) install --quiet --no-deps dm_control gymnasium-robotics
	touch $@

$(VENV)/.lanes: $(BIN)/python
	$(PIP) install --quiet uv
	touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "error: there is no command '$(PYTHON)'"; \
	  echo "  allowed: Python 3.11 or newer"; \
	  echo "  do:      install it, or name yours: make PYTHON=/path/to/python3.11"; exit 1; } >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "error: $(PYTHON) is too old for linkwise"; \
	  echo "  got:     $$($(PYTHON) --version 2>&1)"; \
	  echo "  allowed: Python 3.11 or newer"; \
	  echo "  do:      name a newer one: make PYTHON=python3.12"; exit 1; } >&2
	$(PYTHON) -m venv $(VENV)
