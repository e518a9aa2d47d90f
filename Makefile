# Every target makes the environment it needs: `make run` and `make test` are all a clean machine has to be told.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
BIN := .venv/bin
READY := .venv/.ready
# Two workers: tests with real brokers keep both busy; WORKERS=0 runs everything in one process.
WORKERS ?= 2
WORLDS := tests/simulation/test_many_worlds.py
ARGS ?=

.PHONY: help setup run test demo lint format schemas codegen bench image-test clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## .venv with the locked dependencies and kraftd itself

$(READY): requirements-dev.lock pyproject.toml setup.py kraftd/wire/_engine.c
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	$(BIN)/python -m compileall -q kraftd
	@touch $@

run: setup  ## a controller on 127.0.0.1:9093 with its data in ./data
	@exec tools/run

# What starts real clusters or breaks real processes runs alone, so that nothing else takes its time from it;
# what simulates uses every core itself.
test: setup  ## every test, with real Apache Kafka where Java is there
	$(BIN)/pytest -n $(WORKERS) -m "not kafka and not container" --ignore=tests/faults --ignore=$(WORLDS) $(ARGS)
	$(BIN)/pytest -n 0 $(WORLDS) $(ARGS)
	$(BIN)/pytest -n 0 -m "kafka or container" --ignore=tests/faults $(ARGS)
	$(BIN)/pytest -n 0 tests/faults $(ARGS)

demo: setup  ## kraftd and a stock broker: a topic, records in, records out
	@$(BIN)/python -m tools.demo

lint: setup  ## style, types, layers, and whether generated code is current
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m codegen.generate --check
	$(BIN)/python -m codegen.configs.generate --check

format: setup  ## what lint would say of style, done
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

schemas: setup  ## facts of Kafka's messages and configs, from its jars into schemas/
	$(BIN)/python -m codegen.extract
	$(BIN)/python -m codegen.configs.extract

codegen: setup  ## schemas/ into kraftd/messages/ and kraftd/configdef/
	$(BIN)/python -m codegen.generate
	$(BIN)/python -m codegen.configs.generate

bench: setup  ## kraftd beside Apache Kafka's controller: a table, bench/results/*.json, bench/plots/*.svg
	$(BIN)/python -m bench $(ARGS)

image-test: setup  ## build the container image and run it for real, with buildah and podman
	docker/image-test.sh

clean:  ## everything that can be made again
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
