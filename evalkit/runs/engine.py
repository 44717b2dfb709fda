"""Engines: where the chunks of a run are worked off. Each gives the same rows, in any order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Protocol

from evalkit.runs.chunks import Rows, Work
from evalkit.runs.plan import Plan

#: How often a piece of work may take its worker with it before its cells are void.
DEATHS = 3


#: Processes at most: a number beyond is a slip, and would take the machine with it.
MOST_WORKERS = 512


class EngineError(ValueError):
    """An engine that cannot be used, or was lost; one line."""


class Engine(Protocol):
    """Works off what is to be done and hands the rows of each chunk back as it is finished.

    Every cell that is handed out comes back exactly once: a chunk that is lost with its worker is run again,
    a cell that takes its worker with it :data:`DEATHS` times is void.
    """

    def run(self, plan: Plan, work: Work) -> Iterator[Rows]:
        """The rows of all chunks. EngineError where the engine itself is lost."""


def default_workers() -> int:
    """One worker for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
