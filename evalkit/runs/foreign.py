"""Running the cells of foreign harnesses: one server for this process, a harness process for each worker.

The programs do the work, so threads are enough here: each takes episodes of one harness after the other.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from evalkit.containment.folders import NoRoom
from evalkit.harnesses.command import Runner, Stopped
from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness, ManifestError
from evalkit.harnesses.pinned_environment import Environment, environment_of
from evalkit.runs.chunks import Work
from evalkit.runs.cluster import Cluster
from evalkit.runs.foreign_on_cluster import Packed, pack
from evalkit.runs.foreign_records import keep_trace
from evalkit.runs.plan import Plan, PlanError, Span
from evalkit.runs.store import StoreLost, row_of, void_row
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses
from evalkit.wire.server import Server

Row: TypeAlias = tuple[Any, ...]
#: Seconds of an episode, before one was played.
_GUESS_S = 1.0
_Job: TypeAlias = tuple[int, int, int]


def ready_harnesses(plan: Plan) -> dict[str, tuple[Harness, Environment]]:
    """The plan's harnesses and their environments. PlanError where one is not there."""
    found = {}
    for contender in plan.recipe.contenders:
        if contender.foreign:
            try:
                heard = plan.recipe.heard.get(contender.harness)
                found_at = find_harness(plan.recipe.place_of(contender.harness))
                harness = msgspec.structs.replace(found_at, heard=heard)
                found[contender.harness] = harness, environment_of(harness)
            except ManifestError as error:
                raise PlanError(str(error)) from None
    return found


def run_spans(plan: Plan, spans: list[Span], workers: int, folder: Path) -> Iterator[list[Row]]:
    """The rows of foreign cells as they are finished, one at a time."""
    harnesses = ready_harnesses(plan)
    by_contender: dict[int, list[tuple[Span, int]]] = {}
    for span in spans:
        cells = by_contender.setdefault(span.contender, [])
        cells.extend((span, offset) for offset in range(span.seeds))
    with server_for_harnesses() as server:
        for contender, cells in by_contender.items():
            name = plan.recipe.contenders[contender].harness
            yield from _Crew(plan, server, folder, *harnesses[name]).run(cells, workers)


def run_abroad(
    plan: Plan, spans: list[Span], cluster: Cluster, folder: Path
) -> tuple[Iterator[list[Row]], list[Span]]:
    """The rows of foreign cells on a cluster, and the spans that have to be played on this machine.

    A service is where it is, and a callable is of a Python path that no worker has.
    """
    packed: dict[str, Packed] = {}
    for name, (harness, _) in ready_harnesses(plan).items():
        if harness.manifest.service is None and "EVALKIT_IMPORT_FROM" not in harness.manifest.env:
            packed[name] = pack(harness)
    contenders = plan.recipe.contenders
    away = [span for span in spans if contenders[span.contender].harness in packed]
    here = [span for span in spans if contenders[span.contender].harness not in packed]
    if not away:
        return iter(()), here

    def keep(cell: int, kept: Kept) -> None:
        _keep(folder, cell, kept)

    return cluster.run_foreign(plan, Work(plan, away, guess=_GUESS_S), packed, keep), here


def _keep(folder: Path, cell: int, kept: Kept) -> None:
    """Keep a record. StoreLost where it cannot be written."""
    try:
        keep_trace(folder, cell, kept)
    except OSError as error:
        raise StoreLost(f"{folder}: cannot be written: {error}") from None


class _Crew:
    """The workers of one harness."""

    def __init__(
        self, plan: Plan, server: Server, folder: Path, harness: Harness, environment: Environment
    ) -> None:
        self.plan = plan
        self.server = server
        self.folder = folder
        self.harness = harness
        self.environment = environment
        self.contract = contract_of(harness)
        self._waiting: queue.SimpleQueue[tuple[Span, int]] = queue.SimpleQueue()
        self._finished: queue.SimpleQueue[Row | BaseException | None] = queue.SimpleQueue()
        self._stopped = False
        self._runners: list[Runner] = []

    def run(self, cells: list[tuple[Span, int]], workers: int) -> Iterator[list[Row]]:
        for cell in cells:
            self._waiting.put(cell)
        count = min(workers, len(cells))
        threads = [threading.Thread(target=self._work, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        try:
            left = len(cells)
            while left:
                row = self._finished.get()
                if isinstance(row, BaseException):
                    raise row
                if row is not None:
                    left -= 1
                    yield [row]
        finally:
            self._stopped = True
            for runner in list(self._runners):
                runner.stop()
            for thread in threads:
                thread.join()

    def _work(self) -> None:
        runner: Runner | None = None
        try:
            while not self._stopped:
                span, offset = self._waiting.get_nowait()
                place = (span.cell + offset, span.scenario, span.contender, span.first_seed + offset)
                if runner is None:
                    try:
                        runner = runner_of(self.harness, self.environment, fresh=self.plan.recipe.fresh)
                    except (NoRoom, OSError) as error:
                        self._finished.put(void_row(*place, f"{type(error).__name__}: {error}"))
                        continue
                    self._runners.append(runner)
                self._finished.put(self._row(runner, span, place))
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:
            self._finished.put(error)
        finally:
            if runner is not None:
                runner.close()

    def _row(self, runner: Runner, span: Span, place: tuple[int, int, int, int]) -> Row:
        cell, seed = place[0], place[3]
        try:
            arena = Arena(self.plan.scenarios[span.scenario], self.contract.offered)
            episode, kept = run_foreign(arena, seed, self.contract, runner, self.server)
        except Stopped:
            raise
        except Exception as error:
            return void_row(*place, f"{type(error).__name__}: {error}")
        _keep(self.folder, cell, kept)
        return row_of(*place, episode)
