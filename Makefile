# Two commands matter: `make demo` (the main job) and `make test` (everything). Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup system demo test test-fast lint types unit programs real lab lock schema reliability benchmark-patch benchmark-startup benchmark-dry-run benchmark-lifecycle benchmark-lab benchmark-tunnel clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

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
	printf 'uv==0.13.7\n' | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" -o requirements-uv.lock -

schema: setup  ## Regenerate the type, flag and feature gate data of every supported minor (needs Go)
	$(BIN)/python -m tools.schema.generate

demo: setup  ## Patches over sample manifests (diff, lint, explain), then the same kind of patches in a real cluster
	@examples/patches/demo
	@tools/setup/system-packages lab
	@examples/lab/demo

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache

types: setup
	$(BIN)/mypy

unit: setup
	$(PYTEST) -q -n 2 -m "not real and not lab"

test-fast: lint types unit  ## Lint, types, unit and property tests: about a minute

# Before the tests, each of which has a limit of time: to build them all takes 20 minutes.
programs: setup
	$(BIN)/garboard lab binaries get --kubernetes-version v1.36.4 > /dev/null
	$(BIN)/garboard lab binaries get --kubernetes-version v1.37.1 > /dev/null
	$(BIN)/garboard lab binaries get konnectivity-server konnectivity-agent > /dev/null

# A file goes to one of the two processes as a whole, because its tests share clusters.
real: setup programs
	@tools/setup/system-packages cri
	$(PYTEST) -q -n 2 --dist loadfile --no-loadscope-reorder -m "real and not lab and not alone"
	$(PYTEST) -q -m "real and not lab and alone"

lab: setup programs  ## Tests with real clusters in namespaces of this machine (needs root)
	@tools/setup/system-packages lab lab-test
	$(PYTEST) -q -m lab

test: test-fast real lab  ## All the tests

reliability: setup  ## Kill init and join at every point, and write the table of docs/reliability.md (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.reliability.run

benchmark-patch: setup  ## Patch 4,000 objects beside kustomize and kubectl, and compare the results
	$(BIN)/python -m benchmarks.patch.run

benchmark-startup: setup  ## Time `garboard --help` beside a bare Python
	$(BIN)/python -m benchmarks.startup.run

benchmark-dry-run: setup  ## Time `init --dry-run` beside kubeadm's (needs root)
	$(BIN)/python -m benchmarks.dry_run.run

benchmark-lifecycle: setup  ## Time init and joins beside kubeadm's, in turns (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.lifecycle.run

benchmark-lab: setup  ## Time bare nodes, a cluster of one node and one of four (needs root)
	@tools/setup/system-packages lab
	$(BIN)/python -m benchmarks.lab.run

benchmark-tunnel: setup  ## Measure the tunnel beside the stock Konnectivity pair, in turns (about half an hour)
	$(BIN)/python -m benchmarks.tunnel.run

clean:  ## Remove what the targets above made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
