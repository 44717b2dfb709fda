"""Running a plan into a run folder, and going on with one that was interrupted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from evalkit.runs.engine import CHUNK, chunked, run_local
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import Store

#: Told how many of how many episodes are finished.
Progress = Callable[[int, int], None]


def run_plan(plan: Plan, store: Store, workers: int, progress: Progress | None = None) -> None:
    """Run all cells of a plan that the store does not have yet."""
    finished = store.finished()
    total = plan.episodes()
    done = len(finished)
    if progress is not None:
        progress(done, total)
    for rows in run_local(plan, chunked(_missing(plan, finished, foreign=False)), workers):
        store.add(rows)
        done += len(rows)
        if progress is not None:
            progress(done, total)
    foreign = list(_missing(plan, finished, foreign=True))
    if not foreign:
        return
    from evalkit.runs.foreign import run_spans

    for rows in run_spans(plan, foreign, workers, store.folder):
        store.add(rows)
        done += len(rows)
        if progress is not None:
            progress(done, total)


def _missing(plan: Plan, finished: set[int], *, foreign: bool) -> Iterator[Span]:
    for span in plan.spans(CHUNK):
        if plan.recipe.contenders[span.contender].foreign != foreign:
            continue
        if not finished:
            yield span
            continue
        for offset in range(span.seeds):
            cell = span.cell + offset
            if cell not in finished:
                yield Span(span.scenario, span.contender, span.first_seed + offset, 1, cell)


def new_folder(base: Path, stamp: str, run_id: str) -> Path:
    """A folder name for a run that is not taken: the time, then the run's id."""
    folder = base / f"{stamp}-{run_id}"
    number = 2
    while folder.exists():
        folder = base / f"{stamp}-{run_id}-{number}"
        number += 1
    return folder
