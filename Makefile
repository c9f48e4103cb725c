# Three commands do everything: `make demo`, `make test` and `make docs`. All build .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

.PHONY: demo test docs size paper lint types imports unit coverage format clean

demo: $(READY)
	$(BIN)/python examples/demo.py --out demo-output
	OMP_NUM_THREADS=1 $(BIN)/tadropedge compare noisy-clusters --methods dropedge,jaccard-proportional:weighted --hidden 32 --epochs 200 --trials 5 --replicates 12 --out demo-output/comparison

test: lint types imports unit

# The site, in site/: a warning is an error, and so are a link and a name that lead nowhere. Nothing is loaded from the network.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going --quiet --jobs auto -d site/.doctrees docs site

# Every table and figure of the paper at small size, in reproduction/; an interrupted run goes on where it was.
paper: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.paper all --preset quick --out reproduction

# Lines of Python by room, code and docstrings apart.
size: $(READY)
	$(BIN)/python benchmarks/size.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m benchmarks check

types: $(READY)
	$(BIN)/mypy

imports: $(READY)
	$(BIN)/lint-imports

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

# Apart from the tests, because it traces every thread: before Python 3.12 two threads that start at the same moment may
# fail with "Cannot install a trace function while another trace function is being installed".
coverage: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile --cov --cov-report=term

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) demo-output site .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
