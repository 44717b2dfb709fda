# Everything runs from .venv, made from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: fit figures oldest setup demo test test-long test-all test-harnesses test-frameworks soak promises live gateways fuzz simulations verify mutants league cards lint types bench cassettes release-check lock clean recordings

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/evalkit run

test: setup lint types
	$(BIN)/pytest -n auto

# What takes over half a second each: whole commands, killed workers, the documentation's examples.
test-long: setup
	$(BIN)/pytest -n auto -m "long and not slow and not harness and not gateway"

test-all: test
	$(BIN)/pytest -m "not harness"

# Sets up nine Python frameworks and a Node one on first use, and plays a small suite with each; and has what the server
# sends parsed by the newest majors of the providers' SDKs and of the AI SDK.
test-harnesses: setup
	$(BIN)/pytest -m "harness and not league" tests/harnesses tests/worker tests/wire

# Each framework of the league by itself: three gigabytes of environments.
test-frameworks: setup
	$(BIN)/pytest -m harness tests/harnesses/test_frameworks.py

# What takes too long for every change: killed and resumed a hundred times, and the like.
soak: setup
	$(BIN)/pytest -m "soak or dask" tests/containment tests/cli tests/runs tests/worker

# Breaks each promise of docs/promises.md, one after the other; fails where a test that is named for it does not.
promises: setup
	$(BIN)/python -m tests.promises

# Live runs through LiteLLM's proxy, lm-proxy and Portkey's gateway, each in an environment of its own
# (.cache/gateways) and on loopback before the scripted server.
GATEWAYS := .cache/gateways
gateways: setup
	mkdir -p $(GATEWAYS)/portkey
	for each in "litellm litellm[proxy]==1.108.7" "lmproxy lm-proxy==3.3.2"; do set -- $$each; \
		$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(GATEWAYS)/$$1 && \
		$(BIN)/uv pip install --quiet --python $(GATEWAYS)/$$1/bin/python "$$2" || exit 1; \
	done
	cd $(GATEWAYS)/portkey && npm install --silent --ignore-scripts --no-fund --no-audit @portkey-ai/gateway@1.15.2
	$(BIN)/pytest -n 0 -m gateway tests/live

# Live runs on loopback with the oldest versions of each dependency that pyproject.toml allows, the SDKs' among them.
OLDEST := .cache/oldest
oldest: setup
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(OLDEST)
	$(BIN)/uv pip install --quiet --resolution lowest-direct --python $(OLDEST)/bin/python -e '.[live,server]' hypothesis==6.120
	$(OLDEST)/bin/python -m pytest tests/live/test_gateways.py tests/live/test_live_runs.py tests/live/test_recordings.py

# Live runs against a provider on loopback: killed a hundred times and gone on with, and 200 episodes timed.
# Writes reports/live/.
live: setup
	$(BIN)/python -m tests.live

# atheris, in an environment of its own, FUZZ_SECONDS for each reader of input. Where it cannot be installed
# Hypothesis looks instead, at more examples than in the tests.
FUZZ_SECONDS ?= 60
FUZZ := .cache/fuzz/bin/python
fuzz: setup
	@if $(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .cache/fuzz \
		&& $(BIN)/uv pip install --quiet --python $(FUZZ) atheris==3.0.0 -e '.[live,server]' hypothesis; then \
		$(FUZZ) -m tests.fuzz $(FUZZ_SECONDS); \
	else \
		echo "atheris cannot be installed here: Hypothesis looks instead" >&2; \
		EVALKIT_FUZZ_EXAMPLES=5000 HYPOTHESIS_PROFILE=explore $(BIN)/pytest tests/fuzz; \
	fi

# Type I errors and coverage by simulation, SIMULATIONS of each: the tables of docs/statistics.md.
SIMULATIONS ?= 2000
simulations: setup
	$(BIN)/python -m tests.stats.simulations $(SIMULATIONS)

# Proofs against a brute force, gate with the larger alphabet, planted bugs and careful programs over five seeds,
# mutants, simulations: hours. One PART of it: make verify PARTS=proofs.
PARTS ?=
verify: setup
	$(BIN)/python -m tests.search.verify $(PARTS)

# Every harness on the behaviours, the library and its events: hours. A row that is whole is kept, so it may be interrupted and
# goes on; LEAGUE="--harness NAME" plays a part. Writes reports/league/.
LEAGUE ?=
league: setup
	$(BIN)/evalkit harnesses setup
	$(BIN)/evalkit harnesses league --out reports/league $(LEAGUE)

# How each of them counts, ends and gives up: minutes each. Writes reports/league/cards/.
CARDS ?=
cards: setup
	$(BIN)/evalkit harnesses setup
	$(BIN)/evalkit harnesses card --out reports/league/cards $(CARDS)

# Recordings of the scripted server: made again when the scenarios in them change.
RECORDED := last-turn-is-a-batch one-of-a-batch-fails outage-at-the-summary child-does-all-of-it batch-lands-whole \
	batch-loses-one promises-for-ever finish-before-anything-is-listed budget-spent-with-the-last-item \
	false-claim-on-the-last-turn nothing-done-at-all empty-for-ever skips-honestly-after-a-report not-my-turn-yet \
	inbox-half-that-checks-see finish-beside-good-build finish-beside-broken-build claims-in-plain-words-only \
	wrong-case-at-the-end orphan-may-be-skipped tests-green-that-never-ran newsletter-goes-out-twice \
	migration-reports-at-four-of-six
RECORDERS := silence finish_tool checklist verifier_claim acceptance gate

cassettes: setup
	rm -rf cassettes/anthropic cassettes/responses cassettes/chat
	for dialect in anthropic responses chat; do \
		$(BIN)/evalkit run $(RECORDED) $(RECORDERS:%=-s %) --dialect $$dialect --record cassettes/$$dialect \
			--out reports/recorded-$$dialect --no-charts || exit 1; \
		rm -rf reports/recorded-$$dialect; \
	done
	$(BIN)/evalkit cassettes check

# What is released, installed in an empty environment of each Python that uv finds on this machine: wheel and sdist.
PYTHONS := 3.11 3.12 3.13 3.14
release-check: setup
	rm -rf dist .cache/release && $(BIN)/uv build --quiet --out-dir dist .
	@for python in $(PYTHONS); do for file in dist/*.whl dist/*.tar.gz; do \
		if ! $(BIN)/uv python find --quiet --no-python-downloads $$python >/dev/null 2>&1; then \
			echo "$$python: is not on this machine"; continue 2; \
		fi; \
		$(BIN)/uv venv --quiet --clear --no-python-downloads --python $$python .cache/release && \
		$(BIN)/uv pip install --quiet --python .cache/release/bin/python "$$file[report,server]" && \
		(cd .cache/release && bin/python ../../tests/installed.py) && echo "$$python: $$file works" || exit 1; \
	done; done

# Breaks evalkit's own code by rule, 520 times, and says what scenarios and tests notice: about two core seconds each.
# MUTANTS="--place gate --size 100": of one place, or fewer.
mutants: setup
	$(BIN)/python -m tests.mutation $(MUTANTS)

lint: setup
	$(BIN)/ruff check evalkit harnesses tests
	$(BIN)/ruff format --check evalkit harnesses tests
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

# The found inputs (EVALKIT_SHARED), one truth over the wire, and cells and speed beside a commit (EVALKIT_BEFORE).
figures: setup
	$(BIN)/python -m tests.figures

# What is read right, claims, incidents, what catches them, speed. With EVALKIT_SHARED on real recordings too,
# with EVALKIT_CLAIMS on ends of turn of public repositories (tests/transcripts/found_claims.csv says which).
recordings: setup
	$(BIN)/python -m tests.transcripts

# Parameters of the shipped populations, bounds, and a simulation of 200 fits. With EVALKIT_SHARED of real recordings,
# and with VALIDATE=--validate held to halves of their tasks (minutes).
VALIDATE ?=
fit: setup
	$(BIN)/python -m tests.fit $(VALIDATE)

# Against three frameworks in environments of their own (.cache/peers), and a run of a million episodes: half
# an hour. Writes reports/bench/.
bench: setup
	$(BIN)/python -m tests.bench

lock:
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--all-extras --group dev --python-version 3.11 pyproject.toml -o requirements.lock

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
