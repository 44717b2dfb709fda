"""The local engine: a process pool that survives the death of its workers and dies with its parent."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeAlias

from evalkit.runs.chunks import Chunk, Rows, Work, singles
from evalkit.runs.engine import DEATHS
from evalkit.runs.plan import Plan
from evalkit.runs.store import void_row
from evalkit.runs.work import measured, prepare

#: A chunk's rows and the seconds it took.
Done: TypeAlias = tuple[Rows, float]
#: Seconds that workers get to put their things away when a run is interrupted.
GRACE = 1.0


class Local:
    """Processes of this machine. One worker runs in this process."""

    def __init__(self, workers: int, task: Callable[[Chunk], Done] = measured) -> None:
        self.workers = workers
        self.task = task

    def run(self, plan: Plan, work: Work) -> Iterator[Rows]:
        if self.workers > 1:
            yield from _Pool(plan, self.workers, self.task).run(work)
            return
        prepare(plan)
        for chunk in work:
            rows, seconds = self.task(chunk)
            work.took(chunk, seconds)
            yield rows


class _Pool:
    """A process pool; work lost with a worker is run again, alone from the second time."""

    def __init__(self, plan: Plan, workers: int, task: Callable[[Chunk], Done]) -> None:
        self.plan = plan
        self.workers = workers
        self.task = task

    def _start(self, workers: int) -> ProcessPoolExecutor:
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else "spawn")
        return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(self.plan,))

    def run(self, work: Work) -> Iterator[Rows]:
        while True:
            lost = yield from self._until_broken(work)
            if not lost:
                return
            for chunk in lost:
                yield from self._alone(chunk)

    def _until_broken(self, work: Work) -> Generator[Rows, None, list[Chunk]]:
        """Run until all is done or a worker dies; return (as the generator's value) what was lost."""
        running: dict[Future[Done], Chunk] = {}
        lost: list[Chunk] = []
        chunk: Chunk = ()
        others = set(multiprocessing.active_children())
        with self._start(self.workers) as pool:
            try:
                for chunk in islice(work, self.workers * 2):
                    running[pool.submit(_work_off, self.task, chunk)] = chunk
                while running:
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        chunk = running.pop(future)
                        try:
                            rows, seconds = future.result()
                        except BrokenProcessPool:
                            lost.append(chunk)
                        else:
                            work.took(chunk, seconds)
                            yield rows
                    if lost:
                        break
                    for chunk in islice(work, len(done)):
                        running[pool.submit(_work_off, self.task, chunk)] = chunk
            except BrokenProcessPool:
                lost.append(chunk)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                _stop(set(multiprocessing.active_children()) - others)
                raise
        return [*lost, *running.values()]

    def _alone(self, chunk: Chunk) -> Iterator[Rows]:
        """Run a lost chunk by itself, then cell by cell; a cell that keeps killing its worker is void."""
        rows = self._attempt(chunk)
        if rows is not None:
            yield rows
            return
        cells = singles(chunk)
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
        others = set(multiprocessing.active_children())
        with self._start(1) as pool:
            try:
                return pool.submit(_work_off, self.task, chunk).result()[0]
            except BrokenProcessPool:
                return None
            except BaseException:
                _stop(set(multiprocessing.active_children()) - others)
                raise


# In a worker


class _Stopped(SystemExit):
    """The run was interrupted; what a worker holds is put away on the way out."""


def _begin(plan: Plan) -> None:
    """Make ready a worker: it leaves Ctrl-C to its parent, and ends when told to or when that is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _on_stop)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    prepare(plan)


def _work_off(task: Callable[[Chunk], Done], chunk: Chunk) -> Done:
    """Run a chunk. Told to stop, the process ends here: a pool would go on with the next one."""
    try:
        return task(chunk)
    except _Stopped:
        os._exit(143)


def _on_stop(*_: Any) -> None:
    # Once is enough: nothing may interrupt what is being put away.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise _Stopped(143)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(GRACE)
        os._exit(143)


def _stop(workers: set[BaseProcess]) -> None:
    """End workers within :data:`GRACE` seconds, whatever they are doing."""
    for worker in workers:
        worker.terminate()
    deadline = time.monotonic() + GRACE
    for worker in workers:
        worker.join(max(0.0, deadline - time.monotonic()))
    for worker in workers:
        if worker.is_alive():
            worker.kill()
