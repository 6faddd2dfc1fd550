# Everything there is to do with this project. `make` lists it.
#
# Every target first sets up what it needs (tools/setup.sh), which takes no time when nothing changed.

BIN    := .venv/bin
SETUP  := tools/setup.sh
PYTEST := $(BIN)/python -m pytest
# Tests of the code that exists twice, compiled and in pure Python: they run with both.
TWICE  := $(wildcard tests/unit tests/model tests/sim tests/conformance tests/fuzz)
# Of these, tests of packages and modules that are not compiled: they run beside compiled ones only,
# as users run them.
ONCE   := $(wildcard $(addprefix tests/unit/,admin auth cli client cluster config front/amqp_0_10_transitional front/file_stream management model/filter model/lease model/settings model/xa pipeline spark store/backup store/journal testing server/logs wire/arrow wire/dissect wire/v010 wire/v09))
# Of both, what would say the same uncompiled: tests that run each implementation by themselves,
# start brokers for what is not compiled, measure memory, read sources, or compare versions of AMQP with each other.
SAME   := $(wildcard $(addprefix tests/,conformance/test_before_open.py conformance/test_harness.py conformance/test_names.py conformance/test_versions_agree.py conformance/v010/test_external.py conformance/v010t/test_kept_commands.py conformance/v010t/test_listener.py conformance/v010t/test_restart.py unit/base/test_impl.py unit/kernels unit/server/net/test_proxy_header.py unit/server/net/test_tcp_options.py unit/server/net/test_tls.py unit/server/test_loaded_definitions.py unit/server/test_reloading.py unit/server/test_secrets.py unit/server/test_service_manager.py))
# Tests that kill, starve and break the broker that users run, which is the compiled one.
NATIVE := $(wildcard tests/robustness)
# Where tests start Spark: it gives its Python processes ten seconds to start, so only two of these
# tests run at a time, and nothing of weight beside them. What does not start it runs with the rest.
SPARK  := $(wildcard tests/spark tests/docs/test_examples.py)

# Every broker and every Python of Spark that a test starts would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

# `make test` does all of these, says how long each took, and fails at the end if one of them did.
# What starts processes and waits for them comes first, and Spark last. What only computes runs beside
# both, from the beginning on, and takes the time that they leave over (`nice`).
FIRST  := "&lint types .test-python" ".test-native" ".test-rest"
LAST   := ".test-spark"
PARTS  := lint types .test-python .test-native .test-rest .test-spark

.DEFAULT_GOAL := help
.PHONY: help run test demo bench bench-spark bench-fairness lint types coverage conformance interop soak docs docs-site deb wheels clean
.PHONY: $(PARTS)
.NOTPARALLEL:

help:            ## List the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

run:             ## Start a broker (FLAGS="--port 5673" is passed on)
	@$(SETUP) run
	@echo "The command is $(BIN)/harebell: \`. $(BIN)/activate\` puts it on PATH."
	@exec $(BIN)/harebell serve $(FLAGS)

test:            ## Check and test everything; what fails does not keep the rest from running
	@$(SETUP) test
	@$(BIN)/python tools/parts.py "$(MAKE) --no-print-directory" $(FIRST) "" $(LAST)

demo:            ## Send a year of flights through the broker and Spark
	@$(SETUP) demo
	@$(BIN)/python examples/flights_demo.py $(FLAGS)

bench:           ## Measure the broker, and RabbitMQ beside it where it is installed
	@$(SETUP) test
	@$(BIN)/python -m bench --svg build/benchmarks.svg $(FLAGS)

bench-spark:     ## Measure the data pipeline beside what Spark itself can do
	@$(SETUP) test
	@$(BIN)/python -m bench.spark $(FLAGS)

bench-fairness:  ## Measure what one busy user costs all others, and what it does on RabbitMQ
	@$(SETUP) test
	@$(BIN)/python -m bench.fairness $(FLAGS)

lint:            ## Check style and layers
	@$(SETUP) test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

types:           ## Check types
	@$(SETUP) test
	$(BIN)/mypy
	$(BIN)/mypy $$(find bench tests -name '*.py' ! -name 'test_*')

coverage:        ## Show which lines of the package the unit tests run, uncompiled, in about five minutes
	@$(SETUP) test
	HAREBELL_IMPL=python $(PYTEST) -q -n 2 --dist worksteal -m 'not (soak or spark)' \
	  --cov=harebell --cov-report=term:skip-covered $(FLAGS) tests/unit

conformance:     ## Count the rules of the specifications that tests cover
	@$(SETUP) test
	@$(BIN)/python -m tests.conformance.ledger $(FLAGS)

interop:         ## Run the suites of other clients' authors here and on RabbitMQ
	@$(SETUP) test
	@$(BIN)/python -m tests.interop.suites $(FLAGS)

soak:            ## Run the long tests, three to four hours; the fuzzers share HAREBELL_FUZZ_SOAK_SECONDS, an hour
	@$(SETUP) test
	$(PYTEST) -m soak -s $(FLAGS)
	HYPOTHESIS_PROFILE=explore $(PYTEST) -n 2 tests/unit tests/model

docs:            ## Run every command and example of the documentation
	@$(SETUP) test
	$(PYTEST) tests/docs tests/tidy

docs-site:       ## Build the documentation site, in dist/docs-site
	@$(SETUP) site
	@$(BIN)/python tools/docs_site.py dist/docs-site

wheels:          ## Make the wheels and the source distribution, checked and tried, in dist
	@$(SETUP) run
	@$(BIN)/python tools/wheels.py dist

deb:             ## Make the Debian package, in dist
	@$(SETUP) run
	@$(BIN)/python tools/deb.py dist

clean:           ## Remove what was built (.venv stays: rm -r .venv)
	rm -rf build dist .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests bench tools -name __pycache__ -prune -exec rm -rf {} +
	find src '(' -name '*.so' -o -name '*.pyi' ')' -delete

.test-native:
	HAREBELL_IMPL=native $(PYTEST) -n 3 --dist worksteal $(NATIVE) $(TWICE)

.test-python:
	HAREBELL_IMPL=python nice -n 10 $(PYTEST) -n 2 --timeout 3600 --dist worksteal $(TWICE) $(ONCE:%=--ignore=%) $(SAME:%=--ignore=%)

.test-rest:
	$(PYTEST) -n 6 --dist loadfile -m 'not (soak or spark)' tests $(NATIVE:%=--ignore=%) $(TWICE:%=--ignore=%)

.test-spark:
	$(PYTEST) -n 2 --dist loadfile -m 'spark and not soak' $(SPARK)
