"""Runs: the same figures for any number of workers, after a kill, and with workers that die."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from evalkit.reports.write import write_report
from evalkit.runs.chunk_worker import measured
from evalkit.runs.chunks import Chunk, Rows, Work
from evalkit.runs.engine import EngineError
from evalkit.runs.engines import find_engine
from evalkit.runs.local_pool import Local
from evalkit.runs.plan import Plan, PlanError, changes_since, make_plan, plan_from
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, RunError, Store
from evalkit.scenarios.loader import load_text
from tests.helpers import document

RANDOM: list[Any] = [
    {"call": "list_items"},
    {"either": [{"p": 0.5, "do": [{"work": 1}]}]},
    {"say": "On it.", "claim": "partial"},
    {"either": [{"p": 0.7, "do": [{"work": "rest"}]}]},
    {"say": "Done.", "claim": "done"},
]
PLAIN: list[Any] = [{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}]
TEXT = (
    yaml.safe_dump(document(RANDOM, scenario="random"))
    + "---\n"
    + yaml.safe_dump(document(PLAIN, scenario="plain"))
)
STRATEGIES = ("silence", "gate", "keyword")


def plan(seeds: int = 50, strategies: tuple[str, ...] = STRATEGIES) -> Plan:
    return make_plan(load_text(TEXT, "s.yaml"), {"s.yaml": TEXT}, strategies, seeds)


def files(folder: Path) -> dict[str, bytes]:
    """What a run has to show, but for the line that says when it was made."""
    found = {name: (folder / name).read_bytes() for name in ("summary.json", "episodes.csv", "report.md")}
    found["report.md"] = re.sub(rb"^Run `.* UTC,", b"", found["report.md"], flags=re.MULTILINE)
    return found


def whole(folder: Path, workers: int = 1, seeds: int = 50) -> dict[str, bytes]:
    made = plan(seeds)
    store = Store.create(folder, made.recipe)
    run_plan(made, store, workers)
    write_report(store, charts=False)
    store.close()
    return files(folder)


def test_a_scenario_without_choices_runs_once() -> None:
    made = plan(50)
    assert made.episodes() == 3 * 50 + 3
    cells = [span.cell + n for span in made.spans(16) for n in range(span.seeds)]
    assert sorted(cells) == list(range(made.episodes()))
    first = next(made.spans(16))
    assert (first.scenario, first.contender, first.seeds) == (0, 0, 16)


def test_one_and_two_workers_give_the_same_bytes(tmp_path: Path) -> None:
    assert whole(tmp_path / "one", 1) == whole(tmp_path / "two", 2)


def test_a_kept_plan_loads_again(tmp_path: Path) -> None:
    made = plan()
    store = Store.create(tmp_path, made.recipe)
    store.close()
    again = Store.open(tmp_path, write=False)
    assert plan_from(again.recipe).recipe.id == made.recipe.id
    assert changes_since(again.recipe) == []


def test_a_changed_version_strategy_or_scenario_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(TEXT)
    made = make_plan(load_text(TEXT, str(file)), {str(file): TEXT}, ("gate",), 1).recipe
    assert changes_since(made) == []
    older = msgspec.structs.replace(made, evalkit="0.0.1", strategies={"gate": "another"})
    file.write_text(TEXT + "\n")
    version, scenario, strategy = changes_since(older)
    assert version.startswith("the run was made by evalkit 0.0.1, this is ")
    assert scenario.startswith(f"changed since: {file}; ")
    assert strategy == "strategy 'gate' has changed since"


MARKER = "EVALKIT_TEST_MARKER"


def dies_once(chunk: Chunk) -> tuple[Rows, float]:
    marker = Path(os.environ[MARKER])
    if any(span.cell <= 32 < span.cell + span.seeds for span in chunk) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return measured(chunk)


def dies_at_cell_3(chunk: Chunk) -> tuple[Rows, float]:
    if any(span.cell <= 3 < span.cell + span.seeds for span in chunk):
        os.kill(os.getpid(), signal.SIGKILL)
    return measured(chunk)


class TestTheDeathOfWorkers:
    def rows(self, made: Plan, task: Any) -> list[tuple[Any, ...]]:
        work = Work(made, made.spans(8))
        return sorted(row for rows in Local(2, task).run(made, work) for row in rows)

    def test_a_chunk_lost_with_its_worker_is_run_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(MARKER, str(tmp_path / "died"))
        made = plan(40)
        rows = self.rows(made, dies_once)
        assert [row[0] for row in rows] == list(range(made.episodes()))
        assert (tmp_path / "died").exists()
        assert "void" not in {row[4] for row in rows}

    def test_a_cell_that_always_kills_its_worker_is_void(self) -> None:
        made = plan(8, ("silence",))
        rows = self.rows(made, dies_at_cell_3)
        assert [row[0] for row in rows] == list(range(9))
        assert [row[0] for row in rows if row[4] == "void"] == [3]
        assert "the worker died 3 times" in rows[3]


def test_what_evalkit_itself_fails_at_is_void_and_out_of_every_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.media import players

    def fails(*args: Any, **fields: Any) -> Any:
        if args[2] == 3:
            raise OSError("disk gone")
        return real(*args, **fields)

    real = players.run_episode
    monkeypatch.setattr(players, "run_episode", fails)
    made = plan(10, ("gate",))
    store = Store.create(tmp_path, made.recipe)
    run_plan(made, store, 1)
    summary, _ = write_report(store, charts=False)
    assert summary["run"]["void"] == 1
    assert summary["run"]["gateable"] is False
    (row, *_) = summary["rows"]
    assert row["episodes"] == row["correct"]["base"] == 10
    assert b"OSError: disk gone" in (tmp_path / "episodes.csv").read_bytes()


def test_every_cell_is_there(tmp_path: Path) -> None:
    made = plan(3)
    rows = [row for chunk in Local(1).run(made, Work(made, made.spans(4))) for row in chunk]
    assert sorted(row[0] for row in rows) == list(range(made.episodes()))


@pytest.mark.parametrize("name", ["ray", "dask:", "dask://", "dask://host", "dask://host:x", "local://a:1"])
def test_an_unknown_engine_names_what_is_allowed(name: str) -> None:
    with pytest.raises(EngineError, match=f"{name!r}: allowed are local, dask, dask://HOST:PORT"):
        find_engine(name, 1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"strategies": ("gate", "gate")}, "strategy 'gate' is named twice"),
        ({"strategies": ("gaet",)}, "unknown strategy 'gaet'"),
    ],
)
def test_a_plan_that_cannot_be_run(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**fields)


def test_run_folders_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no run folder"):
        Store.open(tmp_path, write=False)
    (tmp_path / FILE).write_bytes(b"not a database at all, but long enough to look like a file")
    with pytest.raises(RunError, match="the run cannot be read"):
        Store.open(tmp_path, write=False)
    made = plan(1)
    folder = tmp_path / "run"
    Store.create(folder, made.recipe).close()
    with pytest.raises(RunError, match=r"holds a run already; .* --out \S+run-2"):
        Store.create(folder, made.recipe)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match=r"run: cannot be written: Not a directory$"):
        Store.create(tmp_path / "file" / "run", made.recipe)


class TestTheWorkerAsAHarness:
    CRASHED = yaml.safe_dump(
        document(
            [{"call": "list_items"}, {"work": 1}, {"crash": True}, {"work": "rest"}, PLAIN[-1]],
            scenario="crashed",
        )
    )

    def rows(
        self, tmp_path: Path, strategies: tuple[str, ...], harnesses: tuple[str, ...]
    ) -> tuple[Any, Any]:
        text = f"{self.CRASHED}---\n{yaml.safe_dump(document(PLAIN, scenario='plain'))}"
        made = make_plan(load_text(text, "s.yaml"), {"s.yaml": text}, strategies, 1, harnesses=harnesses)
        store = Store.create(tmp_path / "run", made.recipe)
        run_plan(made, store, 1)
        query = "select scenario_name, harness, outcome from episodes order by cell"
        found = list(store.rows(query))
        store.close()
        return found, made

    def test_it_plays_what_the_loop_cannot(self, tmp_path: Path) -> None:
        found, made = self.rows(tmp_path, ("silence",), ("worker", "worker:acceptance"))
        assert found == [
            ("crashed", "worker", "done/complete"),
            ("crashed", "worker:acceptance", "done/complete"),
            ("plain", "loop", "done/complete"),
            ("plain", "worker", "done/complete"),
            ("plain", "worker:acceptance", "done/complete"),
        ]
        lacking = "the reference loop has no notion of: crash"
        assert made.recipe.not_expressible == {"crashed × silence": lacking}
        assert changes_since(made.recipe) == []
        assert plan_from(made.recipe).episodes() == 5

    def test_without_it_the_scenario_is_left_out(self, tmp_path: Path) -> None:
        found, made = self.rows(tmp_path, ("silence",), ())
        assert [row[0] for row in found] == ["plain"]
        assert list(made.recipe.not_expressible) == ["crashed"]

    def test_its_strategy_must_be_known(self) -> None:
        with pytest.raises(PlanError, match="harness 'worker:gaet': unknown strategy 'gaet'"):
            make_plan(load_text(TEXT), {}, ("silence",), 1, harnesses=("worker:gaet",))
