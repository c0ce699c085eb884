# `make up` runs Minutebook here, `make test` passes its tests: both set up what they need first.
PY ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q

# The tests start many short processes: they share what one has compiled. Their databases wait for
# no disk where memory has the room.
IN_MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "TMPDIR=/dev/shm"}')
PYTEST = env -u PYTHONDONTWRITEBYTECODE $(IN_MEMORY) $(BIN)/python -P -m pytest -q

LOCKS = requirements/server.lock requirements/base.lock requirements/build.lock requirements/dev.lock requirements/client.lock

.PHONY: setup setup-dev up test test-slow test-again test-quick chaos worlds fuzz attack audit lint types contracts check bench bench-peers dist release-check test-matrix lock clean

setup: $(VENV)/.stamp
setup-dev: $(VENV)/.stamp-dev

$(BIN)/python:
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Minutebook needs Python 3.11 or newer; set PY=/path/to/python3.11" >&2; exit 1; }
	@echo "making $(VENV) with $(PY)"
	@$(PY) -m venv $(VENV) 2>/dev/null || { rm -rf $(VENV); $(PY) -m venv --without-pip $(VENV) && $(PY) -m pip --python $(BIN)/python install -q pip; }

$(VENV)/.stamp: requirements/server.lock pyproject.toml release/client/pyproject.toml | $(BIN)/python
	@echo "installing what Minutebook runs with"
	@$(PIP) install --require-hashes -r requirements/server.lock
	@$(PIP) install --no-deps --no-build-isolation -e release/client -e .
	@touch $@

# The generator of HTTP clients works with our typer, though it asks for an older one: --no-deps.
$(VENV)/.stamp-dev: requirements/dev.lock requirements/client.lock $(VENV)/.stamp
	@echo "installing what the tests need"
	@$(PIP) install --require-hashes -r requirements/dev.lock
	@$(PIP) install --require-hashes --no-deps -r requirements/client.lock
	@touch $@

up: $(VENV)/.stamp ## Run everything here, with the demo small app; Ctrl-C stops it
	@exec $(BIN)/minutebook up --demo

# Compiled once, by two processes, not by each of those that run the tests.
$(VENV)/.stamp-compiled: $(VENV)/.stamp-dev
	@echo "compiling the tests"
	@$(PYTEST) --collect-only tests/integration >/dev/null & $(PYTEST) --collect-only --ignore=tests/integration tests >/dev/null; wait
	@touch $@

test: $(VENV)/.stamp-compiled ## Pass the tests of every tier, against a real PostgreSQL, Redis and SMTP server
	$(PYTEST) -n 6

test-slow: $(VENV)/.stamp-compiled ## Pass the rest: rare ground, and the kernel on the other store
	$(PYTEST) -n 10 -m 'slow and not storm and not matrix'

test-again: $(VENV)/.stamp-dev ## Run what failed in the last run once more, one test at a time; refuse more than three
	@$(BIN)/python -c 'import json; failed = json.load(open(".pytest_cache/v/cache/lastfailed")); print("once more, alone:", *failed, sep="\n  "); raise SystemExit(len(failed) > 3)'
	$(PYTEST) -m 'not storm and not matrix' --last-failed --last-failed-no-failures none

test-quick: $(VENV)/.stamp-dev ## Pass what needs no server but SQLite, in less than a minute
	$(PYTEST) -n 2 --quick tests/unit tests/integration/store tests/integration/scheduler

chaos: $(VENV)/.stamp-dev ## Storm for minutes on each store; SECONDS=300 SEEDS=1,2 storms again as it was told
	CHAOS_SECONDS=$(or $(SECONDS),180) CHAOS_SEEDS=$(SEEDS) $(BIN)/python -P -m pytest -q -s -m storm tests/chaos tests/hostile

worlds: $(VENV)/.stamp-dev ## Live through simulated worlds for a while; SECONDS=600 SEED=17 STORE=sqlite
	$(IN_MEMORY) $(BIN)/python -m tests.worlds --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED)) $(if $(STORE),--store $(STORE))

fuzz: $(VENV)/.stamp-dev ## Mutate the kept corpus of hostile inputs; MINUTES=5 SEED=1 KINDS="documents sources"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/fuzz.lock 2>/dev/null || echo "no wheel of atheris for this Python and machine: random mutation alone"
	$(IN_MEMORY) $(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),5) $(if $(SEED),--seed $(SEED)) $(KINDS)

attack: $(VENV)/.stamp-dev ## Carry out every known attack
	$(IN_MEMORY) $(BIN)/python -m tests.hostile.attacks

lint: $(VENV)/.stamp-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.stamp-dev
	$(BIN)/mypy

audit: ## Look for the locked versions among the known vulnerabilities; needs the network
	@test -x $(VENV)-audit/bin/python || $(PY) -m venv $(VENV)-audit
	@$(VENV)-audit/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r requirements/audit.lock
	$(VENV)-audit/bin/pip-audit --vulnerability-service osv --disable-pip --require-hashes $(LOCKS:%=-r %)

contracts: $(VENV)/.stamp-dev
	$(BIN)/lint-imports

check: lint types contracts test test-slow

bench: $(VENV)/.stamp-dev ## Measure; see docs/dev/benchmarks/README.md
	$(BIN)/python benchmarks/bench_cron.py
	$(BIN)/python -m benchmarks.run_all

$(VENV)-peers/.stamp: requirements/peers.lock
	@test -x $(VENV)-peers/bin/python || $(PY) -m venv $(VENV)-peers
	@$(VENV)-peers/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r requirements/peers.lock
	@touch $@

bench-peers: $(VENV)/.stamp-dev $(VENV)-peers/.stamp ## Put Minutebook beside celery beat and others; PART=clocks,due,idle,faults OUTPUT=FILE
	$(IN_MEMORY) $(BIN)/python -m benchmarks.peers $(if $(PART),--part $(PART)) $(if $(OUTPUT),--output $(OUTPUT))

# Not what Minutebook runs with: whoever builds the wheels needs nothing else.
$(VENV)-build/.stamp: requirements/build.lock
	@test -x $(VENV)-build/bin/python || $(PY) -m venv $(VENV)-build
	@$(VENV)-build/bin/python -m pip --disable-pip-version-check -q install --require-hashes -r requirements/build.lock
	@touch $@

# The same source gives the same wheels: a fixed time stands in them.
dist: $(VENV)-build/.stamp ## Build the wheels and sdists of minutebook-client and minutebook into dist/
	@rm -rf dist
	@for package in release/client .; do \
	  SOURCE_DATE_EPOCH=1767225600 $(VENV)-build/bin/python -m build --no-isolation --outdir dist $$package >/dev/null || exit 1; \
	done
	$(VENV)-build/bin/twine check --strict dist/*

release-check: dist ## Before an upload: are the distributions valid and their names free? Needs the network
	@$(VENV)-build/bin/python release/names.py

test-matrix: $(VENV)/.stamp-dev ## Follow a task in Celery 5.2 to 5.7, install each extra, run on other servers and Pythons, build the images by hand
	$(IN_MEMORY) $(BIN)/python -P -m pytest -q -rs -m matrix tests/packages tests/docs

# What `make bench-peers` measures, with what it needs, in an environment of its own.
PEERS = 'apscheduler>=3.11,<4' 'celery-redbeat>=2.4,<3' 'celery[redis]>=5.7,<5.8' 'django-celery-beat>=2.9,<3' \
  'psycopg[binary]>=3.3,<4' 'sqlalchemy>=2.1,<2.2' 'time-machine>=3,<4'
COMPILE = uv pip compile -q --universal --generate-hashes --no-header --no-annotate --python-version 3.11

lock: ## For maintainers: write the lock files anew (names, versions and hashes only)
	$(COMPILE) --extra data --extra notify --extra web --extra checkout --no-emit-package minutebook-client pyproject.toml -o requirements/server.lock
	$(COMPILE) --extra web -c requirements/server.lock --no-emit-package minutebook-client pyproject.toml -o requirements/base.lock
	$(COMPILE) --all-extras -c requirements/server.lock --no-emit-package minutebook-client pyproject.toml -o requirements/dev.lock
	printf 'build>=1.3,<2\nsetuptools>=80\ntwine>=6,<7\n' | $(COMPILE) - -o requirements/build.lock
	printf 'celery-once>=3,<4\ncelery-singleton>=0.3,<0.4\nopenapi-python-client>=0.29.1,<0.30\nruamel-yaml\n' | $(COMPILE) --no-deps - -o requirements/client.lock
	echo pip-audit | $(COMPILE) - -o requirements/audit.lock
	printf '%s\n' $(PEERS) | $(COMPILE) -c requirements/dev.lock - -o requirements/peers.lock

clean:
	rm -rf $(VENV) $(VENV)-audit $(VENV)-build $(VENV)-peers build dist *.egg-info release/client/*.egg-info release/client/build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
