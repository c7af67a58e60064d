# The front door. Every target sets up what it needs in .venv and can be run again and again.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
SAMPLE ?= tests/data/samples/nan-after-explosion.jsonl

.PHONY: help demo test test-quick lint format clean bench-start samples docs corpus quality pictures

help:               ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.tested: pyproject.toml requirements/test.txt requirements/reference.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/test.txt
	@touch $@

$(VENV)/.linted: pyproject.toml requirements/lint.txt requirements/reference.txt $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/lint.txt
	@touch $@

demo: $(VENV)/.installed   ## set up, then replay a failing sample log
	$(BIN)/trainmon replay $(SAMPLE)

test: $(VENV)/.tested      ## set up, then pass the tests
	$(BIN)/python -m pytest -n auto

test-quick: $(VENV)/.tested ## the tests without the slow ones
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: $(VENV)/.linted      ## style, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.linted    ## rewrite to the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:              ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

bench-start: $(VENV)/.installed ## how long --help and a small replay take
	$(BIN)/python benchmarks/startup.py

samples: $(VENV)/.installed ## write the shipped sample runs afresh
	$(BIN)/python tests/make_samples.py

docs: $(VENV)/.installed    ## write the generated pages of docs/ afresh
	$(BIN)/python -m docs.generate

corpus: $(VENV)/.installed  ## score on the corpus named by TRAINMON_CORPUS and rewrite docs/corpus.md
	@test -d "$(TRAINMON_CORPUS)" || { echo "set TRAINMON_CORPUS to the folder of public logs (with labels.tsv)"; exit 2; }
	$(BIN)/python -m tests.corpus_score $(TRAINMON_CORPUS) --write docs/corpus.md

quality: $(VENV)/.installed ## how often each rule fires on long healthy runs; rewrites docs/quality.md
	$(BIN)/python -m tests.quality --write docs/quality.md

pictures: $(VENV)/.installed ## draw the pictures of the README from shipped runs
	$(BIN)/python docs/pictures.py
