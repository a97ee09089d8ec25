# Two commands matter: `make demo` (the main job) and `make test` (everything). Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What tests find in the user's cache is used unless FRESH=1; samples and random input are the day's unless SEED=N.
DAY := $(shell expr $$(date +%s) / 86400)
PYTEST = $(BIN)/python -m pytest -q --seed=$(or $(SEED),$(DAY)) $(if $(FRESH),--fresh)
# A file goes to one process as a whole, because its tests share clusters.
BY_FILE := --dist loadfile --no-loadscope-reorder
# Compiled files are kept, also where the environment says otherwise: every process of every tier needs those of all tests.
unexport PYTHONDONTWRITEBYTECODE
# Where tests of a tier are: to collect all the others takes longer than some of them.
LAB := tests/lab tests/reliability
REAL = $(shell grep -rl --include='test_*.py' 'mark[.]real' tests | sort)
# What talks to the programs from outside, which is how compiled modules are tested.
ON_COMPILED = $(addprefix tests/tunnel/test_,interop.py hostile_wire.py stock_counterparts.py authentication.py compiled_programs.py)
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup system demo test test-fast lint types unit programs compiled real lab verify budget lock schema reliability benchmark-patch benchmark-fleet benchmark-controllers benchmark-startup benchmark-dry-run benchmark-lifecycle benchmark-upgrade benchmark-lab benchmark-static-pods benchmark-tunnel benchmark-change soak man clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30

setup: $(STAMP)  ## Make the virtual environment in .venv, with .venv/bin/garboard

$(STAMP): requirements.lock requirements-uv.lock pyproject.toml
	@tools/setup/system-packages python
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.lock
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode requirements.lock
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --no-deps --no-build-isolation --compile-bytecode --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

lock:  ## Pin every dependency with hashes (after a change of pyproject.toml)
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" --group dev -o requirements.lock pyproject.toml
	printf 'kopf==1.45.2\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" -o benchmarks/fleet/requirements.lock -
	printf 'uv==0.13.7\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" -o requirements-uv.lock -

schema: setup  ## Regenerate the type, flag and feature gate data of every supported minor (needs Go)
	$(BIN)/python -m tools.schema.generate

demo: setup  ## Patches over manifests (diff, lint, explain), a fleet rendered, such patches in real clusters, and a pool of them
	@examples/patches/demo
	@examples/fleet/demo
	@tools/setup/system-packages lab
	@examples/lab/demo
	@examples/fleet/provision

lint: setup  ## Formatting, lint and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: setup  ## Types
	$(BIN)/mypy

unit: setup  ## Unit and property tests
	$(PYTEST) --record=fast -n 2 -m "not real and not lab and not verify"

test-fast: lint types unit  ## Lint, types, unit and property tests

# Before the tests, each of which has a limit of time: to build them all takes 20 minutes. In one call, so that what the
# minors share is compiled once; the build cache stays until the Go programs of the tests are built, too.
programs: setup compiled  ## Build or download the real programs, and those that tests compare with
	$(BIN)/garboard lab binaries get cluster konnectivity-server konnectivity-agent --kubernetes-version all --keep-build-cache > /dev/null
	$(BIN)/python -m tools.harness.oracles

# Once for the same sources; `PYTHONPATH=build/compiled` uses it.
compiled: setup  ## Make build/compiled: the package with the tunnel's modules compiled
	@tools/setup/system-packages compiler
	$(BIN)/python -m tools.compiled

real: setup programs  ## Comparisons with the real programs (needs root)
	@tools/setup/system-packages cri browser
	$(PYTEST) --record=real -n 2 $(BY_FILE) -m "real and not lab and not alone and not verify" $(REAL)
	PYTHONPATH=$(CURDIR)/build/compiled $(PYTEST) --compiled --record=compiled -n 2 $(BY_FILE) -m "real and not lab and not alone and not verify" $(ON_COMPILED)
	$(PYTEST) --record=alone -m "real and not lab and alone and not verify" $(REAL)

# In two processes where there is memory for the clusters of both.
lab: setup programs  ## Tests with real clusters in namespaces of this machine (needs root)
	@tools/setup/system-packages lab lab-test
	$(PYTEST) --record=lab -n auto $(BY_FILE) -m "lab and not alone and not verify" $(LAB)
	$(PYTEST) --record=lab-alone -m "lab and alone and not verify" $(LAB)

budget: setup
	@$(BIN)/python -m tools.budget begin

test: budget test-fast real lab  ## All the tests but those of `make verify`, and what they took of their budget
	@$(BIN)/python -m tools.budget

VERIFY = $(PYTEST) $(if $(ONLY),--capability=$(ONLY))
verify: setup programs  ## What is exhaustive, long or rare (needs root and 1.5 hours; ONLY=patches runs one capability)
	@tools/setup/system-packages cri browser lab lab-test
	$(VERIFY) -n 2 -m "hypothesis and not real and not lab" --hypothesis-profile=verify --hypothesis-seed=$(or $(SEED),$(DAY))
	$(VERIFY) -n 2 $(BY_FILE) -m "(verify or sampled) and not lab and not alone"
	$(VERIFY) -m "(verify or sampled) and not lab and alone"
	$(VERIFY) -n auto $(BY_FILE) -m "(verify or sampled) and lab and not alone" $(LAB)
	$(VERIFY) -m "(verify or sampled) and lab and alone" $(LAB)

reliability: setup  ## Kill init, joins, swaps and upgrades, and write the table of docs/reliability.md (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.reliability.run $(if $(FRESH),--fresh)

benchmark-patch: setup  ## Patch 4,000 objects beside kustomize and kubectl, and compare the results
	$(BIN)/python -m benchmarks.patch.run

benchmark-fleet: setup  ## Check 500 entries of an inventory over 60 manifests, beside kustomize
	$(BIN)/python -m benchmarks.fleet.run

PEER := build/benchmarks/kopf
benchmark-controllers: setup  ## Have a fleet's controller take on 5,000 clusters, beside a plain kopf loop (COUNT=1000 changes it)
	test -x $(PEER)/bin/python || $(PYTHON) -m venv --without-pip $(PEER)
	VIRTUAL_ENV=$(PEER) $(BIN)/uv pip sync --quiet --require-hashes benchmarks/fleet/requirements.lock
	$(BIN)/python -m benchmarks.fleet.controllers --kopf=$(PEER)/bin/kopf $(if $(COUNT),--count=$(COUNT))

benchmark-startup: setup  ## Time `garboard --help` beside a bare Python
	$(BIN)/python -m benchmarks.startup.run

benchmark-dry-run: setup  ## Time `init --dry-run` beside kubeadm's (needs root)
	$(BIN)/python -m benchmarks.dry_run.run

benchmark-lifecycle: setup  ## Time init and joins beside kubeadm's, alternating (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.lifecycle.run

benchmark-upgrade: setup  ## Time an upgrade of a cluster beside kubeadm's, under load (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.lifecycle.upgrade

benchmark-lab: setup  ## Time bare nodes, a cluster of one node and one of four (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.lab.run

benchmark-static-pods: setup  ## Time the swap of static pods beside renaming their manifests (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.static_pods.run

benchmark-change: setup  ## Time plans of changes, and changes of a cluster beside kubeadm's way (ONLY=plan, ONLY=apply; needs root)
	@test "$(ONLY)" = plan || tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.change.run $(if $(ONLY),--only $(ONLY))

benchmark-tunnel: setup  ## Measure the tunnel beside the stock Konnectivity pair, alternating (about half an hour)
	$(BIN)/python -m benchmarks.tunnel.run

soak: setup  ## Load the tunnel for 20 minutes while agents are killed (MINUTES=5 WORKERS=2 SEED=7 change it)
	$(BIN)/python -m benchmarks.tunnel.soak --minutes=$(or $(MINUTES),20) --workers=$(or $(WORKERS),1) $(if $(SEED),--seed=$(SEED))

man: setup  ## Write the manual pages of all commands into build/man
	$(BIN)/garboard man --output-dir build/man

clean:  ## Remove what the targets above made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build/man
