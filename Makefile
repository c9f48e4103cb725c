# Three commands do everything: `make demo`, `make test` and `make docs`. All build .venv first.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready

.PHONY: demo test docs lint types imports unit coverage format bench torture fuzz clean

demo: $(READY)
	$(BIN)/python examples/noisy_clusters.py --out demo-output/picture
	$(BIN)/tadropedge compare noisy-clusters --methods dropedge,jaccard-cdf,jaccard-proportional:expected --hidden 32 --epochs 200 --trials 16 --choose-splits 3 --seeds 16 --out demo-output/comparison

test: lint types imports unit

# The site, in site/: strict, without the network, every tutorial executed (again only if it changed), every link checked.
# `make docs SPHINX=-E` reads every page again.
docs: $(READY)
	$(BIN)/python -m sphinx -W --keep-going --quiet --jobs auto -d site/.doctrees $(SPHINX) docs site
	$(BIN)/python docs/_ext/check_links.py site

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

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

bench: $(READY)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/sampling.py

# Every attack that tests/torture knows; `make test` runs a sample of each kind.
torture: $(READY)
	OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m torture --out results/benchmarks/torture.json

# Changed files for every reader, FUZZ batches of 25 each: 20 take 42 seconds on two cores, 10000 a night. A failure
# names what makes it again.
FUZZ ?= 10000
fuzz: $(READY)
	FUZZ=$(FUZZ) OMP_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m torture fuzz

clean:
	rm -rf $(VENV) demo-output site docs/auto_tutorials .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
