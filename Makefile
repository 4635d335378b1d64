# Every target does its own set-up on a machine that has Python 3.11 and git.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3.11 python3 python; do $$p -c '$(RECENT)' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
STAMP := $(VENV)/.installed
# PyTorch as a baseline; without torchvision, of which it needs nothing here and whose wheels want a PyTorch with CUDA.
BASELINE := "onnx2torch>=1.5.15,<2"
PORT ?= 5000

export PATH := $(abspath $(VENV))/bin:$(PATH)
# What lies in pipelines/ is imported from there: it is no part of the library.
export PYTHONPATH := $(CURDIR)/pipelines$(addprefix :,$(PYTHONPATH))
export DVC_NO_ANALYTICS := 1
export MLFLOW_DISABLE_TELEMETRY := true
# Without stored bytecode each process of an experiment would compile its libraries anew: PyTorch's take ten seconds.
unexport PYTHONDONTWRITEBYTECODE

# The kernels of a processor of 2008, as far as libraries let go of newer ones: numpy with its BLAS, and torch.
FEATURES := from numpy._core._multiarray_umath import __cpu_dispatch__ as known; print(*known)
OLD_PROCESSOR = NPY_DISABLE_CPU_FEATURES="$$(python -c '$(FEATURES)')" OPENBLAS_CORETYPE=Nehalem \
	ATEN_CPU_CAPABILITY=default MKL_ENABLE_INSTRUCTIONS=SSE4_2 ONEDNN_MAX_CPU_ISA=SSE41
NUMERIC_TESTS := $(addprefix tests/,agents equivalence ir nn onnx_io ops rules trajectory world_model zoo)

.PHONY: help leaderboard setup services repro findings verify-repro test golden fuzz renew lint debug smoke study prices bench ui site clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@test -n '$(PYTHON)' || { echo 'RLFlow needs Python 3.11 or newer: make PYTHON=/path/to/python3.11'; exit 1; }
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	$(VENV)/bin/python -m pip install --quiet --no-deps $(BASELINE)
	touch $@

setup: $(STAMP) ## create .venv and install, once

services: ## the servers and the browser that tests start, from Debian's packages (as root)
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends postgresql; }
	@command -v chromium chromium-browser >/dev/null || \
		{ apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } || \
		echo 'Chromium cannot be installed here: tests/pipelines/tracking/test_browser.py will be skipped'

repro: setup ## the whole experiment: dvc repro; what came out beside what is published; what was found
	dvc repro
	@python pipelines/verify_repro.py || test $$? -eq 1 # an experiment of your own is no failure
	@python pipelines/findings.py

findings: setup ## what the last run has found, in five lines, and where to look next
	@python pipelines/findings.py

FRESH ?=
verify-repro: setup ## is that run the published one again? what is not; FRESH=folder or revision
	@python pipelines/verify_repro.py $(FRESH)

# `make test MARK=exhaustive` runs what has that mark, `ONLY=tests/rules` what lies there, and `PROCESSOR=old` what computes
# with floats, by the kernels of another processor.
MARK ?= not slow and not timing and not exhaustive and not fuzz and not study
ONLY ?= $(if $(PROCESSOR),$(NUMERIC_TESTS))
# What is marked timing wants the machine for itself, and fuzzing writes one file.
PROCESSES ?= $(if $(filter-out not,$(firstword $(MARK))),$(if $(filter fuzz timing,$(MARK)),0,2),2)
test: setup ## all tests but those marked slow, study, fuzz, exhaustive, timing: MARK=slow for these
	$(if $(PROCESSOR),$(OLD_PROCESSOR)) pytest -n $(PROCESSES) --dist worksteal --durations=15 -m '$(MARK)' $(ONLY)

SECTIONS ?=
golden: setup ## is everything computed as before a change? SECTIONS='searches documents' for a part, or --write
	OMP_NUM_THREADS=1 PYTHONPATH=src:pipelines:tests python -m support.golden $(SECTIONS)

SHARDS ?= 60
fuzz: setup ## a million random rewrites compared, e-graphs, onnx's tests, exports; hours, resumable
	pytest -m fuzz tests/onnx_io
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$$PYTHONPATH python -m support.fuzz_shards --shards $(SHARDS)
	pytest -m fuzz tests/properties

renew: setup ## make anew what tests compare with: NAME=recording or NAME=opset_changes, programs of tests/support
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$$PYTHONPATH python -m support.$(NAME)

lint: setup ## format, lint, types, import contracts
	ruff format --check .
	ruff check .
	mypy src pipelines
	lint-imports --no-cache

debug: setup ## all stages on a tiny graph in one process, without DVC; DEBUG='graph=file model=my.onnx' for settings of yours
	OMP_NUM_THREADS=1 python pipelines/all_stages.py experiment=smoke $(DEBUG)

smoke: setup ## the whole pipeline on a tiny graph, through DVC, outside the workspace
	dvc exp run --temp --force --name smoke -S experiment=smoke

NAME ?=
study: setup ## run a study: NAME=headroom, or NAME="learned 'seeds=[0]'"; without a name, their names
	OMP_NUM_THREADS=1 python pipelines/study.py $(NAME)

ROUNDS ?= 1 2
prices: setup ## the price model for this processor, hours: run models, learn, run what searches by it find; ROUNDS='3 4'
	PYTHONPATH=tests:$$PYTHONPATH python -m support.exports.priced .exports
	for round in $(ROUNDS); do \
	  OMP_NUM_THREADS=1 python pipelines/study.py prices round=$$round && \
	  OMP_NUM_THREADS=1 python pipelines/study.py price_model || exit 1; \
	done

leaderboard: setup ## the methods of this project on the leaderboard, verified; its page and picture
	OMP_NUM_THREADS=1 python pipelines/study.py leaderboard

bench: setup ## timings: NAME=rules, big_model, pass_walks or candidate_agent, programs of benchmarks/; run by default
	OMP_NUM_THREADS=1 python benchmarks/$(firstword $(NAME) run).py $(wordlist 2,9,$(NAME))

ui: setup ## MLflow's user interface on the runs
	python -m tracking.ui --port $(PORT)

site: setup ## the documentation as a site, in site/: tutorials, reference, a page of all rules; links are checked
	mkdocs build --quiet

# Tools and the installation that is listed have environments of their own, next to nothing of which is developed with.
release: export PYTHONPATH :=
release: ## wheel, source archive, their digests, and the list of what they install (SBOM), in dist/
	rm -rf build dist
	$(PYTHON) -m venv build/tools
	build/tools/bin/pip install --quiet build cyclonedx-bom twine
	build/tools/bin/python -m build --outdir dist
	build/tools/bin/twine check --strict dist/*
	$(PYTHON) -m venv --without-pip build/plain
	build/tools/bin/pip --python build/plain/bin/python install --quiet dist/*.whl
	build/plain/bin/rlflow --version
	build/tools/bin/cyclonedx-py environment build/plain/bin/python --pyproject pyproject.toml --mc-type library \
	  --output-reproducible -o dist/rlflow.cdx.json
	cd dist && sha256sum *.whl *.tar.gz *.json > SHA256SUMS

clean: ## remove caches and unfinished work; results and checkpoints stay
	rm -rf .staging outputs multirun .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests pipelines -name __pycache__ -type d -prune -exec rm -rf {} +
