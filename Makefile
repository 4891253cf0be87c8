# Two commands on a fresh machine with python3, pip and make: `make demo` and `make test`.
VENV ?= .venv
PYTHON ?= python3
RUN = $(VENV)/bin/python -m
# a test worker has one thread: two workers with two threads each would slow each other down many times
WORKERS ?= 2

CARDS = card-words card-algebra card-countdown card-sudoku card-steps card-others card-annealed card-random
.PHONY: demo test test-all lint docs help-page card clean $(CARDS)

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

# The numbers of the model card, a quarter of an hour with `make -j2 card` on two cores; stopped, it goes on where it was.
CARD = OMP_NUM_THREADS=1 $(VENV)/bin/unmask evaluate --model tiny --dtype bfloat16 --seed 20261119

card-words card-algebra card-countdown card-sudoku: card-%: $(VENV)/.dev
	$(CARD) --task $* --n 128 --steps 128 --blocks 16 --out runs/card/blocks-$*
card-steps: $(VENV)/.dev
	$(CARD) --task words --n 128 --steps 16,32,64,128 --out runs/card/steps
card-others: $(VENV)/.dev
	$(CARD) --task algebra --task countdown --task sudoku --n 64 --steps 16,128 --out runs/card/others
card-annealed: $(VENV)/.dev
	$(CARD) --task words --n 64 --steps 16,128 --eos anneal:3 --out runs/card/annealed
card-random: $(VENV)/.dev
	$(CARD) --task words --n 48 --steps 16 --first random --samples 8 --out runs/card/random
card: $(CARDS)
	$(VENV)/bin/python benchmarks/card.py runs/card
