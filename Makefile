# Every target makes the environment that it needs, so `make run` and `make test` work on a clean machine.

# The fastest on PATH; PYTHON=path chooses another.
PYTHON ?= $(shell python3 tools/python_choice.py || python3.11 tools/python_choice.py)
BIN := .venv/bin
READY := .venv/.ready
SPARK_READY := .venv/.spark-ready
PIP := $(BIN)/pip --quiet --disable-pip-version-check
# Shows what is fetched, with the size of each file and how far it is. The totals below are those of Linux on x86-64,
# in pip's megabytes of 1,000,000 bytes.
FETCH := $(BIN)/pip --disable-pip-version-check install --require-hashes
# Three workers keep two cores busy, because tests wait for processes; WORKERS=0 runs everything in one process.
WORKERS ?= 3
# A session of Spark has threads of its own, and faults on real processes have limits of time: one for each core.
HEAVY_WORKERS ?= $(if $(filter 3,$(WORKERS)),2,$(WORKERS))
WORLDS := tests/simulation/test_many_worlds.py
# Every worker collects what it is given, so the files without such a test are left out.
REAL := $(shell grep -rlE 'mark\.(kafka|container)\b' tests --include='test_*.py' | grep -vE '^tests/(faults|spark)/' | sort)
ARGS ?=

.PHONY: help setup spark-setup spark-demo run run-controller wheel release incidents test conformance demo lint format schemas codegen fuzz bench hostile audit replication clients-test kafka-suite image-test thorough
.PHONY: clean

help:  ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

setup: $(READY)  ## .venv with the locked dependencies and kraftd itself

# Everything that is installed is locked by hash, pip and setuptools too. A build downloads nothing.
$(READY): requirements-build.lock requirements-dev.lock pyproject.toml setup.py kraftd/wire/_engine.c kraftd/wire/_records.c kraftd/spark/_columns.c
	@echo "setup fetches 118 MB in all, less what pip's cache has"
	@$(BIN)/python -c '' 2>/dev/null || { echo "with $(PYTHON)" && $(PYTHON) -m venv --clear .venv; }
	$(PIP) install --require-hashes -r requirements-build.lock
	$(FETCH) -r requirements-dev.lock
	$(PIP) --quiet install --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q kraftd
	$(BIN)/python -m kraftd.cli.write_code_archive
	@touch $@

spark-setup: $(SPARK_READY)  ## the extras kraftd[spark] and kraftd[lake] into .venv

$(SPARK_READY): requirements-spark.lock requirements-lake.lock $(READY)
	@echo "spark-setup fetches 591 MB in all, less what pip's cache has; 450 MB of it are PySpark, 52 MB Delta Lake"
	$(FETCH) -r requirements-spark.lock -r requirements-lake.lock
	@touch $@

run: setup  ## a whole Kafka: clients at 127.0.0.1:9092, controllers at 9093, its data in ./data
	@exec tools/run

run-controller: setup  ## a controller alone on 127.0.0.1:9093, for stock brokers
	@exec tools/run controller

wheel: setup  ## a wheel and an sdist in ./dist, with unit file, alert rules and dashboard
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir dist .

release: setup  ## wheel, sdist, image, their CycloneDX bills and SHA256SUMS in ./dist; ARGS=--help
	@$(BIN)/python -m tools.release $(ARGS)

incidents: setup  ## record the incidents of tests/metrics/incidents anew, for the tests of the alert rules
	$(BIN)/python -m tests.metrics.record_incidents $(ARGS)

# Real clusters wait more than they compute, so three run side by side, a folder each. Two quorums whose processes are
# broken run side by side as well, a file each, but with nothing else. What simulates uses every core itself.
test: setup spark-setup  ## every test but the thorough ones, with real Apache Kafka where Java is there
	$(BIN)/pytest -n $(WORKERS) -m "not kafka and not container and not spark" --ignore=tests/faults --ignore=$(WORLDS) $(ARGS)
	$(BIN)/pytest -n 0 $(WORLDS) $(ARGS)
	$(BIN)/pytest -n $(WORKERS) -m "(kafka or container) and not spark" $(REAL) $(ARGS)
	$(BIN)/pytest -n $(HEAVY_WORKERS) -m spark tests/spark $(ARGS)
	$(BIN)/pytest -n $(HEAVY_WORKERS) tests/faults $(ARGS)

thorough: setup spark-setup  ## the tests that `make test` leaves out: they find little that others do not, or take minutes
	$(BIN)/pytest -n $(WORKERS) --thorough -m thorough --timeout 7200 tests $(ARGS)

conformance: setup  ## random requests beside Apache Kafka: controllers, into docs/conformance.md, and brokers
	$(BIN)/python -m tests.kafka.conformance --write $(ARGS)
	$(BIN)/python -m tests.kafka.broker $(BROKER_ARGS)

replication: setup  ## stock and kraftd brokers die, freeze, roll, have bad links; transactional copies, share groups; MINUTES=10 a cluster
	MINUTES=$${MINUTES:-10} $(BIN)/pytest -n 0 --thorough --timeout 7200 tests/kafka/replication

demo: setup  ## kraftd and a stock broker: a topic, records in, records out
	@$(BIN)/python -m tools.demo

spark-demo: setup spark-setup  ## a cluster with a history, its tables, validation and report, in ./spark-demo
	@$(BIN)/python -m tools.spark_demo

lint: setup  ## style, types, layers, circles of imports, prose, and whether generated code is current
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tools.circles
	$(BIN)/python -m tools.prose
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

fuzz: setup spark-setup  ## hostile input for the C extensions with sanitizers; ARGS="SECONDS [SEED]"
	@$(BIN)/python -m tests.fuzzing $(ARGS)

bench: setup  ## kraftd beside Apache Kafka's controller: a table, bench/results/*.json, bench/plots/*.svg
	$(BIN)/python -m kraftd.cli.write_code_archive
	$(BIN)/python -m bench $(ARGS)

hostile: setup  ## attacks on three nodes, kraftd's and Apache Kafka's: what others notice; ARGS="--rows random"
	$(BIN)/python -m bench.hostile $(ARGS)

audit: setup  ## known vulnerabilities of all locked requirements; asks a service on the internet
	$(BIN)/pip-audit --strict --disable-pip --require-hashes $(foreach lock,$(wildcard requirements*.lock),--requirement $(lock))

clients-test: setup  ## Go's franz-go and its own test suite, with three brokers found by kraftd alone; needs Go 1.26
	$(BIN)/pytest -n 0 -s -v tests/kafka/clients/franz_go_suite.py $(ARGS)

kafka-suite: setup  ## Apache Kafka's own tests of clients, tools and requests, at clusters of kraftd; an hour; KAFKA_SUITE=regex
	$(BIN)/pytest -n 0 -s tests/kafka/clients/kafka_suite.py $(ARGS)

image-test: setup  ## build the container image and run it for real, with buildah and podman
	docker/image-test.sh

clean:  ## everything that can be made again
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
