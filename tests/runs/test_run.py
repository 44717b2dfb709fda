"""Runs: the same figures for any number of workers, after a kill, and with workers that die."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.reports.write import write_report
from evalkit.runs import engine
from evalkit.runs.engine import run_local
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
    return {name: (folder / name).read_bytes() for name in ("summary.json", "episodes.csv", "report.md")}


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
    assert cells == list(range(made.episodes()))


def test_one_and_two_workers_give_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "CHUNK", 16)
    assert whole(tmp_path / "one", 1) == whole(tmp_path / "two", 2)


def test_a_kept_plan_loads_again(tmp_path: Path) -> None:
    made = plan()
    store = Store.create(tmp_path, made.recipe)
    store.close()
    again = Store.open(tmp_path, write=False)
    assert plan_from(again.recipe).recipe.id == made.recipe.id
    assert changes_since(again.recipe) == []


def test_resume_after_a_kill_gives_the_whole_run(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(TEXT)
    command = [sys.executable, "-m", "evalkit", "run", "s.yaml", "--seeds", "1500", "--no-charts"]
    command += [part for name in STRATEGIES for part in ("-s", name)]
    expected = subprocess.run(
        [*command, "--out", "whole", "--workers", "2"], cwd=tmp_path, capture_output=True, check=True
    )
    assert b"report: whole" in expected.stdout
    process = subprocess.Popen(
        [*command, "--out", "killed", "--workers", "2"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    folder = tmp_path / "killed"
    try:
        _until_some_episodes(folder)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    store = Store.open(folder, write=False)
    kept = store.count()
    store.close()
    assert 0 < kept < 4_503
    resumed = subprocess.run(
        [sys.executable, "-m", "evalkit", "run", "--resume", "killed", "--no-charts"],
        cwd=tmp_path,
        capture_output=True,
        check=True,
    )
    assert f"resuming killed: {kept} of 4503 episodes are there".encode() in resumed.stdout
    assert files(folder) == files(tmp_path / "whole")


def _until_some_episodes(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if (folder / FILE).exists():
            try:
                store = Store.open(folder, write=False)
                count = store.count()
                store.close()
            except RunError:
                continue
            if count:
                return
    raise AssertionError("no episode was stored in time")


MARKER = "EVALKIT_TEST_MARKER"


def dies_once(chunk: engine.Chunk) -> engine.Rows:
    marker = Path(os.environ[MARKER])
    if any(span.cell == 32 for span in chunk) and not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return engine.run_chunk(chunk)


def dies_at_cell_3(chunk: engine.Chunk) -> engine.Rows:
    if any(span.cell <= 3 < span.cell + span.seeds for span in chunk):
        os.kill(os.getpid(), signal.SIGKILL)
    return engine.run_chunk(chunk)


class TestTheDeathOfWorkers:
    def rows(self, made: Plan, task: Any, size: int) -> list[tuple[Any, ...]]:
        chunks = engine.chunked(made.spans(size), size)
        return sorted(row for rows in engine._Pool(made, 2, task).run(chunks) for row in rows)

    def test_a_chunk_lost_with_its_worker_is_run_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(MARKER, str(tmp_path / "died"))
        made = plan(40)
        rows = self.rows(made, dies_once, 8)
        assert [row[0] for row in rows] == list(range(made.episodes()))
        assert (tmp_path / "died").exists()
        assert "void" not in {row[4] for row in rows}

    def test_a_cell_that_always_kills_its_worker_is_void(self) -> None:
        made = plan(8, ("silence",))
        rows = self.rows(made, dies_at_cell_3, 4)
        assert [row[0] for row in rows] == list(range(9))
        assert [row[0] for row in rows if row[4] == "void"] == [3]
        assert "the worker died 3 times" in rows[3]


def test_what_evalkit_itself_fails_at_is_void_and_out_of_every_base(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalkit.runs import work

    def fails(*args: Any, **fields: Any) -> Any:
        if args[2] == 3:
            raise OSError("disk gone")
        return real(*args, **fields)

    real = work.run_episode
    monkeypatch.setattr(work, "run_episode", fails)
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
    rows = [row for chunk in run_local(made, engine.chunked(made.spans(4), 4), 1) for row in chunk]
    assert [row[0] for row in rows] == list(range(made.episodes()))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"seeds": 0}, "--seeds must be at least 1, got 0"),
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
    with pytest.raises(RunError, match="holds a run already"):
        Store.create(folder, made.recipe)
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot be written"):
        Store.create(tmp_path / "file" / "run", made.recipe)
