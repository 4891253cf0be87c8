# Two commands on a fresh machine with python3, pip and make: `make demo` and `make test`.
VENV ?= .venv
PYTHON ?= python3
RUN = $(VENV)/bin/python -m
# a test worker has one thread: two workers with two threads each would slow each other down many times
WORKERS ?= 2

.PHONY: demo test test-all lint docs help-page clean

demo: $(VENV)/.base
	$(VENV)/bin/unmask demo

test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN) pytest -n $(WORKERS) -m "not slow"

test-all: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(RUN) pytest -n $(WORKERS)

lint: $(VENV)/.dev
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy

docs: $(VENV)/.dev
	$(RUN) unmask.cli.reference docs/cli.md --check
	$(RUN) mkdocs build --strict --quiet --site-dir site

help-page: $(VENV)/.dev
	$(RUN) unmask.cli.reference docs/cli.md

$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN) pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/.dev: $(VENV)/.base
	$(RUN) pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) site build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
