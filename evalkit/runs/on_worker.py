"""What the Dask engine has on each worker: the plan, and a task that runs a chunk of it."""

from __future__ import annotations

import platform
import secrets
import threading
from typing import TypeAlias

import cloudpickle
import msgspec
from distributed import Worker, WorkerPlugin

from evalkit import __version__
from evalkit.runs.chunks import Chunk, Rows
from evalkit.runs.plan import Plan
from evalkit.runs.work import measured, prepare

#: evalkit, Python, msgspec: what has to agree for a plan to be read as it was written.
Version: TypeAlias = tuple[str, str, str]

_plans: dict[str, Plan] = {}
_current: str | None = None
#: One chunk at a time in a process, however many threads the worker has.
_one = threading.Lock()


class PlanOnWorker(WorkerPlugin):
    """Brings the plan to each worker of a cluster, the ones that join later too."""

    def __init__(self, plan: Plan) -> None:
        self.name = f"evalkit-{plan.recipe.id}-{secrets.token_hex(4)}"
        self.version = _version()
        self.plan = cloudpickle.dumps(plan)

    def setup(self, worker: Worker) -> None:
        """Called by Dask on each worker. The version is looked at before the plan is opened."""
        here = _version()
        if here != self.version:
            raise RuntimeError(f"{worker.address} has {_told(here)}, this process {_told(self.version)}")
        with _one:
            _plans[self.name] = cloudpickle.loads(self.plan)

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the run is over."""
        with _one:
            _plans.pop(self.name, None)


def _version() -> Version:
    major, minor, _ = platform.python_version_tuple()
    return __version__, f"{major}.{minor}", msgspec.__version__


def _told(version: Version) -> str:
    return "evalkit {} on Python {} with msgspec {}".format(*version)


class Finished(msgspec.Struct, frozen=True):
    """A chunk's rows, and the seconds it took."""

    rows: Rows
    seconds: float


def run_there(plan: str, chunk: Chunk) -> Finished:
    """Run a chunk of a plan that this worker has."""
    global _current
    with _one:
        if plan not in _plans:
            raise RuntimeError("a worker does not have the plan; its log says why")
        if _current != plan:
            prepare(_plans[plan])
            _current = plan
        return Finished(*measured(chunk))
