# Everything runs from .venv, made from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all test-harnesses league lint types bench lock clean

setup: .venv/.ready

.venv/.ready: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.lock
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/evalkit run --seeds 3

test: setup lint types
	$(BIN)/pytest -n auto

test-all: test
	$(BIN)/pytest -m "not harness"

# Sets up six Python frameworks and a Node one on first use, and plays a small suite with each.
test-harnesses: setup
	$(BIN)/pytest -m harness tests/harnesses tests/worker

# Every harness on the behaviours and on the whole library: an hour and more. Writes reports/league/.
league: setup
	$(BIN)/evalkit harnesses setup
	$(BIN)/evalkit harnesses league --out reports/league

lint: setup
	$(BIN)/ruff check evalkit tests
	$(BIN)/ruff format --check evalkit tests
	$(BIN)/lint-imports

types: setup
	$(BIN)/mypy

bench: setup
	$(BIN)/python -m tests.bench
	$(BIN)/python -m tests.bench_worker

lock:
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-header --no-annotate --no-emit-index-url \
		--all-extras --group dev --python-version 3.11 pyproject.toml -o requirements.lock

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
