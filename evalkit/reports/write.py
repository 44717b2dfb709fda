"""All files of a report, written again from the episodes at any time."""

from __future__ import annotations

import multiprocessing
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from evalkit.reports.charts import Chart, ChartsMissing, draw_charts
from evalkit.reports.episodes_csv import write_episodes
from evalkit.reports.html import TRANSCRIPTS, write_page
from evalkit.reports.markdown import report_markdown
from evalkit.runs.engine import default_workers
from evalkit.runs.store import Store
from evalkit.stats.summary import summarize

TABLE = "episodes.csv"
#: From so many episodes on, the table is written beside the rest of the work.
LARGE = 100_000


def summary_text(summary: dict[str, Any]) -> str:
    """``summary.json`` as text."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n"


def write_report(
    store: Store, *, charts: bool = True, transcripts: int = TRANSCRIPTS
) -> tuple[dict[str, Any], list[str]]:
    """Write the report of a run into its folder; the summary, and notes on what was left out.

    ``transcripts`` is the number of episodes whose transcripts go into the page.
    """
    table = _start_table(store)
    summary = summarize(store)
    notes = []
    (store.folder / "summary.json").write_text(summary_text(summary), encoding="utf-8")
    (store.folder / "report.md").write_text(report_markdown(summary, store.created), encoding="utf-8")
    drawn: list[Chart] = []
    workers = default_workers()
    if charts:
        try:
            drawn = draw_charts(summary, store.folder / "charts", workers)
        except ChartsMissing as error:
            notes.append(str(error))
    write_page(store, summary, drawn, workers=workers, transcripts=transcripts)
    if table is not None:
        table.result()
    return summary, notes


def _start_table(store: Store) -> Future[None] | None:
    """Write ``episodes.csv``: at once, or of a large run in a process of its own, which the caller awaits."""
    if store.count() < LARGE or "fork" not in multiprocessing.get_all_start_methods():
        write_episodes(store, store.folder / TABLE)
        return None
    pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
    writing = pool.submit(_write_table, store.folder)
    pool.shutdown(wait=False)
    return writing


def _write_table(folder: Path) -> None:
    store = Store.open(folder, write=False)
    write_episodes(store, folder / TABLE)
    store.close()
