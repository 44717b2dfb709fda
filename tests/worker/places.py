"""Stores, scenarios and clocks for the worker's tests, and workers that are killed where a test wants it."""

from __future__ import annotations

import os
import select
import signal
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.stage.stage import Stage
from evalkit.worker.scripted_workplace import (
    FileWorkplace,
    StageWorkplace,
    order_of,
    scenario_kit,
    scenario_stage,
)
from evalkit.worker.store import SqliteDatabase, SqlStore
from evalkit.worker.task_records import Order
from evalkit.worker.worker import Worker

GATE = Offered(checklist=True)
PAYMENTS = 18
#: Model turns of :func:`payments`: the list, each payment, the claim.
STEPS = PAYMENTS + 2


def payments(count: int = PAYMENTS) -> dict[str, Any]:
    """A ledger task of ``count`` payments."""
    return {
        "scenario": "payments",
        "family": "resume_effects",
        "task": {"prompt": "Post every payment.", "done_when": "Every payment is posted exactly once."},
        "world": {"kind": "ledger", "items": [f"PAY-{number:03}" for number in range(count)]},
        "model": [
            {"call": "list_payments"},
            {"work": "rest"},
            {"say": "Every payment is posted.", "claim": "done"},
        ],
    }


def loaded(document: dict[str, Any]) -> Scenario:
    """A scenario from a document."""
    (scenario,) = load_text(yaml.safe_dump(document, sort_keys=False), "scenario.yaml")
    return scenario


def write_scenario(folder: Path, document: dict[str, Any]) -> Path:
    """A scenario file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{document['scenario']}.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return file


def file_order(file: Path, id: str = "pay", **more: Any) -> Order:
    """The order for the only scenario of a file."""
    (scenario,) = load_text(file.read_text(encoding="utf-8"), str(file))
    return order_of(scenario, id, **more)


def memory_store(**options: Any) -> SqlStore:
    """A store that lives as long as the test."""
    return SqlStore(SqliteDatabase(":memory:", durability="normal"), **options)


def file_store(home: Path, **options: Any) -> SqlStore:
    """A store in a file."""
    return SqlStore(SqliteDatabase(str(home / "tasks.sqlite"), durability="normal", **options))


def stage_of(document: dict[str, Any], offered: Offered = GATE) -> Stage:
    """A scenario's stage in memory."""
    return scenario_stage(loaded(document), offered, 0)


def memory_worker(store: SqlStore, stage: Stage, home: Path, **options: Any) -> Worker:
    """A worker whose only workplace is a stage in memory."""
    workplace = StageWorkplace(stage)
    return Worker(store, home, "a worker", kits=lambda name: lambda order, folder: workplace, **options)


def world_of(order: Order, home: Path) -> Stage:
    """The stage of a file workplace as it stands."""
    workplace = scenario_kit(order, home)
    assert isinstance(workplace, FileWorkplace)
    stage = workplace.stage()
    workplace.close()
    return stage


class Killed(BaseException):
    """Stands for SIGKILL where everything is in one process."""


Deadly = Callable[[int, str], None]


class DyingDatabase(SqliteDatabase):
    """Tells of each commit, before and after; who is told may end the process there."""

    def __init__(self, path: str, told: Deadly) -> None:
        self.commits = 0
        self._told = told
        self._counts = False
        super().__init__(path, durability="normal")

    def begin_counting(self) -> None:
        """Count from here: the tables are there."""
        self._counts = True

    def commit(self) -> None:
        if self._counts:
            self.commits += 1
            self._told(self.commits, "before")
        super().commit()
        if self._counts:
            self._told(self.commits, "after")


def dying_store(path: str, told: Deadly) -> SqlStore:
    """A store over a :class:`DyingDatabase` that counts the commits of the work alone."""
    database = DyingDatabase(path, told)
    store = SqlStore(database)
    database.begin_counting()
    return store


def kill_self(at: int, side: str) -> Deadly:
    """SIGKILL at the ``at``-th commit."""

    def told(commit: int, when: str) -> None:
        if (commit, when) == (at, side):
            os.kill(os.getpid(), signal.SIGKILL)

    return told


def start(work: Callable[[], None]) -> int:
    """Begin ``work`` in a process of its own; its number."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def wait(child: int) -> int:
    """The exit code of a process that was started."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def forked(work: Callable[[], None], kill_after: float | None = None) -> int:
    """Run ``work`` in a process of its own, killed after some seconds if it still runs; its exit code."""
    child = start(work)
    if kill_after is not None:
        handle = os.pidfd_open(child)
        if not select.select([handle], [], [], kill_after)[0]:
            os.kill(child, signal.SIGKILL)
        os.close(handle)
    return wait(child)


def work_until_killed(home: str, at: int, side: str, now: float, tasks: int = 1) -> None:
    """A worker process that kills itself at a commit; 0 is none. ``now`` is its clock."""
    store = dying_store(f"{home}/tasks.sqlite", kill_self(at, side))
    worker = Worker(store, Path(home), f"worker {os.getpid()}", clock=lambda: now, steady=lambda: 0.0)
    for _ in range(tasks):
        if not worker.work_one():
            break
    store.shut()
