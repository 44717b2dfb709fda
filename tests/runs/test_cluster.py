"""The Dask engine: a real scheduler and worker processes on loopback, one of them killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalkit.media.medium import Medium
from evalkit.reports.write import write_report
from evalkit.runs import cluster
from evalkit.runs.chunks import Rows, Work
from evalkit.runs.engine import EngineError
from evalkit.runs.engines import find_engine
from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.loader import load_text
from tests.runs.test_run import TEXT, files, plan, whole

pytestmark = pytest.mark.dask

SEEDS = 400


def start(*arguments: str, folder: Path) -> subprocess.Popen[bytes]:
    quiet = {**os.environ, "DASK_LOGGING__DISTRIBUTED": "critical"}
    return subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments],
        cwd=folder,
        env=quiet,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Machines:
    """A scheduler and two workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.rpartition(":")[2]
        self.scheduler = start(
            "scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", folder=folder
        )
        self.workers = [self.worker("one"), self.worker("two")]

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        arguments = ("--name", name, "--no-nanny", "--no-dashboard", "--nthreads", "1", "--host", "127.0.0.1")
        return start("worker", f"tcp://{self.address}", *arguments, folder=self.folder)

    def stop(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    found = Machines(tmp_path_factory.mktemp("dask"))
    try:
        yield found
    finally:
        found.stop()


class KillsOne:
    """An engine whose first worker is killed while it has chunks to run."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.engine = find_engine(f"dask://{machines.address}", 1)
        self.cells: list[int] = []
        self.killed_with = 0

    def run(self, made: Any, work: Work) -> Iterator[Rows]:
        for rows in self.engine.run(made, work):
            self.cells.extend(row[0] for row in rows)
            if not self.killed_with:
                self.killed_with = self.kill()
            yield rows

    def kill(self) -> int:
        """Kill the first worker; how many chunks it had."""
        from distributed import Client

        with Client(f"tcp://{self.machines.address}", set_as_default=False) as client:
            names = {
                worker["name"]: address for address, worker in client.scheduler_info()["workers"].items()
            }
            has = len(client.processing()[names["one"]])
            if has:
                self.machines.workers[0].send_signal(signal.SIGKILL)
                self.machines.workers[0].wait()
            return has


@pytest.mark.long
def test_a_killed_worker_costs_nothing_and_the_outcome_is_that_of_a_local_run(
    tmp_path: Path, machines: Machines
) -> None:
    made = plan(SEEDS)
    engine = KillsOne(machines)
    store = Store.create(tmp_path / "dask", made.recipe)
    run_plan(made, store, 1, engine=engine)
    write_report(store, charts=False)
    store.close()
    assert engine.killed_with > 0
    assert sorted(engine.cells) == list(range(made.episodes()))
    assert files(tmp_path / "dask") == whole(tmp_path / "local", 1, SEEDS)


@pytest.mark.long
def test_what_cannot_be_used_is_told_in_one_line(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(1)
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    gone = find_engine(f"dask://127.0.0.1:{free_port()}", 1)
    with pytest.raises(EngineError, match="no Dask scheduler answers at"):
        list(gone.run(made, Work(made, made.spans(4))))
    over = Medium(dialect="anthropic", record="tapes")
    made = make_plan(load_text(TEXT, "s.yaml"), {}, ("gate",), 1, None, over)
    engine = find_engine(f"dask://{machines.address}", 1)
    with pytest.raises(EngineError, match="runs the scripted model only"):
        list(engine.run(made, Work(made, made.spans(4))))


@pytest.mark.slow
def test_a_cell_that_always_kills_its_worker_is_void(tmp_path: Path) -> None:
    made = plan(8, ("tests.runs.deadly:deadly",))
    store = Store.create(tmp_path, made.recipe)
    run_plan(made, store, 2, engine=find_engine("dask", 2))
    rows = list(store.rows("select cell, ending, note from episode order by cell"))
    store.close()
    assert [cell for cell, _, _ in rows] == list(range(9))
    assert [(cell, note) for cell, ending, note in rows if ending == "void"] == [
        (3, "the worker died 3 times")
    ]
