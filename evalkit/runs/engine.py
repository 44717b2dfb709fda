"""The local engine: a process pool that survives the death of its workers."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from typing import Any, TypeAlias

from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import void_row
from evalkit.runs.work import prepare, run_chunk

Rows: TypeAlias = "list[tuple[Any, ...]]"
Chunk: TypeAlias = tuple[Span, ...]

#: Episodes in a chunk: about 100 ms of work, so that handing it over costs nothing that counts.
CHUNK = 256
#: How often a piece of work may take its worker with it before its cells are void.
DEATHS = 3


def default_workers() -> int:
    """One worker for each core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def chunked(spans: Iterable[Span], size: int = CHUNK) -> Iterator[Chunk]:
    """Spans put together into chunks of about ``size`` episodes."""
    chunk: list[Span] = []
    episodes = 0
    for span in spans:
        chunk.append(span)
        episodes += span.seeds
        if episodes >= size:
            yield tuple(chunk)
            chunk, episodes = [], 0
    if chunk:
        yield tuple(chunk)


def run_local(plan: Plan, chunks: Iterable[Chunk], workers: int) -> Iterator[Rows]:
    """The rows of chunks as they are finished, in any order. One worker runs in this process."""
    if workers <= 1:
        prepare(plan)
        for chunk in chunks:
            yield run_chunk(chunk)
        return
    yield from _Pool(plan, workers, run_chunk).run(chunks)


class _Pool:
    """A process pool; work lost with a worker is run again, alone from the second time."""

    def __init__(self, plan: Plan, workers: int, task: Callable[[Chunk], Rows]) -> None:
        self.plan = plan
        self.workers = workers
        self.task = task

    def _start(self, workers: int) -> ProcessPoolExecutor:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        return ProcessPoolExecutor(workers, context, initializer=prepare, initargs=(self.plan,))

    def run(self, chunks: Iterable[Chunk]) -> Iterator[Rows]:
        waiting = iter(chunks)
        while True:
            lost = yield from self._until_broken(waiting)
            if not lost:
                return
            for chunk in lost:
                yield from self._alone(chunk)

    def _until_broken(self, waiting: Iterator[Chunk]) -> Generator[Rows, None, list[Chunk]]:
        """Run until all is done or a worker dies; return (as the generator's value) what was lost."""
        running: dict[Future[Rows], Chunk] = {}
        lost: list[Chunk] = []
        chunk: Chunk = ()
        with self._start(self.workers) as pool:
            try:
                for chunk in islice(waiting, self.workers * 2):
                    running[pool.submit(self.task, chunk)] = chunk
                while running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        chunk = running.pop(future)
                        try:
                            yield future.result()
                        except BrokenProcessPool:
                            lost.append(chunk)
                    if lost:
                        break
                    for chunk in islice(waiting, len(done)):
                        running[pool.submit(self.task, chunk)] = chunk
            except BrokenProcessPool:
                lost.append(chunk)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [*lost, *running.values()]

    def _alone(self, chunk: Chunk) -> Iterator[Rows]:
        """Run a lost chunk by itself, then cell by cell; a cell that keeps killing its worker is void."""
        rows = self._attempt(chunk)
        if rows is not None:
            yield rows
            return
        cells = [single for span in chunk for single in _singles(span)]
        if len(cells) > 1:
            for cell in cells:
                yield from self._alone((cell,))
            return
        (cell,) = cells
        for _ in range(DEATHS - 1):
            rows = self._attempt((cell,))
            if rows is not None:
                yield rows
                return
        note = f"the worker died {DEATHS} times"
        yield [void_row(cell.cell, cell.scenario, cell.contender, cell.first_seed, note)]

    def _attempt(self, chunk: Chunk) -> Rows | None:
        with self._start(1) as pool:
            try:
                return pool.submit(self.task, chunk).result()
            except BrokenProcessPool:
                return None


def _singles(span: Span) -> list[Span]:
    return [
        Span(span.scenario, span.contender, span.first_seed + offset, 1, span.cell + offset)
        for offset in range(span.seeds)
    ]
