"""The Dask engine: chunks on the workers of a cluster, its own on this machine or one that is there.

Dask runs a task again whose worker is lost, and gives one up that took three workers with it. The plan goes
to each worker once, as a plugin, so that workers which join later have it too.
"""

from __future__ import annotations

import logging
import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

from evalkit.containment.folders import sweep, temporary_folder
from evalkit.extras import missing
from evalkit.runs.chunks import Chunk, Rows, Work, singles
from evalkit.runs.engine import DEATHS, EngineError
from evalkit.runs.plan import Plan
from evalkit.runs.store import void_row

if TYPE_CHECKING:
    from distributed import Client, Future

    from evalkit.harnesses.episode_record import Kept
    from evalkit.runs.cluster_tasks import Finished
    from evalkit.runs.foreign_on_cluster import Packed

#: Told of the record of an episode, by its cell.
Keep: TypeAlias = "Callable[[int, Kept], None]"
#: Seconds in which a scheduler must answer.
PATIENCE = 10.0
#: Seconds in which a first worker must be there.
ARRIVAL = 60.0
#: Chunks under way for each thread of the cluster: one that runs, one that waits there.
AHEAD = 2
#: Seconds after which to look again how large the cluster is.
LOOK = 2.0


class Cluster:
    """A Dask cluster: at ``address`` (HOST:PORT), or of ``workers`` processes on this machine."""

    def __init__(self, address: str | None, workers: int) -> None:
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise EngineError(str(missing("--engine dask", "distributed"))) from None
        except Exception as error:
            # It looks at this process while it is loaded: without /proc that fails.
            raise EngineError(f"--engine dask cannot be loaded here: {_said(error)}") from None
        self.address = address
        self.workers = workers

    def run(self, plan: Plan, work: Work) -> Iterator[Rows]:
        if plan.recipe.medium.live or plan.recipe.medium.record or plan.recipe.medium.replay:
            raise EngineError("--engine dask runs the scripted model only; use --engine local")
        with self._client(min(self.workers, plan.episodes())) as client:
            yield from _Session(client, plan, own=self.address is None).run(work)

    def run_foreign(self, plan: Plan, work: Work, packed: dict[str, Packed], keep: Keep) -> Iterator[Rows]:
        """The rows of foreign episodes; ``keep`` is told of each one's record before its row comes."""
        with self._client(min(self.workers, plan.episodes())) as client:
            yield from _Session(client, plan, packed, keep, own=self.address is None).run(work)

    @contextmanager
    def _client(self, workers: int) -> Iterator[Client]:
        from distributed import Client

        with temporary_folder("dask") as own, _quiet(str(own.folder)):
            local = None if self.address else _LocalCluster(workers, str(own.folder))
            target = f"tcp://{self.address}" if local is None else local.cluster
            client: Client | None = None
            try:
                try:
                    client = Client(target, timeout=PATIENCE, set_as_default=False)
                except (OSError, ValueError) as error:
                    raise EngineError(
                        f"no Dask scheduler answers at {self.address}: {_said(error)}"
                    ) from None
                yield client
            except KeyboardInterrupt:
                # Whoever is in a hurry does not wait for goodbyes; a cluster that goes on is told to forget.
                if local is not None:
                    local.stop()
                    local = client = None
                raise
            except BaseException:
                if local is not None:
                    local.stop()
                raise
            finally:
                with suppress(Exception):
                    if client is not None:
                        client.close(timeout=1)
                if local is not None:
                    local.close()


class _Session:
    """One plan on one cluster; ``own`` is one that ends with the run, and needs no tidying."""

    def __init__(
        self,
        client: Client,
        plan: Plan,
        packed: dict[str, Packed] | None = None,
        keep: Keep | None = None,
        *,
        own: bool,
    ) -> None:
        from evalkit.runs.cluster_tasks import PlanOnWorker

        self.client = client
        self.own = own
        self.keep = keep
        self.plugin = PlanOnWorker(plan, packed or {})
        self._running: dict[Future[Any], Chunk] = {}
        self._finished: SimpleQueue[Future[Any]] = SimpleQueue()
        self._threads = 1
        self._looked = self._seen = time.monotonic()

    def run(self, work: Work) -> Iterator[Rows]:
        try:
            self.client.wait_for_workers(1, timeout=ARRIVAL)
        except TimeoutError:
            raise EngineError(f"--engine dask: no worker within {ARRIVAL:g} s") from None
        try:
            self.client.register_plugin(self.plugin)
        except Exception as error:
            raise EngineError(f"--engine dask: {_said(error)}") from None
        try:
            suspects: list[Chunk] = []
            self._look()
            self._fill(work)
            for chunk, done in self._results():
                if done is None:
                    suspects.append(chunk)
                else:
                    work.took(chunk, done.seconds)
                    yield self._kept(done)
                self._fill(work)
            while suspects:
                yield from self._alone(suspects.pop(), suspects)
        finally:
            if not self.own:
                with suppress(Exception):
                    self.client.cancel(list(self._running), force=True)
                with suppress(Exception):
                    self.client.unregister_worker_plugin(self.plugin.name)

    def _alone(self, chunk: Chunk, suspects: list[Chunk]) -> Iterator[Rows]:
        """Run a chunk with nothing beside it, so that the death of a worker is its own doing.

        One that takes its workers along again goes on cell by cell; a single cell is void.
        """
        self._submit(chunk)
        for _, done in self._results():
            cells = singles(chunk)
            if done is not None:
                yield self._kept(done)
            elif len(cells) > 1:
                suspects.extend((cell,) for cell in cells)
            else:
                (cell,) = cells
                note = f"the worker died {DEATHS} times"
                yield [void_row(cell.cell, cell.scenario, cell.contender, cell.first_seed, note)]

    def _kept(self, done: Finished) -> Rows:
        """The rows of a finished chunk, the records of which are kept."""
        if self.keep is not None:
            for cell, record in done.kept:
                self.keep(cell, record)
        return done.rows

    def _results(self) -> Iterator[tuple[Chunk, Finished | None]]:
        """The chunks under way as they are finished; None for one that took its workers with it."""
        from distributed import KilledWorker

        while self._running:
            try:
                future = self._finished.get(timeout=LOOK)
            except Empty:
                self._look()
                continue
            chunk = self._running.pop(future)
            try:
                # The state of a future changes again where its worker is lost before it has told the result;
                # it then waits for the next worker.
                done = future.result()
            except KilledWorker:
                done = None
            except CancelledError:
                self._look()
                self._submit(chunk)
                continue
            except Exception as error:
                raise EngineError(f"--engine dask: {_said(error)}") from None
            future.release()
            yield chunk, done

    def _look(self) -> None:
        """See how large the cluster is by now. EngineError where it is gone, or without workers for long."""
        now = time.monotonic()
        try:
            threads = sum(self.client.nthreads().values()) if self.client.status == "running" else None
        except Exception:
            threads = None
        if threads is None:
            raise EngineError("--engine dask: the scheduler is gone")
        if threads:
            self._threads, self._seen = threads, now
        elif now - self._seen > ARRIVAL:
            raise EngineError(f"--engine dask: no worker for {ARRIVAL:g} s")
        self._looked = now

    def _fill(self, work: Work) -> None:
        """Keep the cluster busy, however many workers it has by now."""
        if time.monotonic() - self._looked > LOOK:
            self._look()
        while len(self._running) < AHEAD * self._threads:
            chunk = work.take()
            if not chunk:
                return
            self._submit(chunk)

    def _submit(self, chunk: Chunk) -> None:
        from evalkit.runs.cluster_tasks import run_there

        future = self.client.submit(run_there, self.plugin.name, chunk, pure=False)
        self._running[future] = chunk
        future.add_done_callback(self._finished.put)


class _LocalCluster:
    """A cluster of processes on this machine."""

    def __init__(self, workers: int, scratch: str) -> None:
        from distributed import LocalCluster

        self._others = set(multiprocessing.active_children())
        with _deaf():
            self.cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                host="127.0.0.1",
                # A port that is free: the usual one may be another cluster's.
                dashboard_address="127.0.0.1:0",
                local_directory=scratch,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
            )
        # Workers that die too often are given up; this puts new ones in their place.
        self._adaptive = self.cluster.adapt(minimum=workers, maximum=workers)

    def stop(self) -> None:
        """End the workers at once, whatever they are doing; a cluster that closes waits for them."""
        from distributed import Status

        # Neither of the two that would start a worker anew.
        self._adaptive.stop()
        for nanny in self.cluster.workers.values():
            nanny.status = Status.closing_gracefully
        killed = set(multiprocessing.active_children()) - self._others
        for process in killed:
            process.kill()
        for process in killed:
            process.join(1)
        sweep(Path(tempfile.gettempdir()))

    def close(self) -> None:
        """Close it within about a second; what is left of it is killed, or Dask waits for it at the end."""
        with suppress(Exception):
            self.cluster.close(timeout=1)
        if set(multiprocessing.active_children()) - self._others:
            self.stop()
            with suppress(Exception):
                self.cluster.close(timeout=1)


@contextmanager
def _deaf() -> Iterator[None]:
    """Threads and processes begun in here, and theirs, do not hear Ctrl-C: it is for this process alone."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _quiet(scratch: str) -> Iterator[None]:
    """Dask's log lines are no output of a run; its failures are told in evalkit's own words."""
    import dask.config

    # Nor is what the tracker of a process's semaphores says where that process had to end at once.
    told = "ignore:resource_tracker"
    if told not in sys.warnoptions:
        sys.warnoptions.append(told)
    # Some of Dask's loggers have a level of their own.
    loggers = [
        logging.getLogger(name)
        for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict)
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio")
    ]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with dask.config.set(
            {
                "distributed.scheduler.allowed-failures": DEATHS - 1,
                # It goes by the wall clock: one that jumps has all workers given up. A death is heard of.
                "distributed.scheduler.worker-ttl": None,
                "distributed.worker.profile.enabled": False,
                "distributed.admin.tick.limit": "1h",
                "temporary-directory": scratch,
            }
        ):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _said(error: object) -> str:
    text = " ".join(str(error).split())
    return text[:300] or type(error).__name__
