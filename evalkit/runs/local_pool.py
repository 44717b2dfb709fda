"""The local engine: worker processes of this machine, whose deaths are survived."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from evalkit.containment.workers import Lost, Workers
from evalkit.runs.chunk_worker import measured, prepare
from evalkit.runs.chunks import Chunk, Rows, Work, singles
from evalkit.runs.engine import DEATHS
from evalkit.runs.plan import Plan
from evalkit.runs.store import void_row

#: A chunk's rows and the seconds it took.
Done: TypeAlias = tuple[Rows, float]


class Local:
    """Processes of this machine, never more than there are chunks. One worker runs in this process.

    Work lost with a worker is run again with nothing beside it; what is lost again goes on cell by cell.
    """

    def __init__(self, workers: int, task: Callable[[Chunk], Done] = measured) -> None:
        self.workers = workers
        self.task = task

    def run(self, plan: Plan, work: Work) -> Iterator[Rows]:
        if self.workers == 1:
            prepare(plan)
            for chunk in work:
                rows, seconds = self.task(chunk)
                work.took(chunk, seconds)
                yield rows
            return
        suspects: list[Chunk] = []
        for chunk, done in Workers(self.workers, self.task, prepare, (plan,)).run(work):
            if isinstance(done, Lost):
                suspects.append(chunk)
            else:
                work.took(chunk, done[1])
                yield done[0]
        deaths: dict[Chunk, int] = {}
        while suspects:
            alone, suspects = suspects, []
            for chunk, done in Workers(1, self.task, prepare, (plan,)).run(alone):
                cells = singles(chunk)
                if not isinstance(done, Lost):
                    yield done[0]
                elif len(cells) > 1:
                    suspects.extend((cell,) for cell in cells)
                else:
                    deaths[chunk] = deaths.get(chunk, 0) + 1
                    if deaths[chunk] < DEATHS:
                        suspects.append(chunk)
                        continue
                    (cell,) = cells
                    note = f"the worker died {DEATHS} times"
                    yield [void_row(cell.cell, cell.scenario, cell.contender, cell.first_seed, note)]
