"""Running a plan into a run folder, and going on with one that was interrupted."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.runs.chunks import Rows, Work
from evalkit.runs.cluster import Cluster
from evalkit.runs.engine import Engine
from evalkit.runs.engines import find_engine
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import Ranges, Store

if TYPE_CHECKING:
    from evalkit.runs.live import LiveRun

#: Told how many of how many episodes are finished.
Progress = Callable[[int, int], None]
#: Seeds of one scenario and contender that are run in a row: enough to share what is known of a scenario.
BLOCK = 256


def run_plan(
    plan: Plan,
    store: Store,
    workers: int,
    progress: Progress | None = None,
    engine: Engine | None = None,
    live: LiveRun | None = None,
) -> None:
    """Run all cells of a plan that the store does not have yet; without an engine on the local one.

    Foreign harnesses run on the workers of a cluster too, but for services and callables, which are here;
    ``live`` works off what asks a provider.
    """
    finished = store.finished()
    done, total = store.count(), plan.episodes()

    def keep(rows: Rows) -> None:
        nonlocal done
        store.add(rows)
        done += len(rows)
        if progress is not None:
            progress(done, total)

    keep([])
    missing = _missing(plan, finished, foreign=False)
    if live is not None:
        found = live.run(missing)
    else:
        found = (engine or find_engine("local", workers)).run(plan, Work(plan, missing))
    try:
        for rows in found:
            keep(rows)
    finally:
        if live is not None:
            for row in live.left():
                keep([row])
    foreign = list(_missing(plan, finished, foreign=True))
    if not foreign:
        return
    from evalkit.runs.foreign import run_abroad, run_spans

    if isinstance(engine, Cluster):
        away, foreign = run_abroad(plan, foreign, engine, store.folder)
        for rows in away:
            keep(rows)
    for rows in run_spans(plan, foreign, workers, store.folder):
        keep(rows)


def _missing(plan: Plan, finished: Ranges, *, foreign: bool) -> Iterator[Span]:
    """The spans of cells that are not there yet."""
    for span in plan.spans(BLOCK):
        if plan.recipe.contenders[span.contender].foreign == foreign:
            yield from _without(span, finished)


def _without(span: Span, finished: Ranges) -> Iterator[Span]:
    """The parts of a span outside of finished ranges."""
    cell, end = span.cell, span.cell + span.seeds
    for first, last in islice(finished, bisect_left(finished, cell, key=itemgetter(1)), None):
        if first >= end:
            break
        if cell < first:
            yield _part(span, cell, first)
        cell = last + 1
    if cell < end:
        yield _part(span, cell, end)


def _part(span: Span, cell: int, end: int) -> Span:
    return Span(span.scenario, span.contender, span.first_seed + cell - span.cell, end - cell, cell)


def new_folder(base: Path, stamp: str, run_id: str) -> Path:
    """A folder name for a run that is not taken: the time, then the run's id."""
    folder = base / f"{stamp}-{run_id}"
    number = 2
    while folder.exists():
        folder = base / f"{stamp}-{run_id}-{number}"
        number += 1
    return folder
