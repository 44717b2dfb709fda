"""What the Dask engine has on each worker: the plan, and a task that runs a chunk of it."""

from __future__ import annotations

import platform
import secrets
import threading
import time
from typing import TypeAlias

import cloudpickle
import msgspec
from distributed import Worker, WorkerPlugin

from evalkit import __version__
from evalkit.harnesses.episode_record import Kept
from evalkit.runs.chunk_worker import measured, prepare
from evalkit.runs.chunks import Chunk, Rows
from evalkit.runs.foreign_on_cluster import Packed, Visit
from evalkit.runs.plan import Plan

#: evalkit, Python, msgspec: what has to agree for a plan to be read as it was written.
Version: TypeAlias = tuple[str, str, str]

_plans: dict[str, Plan] = {}
_visits: dict[str, Visit] = {}
_current: str | None = None
#: One chunk at a time in a process, however many threads the worker has.
_one = threading.Lock()


class PlanOnWorker(WorkerPlugin):
    """Brings the plan to each worker of a cluster, the ones that join later too."""

    def __init__(self, plan: Plan, packed: dict[str, Packed]) -> None:
        self.name = f"evalkit-{plan.recipe.id}-{secrets.token_hex(4)}"
        self.version = _version()
        self.plan = cloudpickle.dumps((plan, packed))

    def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker. The version is looked at before the plan is opened."""
        here = _version()
        if here != self.version:
            raise RuntimeError(f"{worker.address} has {_told(here)}, this process {_told(self.version)}")
        with _one:
            plan, packed = cloudpickle.loads(self.plan)
            _plans[self.name] = plan
            _visits[self.name] = Visit(plan, packed)

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the run is over."""
        with _one:
            _plans.pop(self.name, None)
            visit = _visits.pop(self.name, None)
        if visit is not None:
            visit.close()


def _version() -> Version:
    major, minor, _ = platform.python_version_tuple()
    return __version__, f"{major}.{minor}", msgspec.__version__


def _told(version: Version) -> str:
    return "evalkit {} on Python {} with msgspec {}".format(*version)


class Finished(msgspec.Struct, frozen=True):
    """A chunk's rows, the seconds it took, and the records of foreign episodes by cell."""

    rows: Rows
    seconds: float
    kept: tuple[tuple[int, Kept], ...] = ()


def run_there(plan: str, chunk: Chunk) -> Finished:
    """Run a chunk of a plan that this worker has."""
    global _current
    with _one:
        if plan not in _plans:
            raise RuntimeError("a worker does not have the plan; its log says why")
        if _current != plan:
            prepare(_plans[plan])
            _current = plan
        if _plans[plan].recipe.contenders[chunk[0].contender].foreign:
            return _foreign(_visits[plan], chunk)
        return Finished(*measured(chunk))


def _foreign(visit: Visit, chunk: Chunk) -> Finished:
    """A chunk of foreign episodes; no chunk holds both kinds."""
    start = time.perf_counter()
    rows, kept = [], []
    for span in chunk:
        for row, record in visit.play(span):
            rows.append(row)
            if record is not None:
                kept.append((row[0], record))
    return Finished(rows, time.perf_counter() - start, tuple(kept))
