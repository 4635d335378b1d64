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

.PHONY: help setup services repro findings verify-repro test test-other-processor test-slow test-rules test-studies golden fuzz conformance mutants lint check check-results smoke experiments seeds headroom headroom-latency rules trajectories opsets bench big-model ui clean timing-study prices budgets cost-accuracy price-model price-search repro-study exports speedups policy sample-efficiency learned learned-planned learned-priced learned-delivered reward-study paper paper-full paper-page pass-ordering pass-walks

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-21s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@test -n '$(PYTHON)' || { echo 'RLFlow needs Python 3.11 or newer: make PYTHON=/path/to/python3.11'; exit 1; }
	test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install --quiet --no-compile -c constraints.txt -e '.[dev]'
	$(VENV)/bin/python -m pip install --quiet --no-deps $(BASELINE)
	touch $@

setup: $(STAMP) ## create .venv and install, once

services: ## the servers and the browser that tests start for real, from Debian's packages where missing (as root)
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
verify-repro: setup ## is that run the published one again? what is not; FRESH=folder or revision instead of the work tree
	@python pipelines/verify_repro.py $(FRESH)

test: setup ## all tests but studies, fuzzing, every single rule, and what wants a quiet machine
	pytest -n 2 --dist worksteal --durations=15 -m 'not timing and not exhaustive and not fuzz and not study'

test-other-processor: setup ## what computes with floats, by the kernels of another processor
	$(OLD_PROCESSOR) pytest -n 2 --durations=15 -m 'not slow and not timing and not exhaustive and not fuzz and not study' $(NUMERIC_TESTS)

test-rules: setup ## each rule of the library by itself, each model of the zoo
	pytest -n 2 -m exhaustive

test-slow: setup ## the tests that take long or want a quiet machine
	pytest -m 'slow or timing'

test-studies: setup ## the studies of `pipelines`, each on a small scale
	pytest -m study

ONLY ?=
golden: setup ## is what the product computes the same as in tests/golden.json? ONLY='searches rollouts' or ONLY=--write
	OMP_NUM_THREADS=1 PYTHONPATH=src:pipelines:tests python -m support.golden $(ONLY)

SHARDS ?= 60
fuzz: setup conformance ## a million random rewrites, compared in ONNX Runtime, to data/results/fuzz.json; resumable (SHARDS=60)
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$$PYTHONPATH python -m support.fuzz_shards --shards $(SHARDS)
	pytest -m fuzz tests/properties

conformance: setup ## onnx's own tests and exports rewritten, damaged files, to data/results/{conformance,exports}.json
	pytest -m fuzz tests/onnx_io

mutants: setup ## the share of a model's mutants that drawn inputs tell from it, to data/results/mutants.json
	pytest -m fuzz tests/equivalence

lint: setup ## format, lint, types, import contracts
	ruff format --check .
	ruff check .
	mypy src pipelines
	lint-imports --no-cache

check: lint ## all that, and the fast tests
	pytest -q -n 2 -m 'not slow and not timing and not exhaustive and not fuzz and not study'

check-results: setup ## the published figures against their schemas
	rlflow check-results

repro-study: setup ## the experiment twice, once beside busy loops: what it takes, and is it the same? on a quiet machine
	python pipelines/study.py repro_study

smoke: setup ## the whole pipeline on a tiny graph, through DVC, outside the workspace
	dvc exp run --temp --force --name smoke -S experiment=smoke

experiments: setup ## experiments beside each other: what differs in their settings and their few metrics
	dvc exp show --only-changed --drop '^(conf|data/|src/|pipelines/)'

seeds: setup ## the learning chain on a two-layer BERT for five seeds, against the searches
	OMP_NUM_THREADS=1 python pipelines/study.py seed_study --multirun experiment=two_layers seed=0,1,2,3,4

prices: setup ## the measured regions that the price model learns from, to data/regions, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py prices

headroom: setup ## what every search saves on every graph and for what effort, to data/results/headroom
	OMP_NUM_THREADS=1 python pipelines/study.py headroom

headroom-latency: setup ## what that is worth in ONNX Runtime, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py headroom.latency

timing-study: setup ## how often the timing of two models is wrong, on a quiet machine, to data/results/timing
	OMP_NUM_THREADS=1 python pipelines/study.py timing_study

EXPORTS ?= .checkpoints/exports
exports: setup ## ten public architectures at full size, exported as they export, to $(EXPORTS)
	PYTHONPATH=tests:$$PYTHONPATH python -m support.exports.full_size $(EXPORTS)

budgets: exports ## whether `rlflow optimise` keeps to its budget, on a quiet machine, to data/results/budgets
	OMP_NUM_THREADS=1 python pipelines/study.py budgets exports=$(EXPORTS)

speedups: setup ## how much faster models run over ORT_ENABLE_ALL, beside public tools, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py speedups

cost-accuracy: setup ## the sum of measured regions against end to end, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py cost_accuracy

price-model: setup ## learn the price model that ships from the measured regions, and judge it
	OMP_NUM_THREADS=1 python pipelines/study.py price_model

price-search: setup ## what searches find by predicted prices, told in measured ones, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py price_search

policy: setup ## train the policy that ships, over lessons on small graphs; resumable (pipelines/policy)
	dvc repro pipelines/studies/policy/dvc.yaml
	python pipelines/study.py policy.ship

sample-efficiency: setup ## real steps of an agent that learns in a dream, beside those of a model-free one
	OMP_NUM_THREADS=1 python pipelines/study.py sample_efficiency

paper: setup ## every table and figure of the papers, at the size of conf/study/paper.yaml; resumable (pipelines/paper)
	dvc repro pipelines/studies/paper/dvc.yaml
	python pipelines/study.py paper.write_page

PART ?= agents
paper-full: setup ## one part of that at the papers' size, to data/results/paper: PART=agents; days on 2 cores
	OMP_NUM_THREADS=1 python pipelines/study.py paper.cells -cn paper_full part=$(PART)

paper-page: setup ## docs/results.md anew, from the figures in data/results
	python pipelines/study.py paper.write_page

pass-ordering: setup ## agents that order compiler passes beside baselines, to data/results/pass_ordering; resumable
	dvc repro pipelines/studies/pass_ordering/dvc.yaml

pass-walks: setup ## 10,000 random passes of each compiler: outputs, processes, memory, steps a second, to data/results/pass_walks.json
	OMP_NUM_THREADS=1 python benchmarks/pass_walks.py

reward-study: setup ## estimated beside measured rewards: latency found, training time, noise, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py reward_study

learned: setup ## what learning is worth to a search on families never seen, after make policy, to data/results/learned
	OMP_NUM_THREADS=1 python pipelines/study.py learned

learned-planned: setup ## chains planned in the world model beside those of V alone, to data/results/planned/learned
	OMP_NUM_THREADS=1 python pipelines/study.py learned -cn learned_planned

learned-priced: setup ## the same on a small graph by measured prices, each search from none, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py learned -cn learned_priced

learned-delivered: setup ## a policy that does not know the family against backtracking, as models that run, on a quiet machine
	OMP_NUM_THREADS=1 python pipelines/study.py learned.delivered

RECALL ?=
rules: setup ## the rules' figures: each at a thousand instances in ONNX Runtime; RECALL=equations.txt
	OMP_NUM_THREADS=1 python benchmarks/rules.py --recall $(RECALL)

trajectories: setup ## record the trajectories that the tests replay anew, from all rules of the library
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$$PYTHONPATH python -m support.recording

opsets: setup ## run all operators before and after each of their changes: the table of which nodes keep their meaning
	OMP_NUM_THREADS=1 PYTHONPATH=tests:$$PYTHONPATH python -m support.opset_changes

bench: setup ## timings, to data/results/bench.json
	python benchmarks/run.py

big-model: setup ## memory for a model above 2 GB, to data/results/big_model.json
	OMP_NUM_THREADS=1 python benchmarks/big_model.py

ui: setup ## MLflow's user interface on the runs
	python -m tracking.ui --port $(PORT)

clean: ## remove caches and unfinished work; results and checkpoints stay
	rm -rf .staging outputs multirun .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests pipelines -name __pycache__ -type d -prune -exec rm -rf {} +
