# Everything a developer or CI runs. Each target makes the virtual environment it needs.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Small matrices are faster on one thread each; the tests use one process per core instead.
ONE    := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 MKL_NUM_THREADS=1

.PHONY: demo test test-all fuzz lint bench bench-against compare-outputs clean

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.test: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@

$(VENV)/.lint: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[lint]"
	touch $@

$(VENV)/.cli: $(VENV)/.base
	$(BIN)/python -m pip install --quiet -e ".[cli]"
	touch $@

# Six tables that need nothing but the run-time dependencies, then a report of the same data: its path is the last line.
demo: $(VENV)/.base
	$(BIN)/python examples/demo.py
	@$(MAKE) --no-print-directory $(VENV)/.cli
	@echo "A report of the same data; half a minute ..."
	$(ONE) $(BIN)/foldless demo --quiet --out foldless-demo

# Minutes: everything but tests/slow, and one in 37 cases of large tables. test-all adds what is left out, or with EVERY=7
# one in seven cases of large tables.
EVERY  ?= 1
PYTEST := $(ONE) $(BIN)/python -m pytest -n 2 --dist worksteal
test: $(VENV)/.test
	$(PYTEST) --ignore tests/slow --some-cases

test-all: test
	$(PYTEST) tests/slow
	$(PYTEST) --ignore tests/slow -m many_cases --every $(EVERY)

# Random programs against plain refits in extended precision: make fuzz SECONDS=600 SEED=7
SECONDS ?= 120
SEED    ?= 0
fuzz: $(VENV)/.test
	$(ONE) $(BIN)/python -m fuzz --seconds $(SECONDS) --seed $(SEED)

lint: $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.base
	$(BIN)/python benchmarks/core.py
	$(BIN)/python benchmarks/small.py
	$(BIN)/python benchmarks/tuning.py
	$(BIN)/python benchmarks/permutation.py
	$(BIN)/python benchmarks/online.py

# Everyday calls beside an earlier commit, in turns: make bench-against REV=0123abc
bench-against: $(VENV)/.base
	$(BIN)/python benchmarks/against.py $(REV)

# Numbers of many public calls beside those of an earlier commit: make compare-outputs REV=0123abc
compare-outputs: $(VENV)/.base
	$(BIN)/python benchmarks/outputs.py $(REV)

clean:
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache build dist foldless-demo
