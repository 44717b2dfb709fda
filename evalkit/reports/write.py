"""All files of a report, written again from the episodes at any time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from evalkit.containment.workers import LOST, Workers, can_fork
from evalkit.extras import installed
from evalkit.fit.uncertainty import carried
from evalkit.reports.charts import KINDS, Chart, ChartsMissing, draw_charts
from evalkit.reports.episodes_csv import write_episodes
from evalkit.reports.markdown import report_markdown
from evalkit.reports.page.html import FOLDER, SINGLE_FILE, TRANSCRIPTS, write_page
from evalkit.runs.engine import default_workers
from evalkit.runs.store import Store
from evalkit.secrets.bodies import clean_json
from evalkit.secrets.cleaning import clean_text
from evalkit.stats.strategy_comparison import FEWEST
from evalkit.stats.summary import summarize

TABLE = "episodes.csv"
#: All that a report is made of, in the run folder or elsewhere.
REPORT = (TABLE, "summary.json", "report.md", "index.html", SINGLE_FILE, "charts", FOLDER)
#: From so many episodes on, the table is written by a process of its own.
LARGE = 100_000


def summary_text(summary: dict[str, Any]) -> str:
    """``summary.json`` as text."""
    text = clean_json(msgspec.json.encode(summary).decode())
    return msgspec.json.format(text, indent=1) + "\n"


def draws(summary: dict[str, Any], charts: bool | None) -> bool:
    """Whether charts are drawn: as asked, else where there are enough scenarios for more than counts.

    Drawing takes longer than playing and writing a small run; its tables say all.
    """
    return charts if charts is not None else summary["run"]["scenarios"] >= FEWEST


def undrawn(summary: dict[str, Any], charts: bool | None) -> bool:
    """Whether charts were left out that would be drawn here if somebody asked for them."""
    return charts is None and not draws(summary, charts) and installed("matplotlib")


def write_report(
    store: Store,
    *,
    charts: bool | None = None,
    transcripts: int = TRANSCRIPTS,
    kinds: tuple[str, ...] = KINDS[:1],
    single: bool = False,
    into: Path | None = None,
) -> tuple[dict[str, Any], list[str]]:
    """Write the report of a run; the summary, and notes on what was left out.

    ``into`` is the folder for it, made where it is not there; without it the run's own. ``charts`` are drawn
    or not; None leaves it to :func:`draws`. ``transcripts`` is the number of episodes whose transcripts go
    into the page, ``kinds`` the forms in which charts are written (SVG, and what is asked for), ``single``
    whether there is also one file to send.
    """
    folder = into or store.folder
    folder.mkdir(parents=True, exist_ok=True)
    # The table of a large run is written beside the rest of the work.
    beside = Workers(1, _write_table)
    large = store.count() >= LARGE and can_fork()
    table = beside.run([(store.folder, folder)] if large else [])
    try:
        if not large:
            write_episodes(store, folder / TABLE)
        summary, notes = _write_rest(store, folder, charts, kinds, transcripts, single)
        if LOST in (result for _, result in table):
            write_episodes(store, folder / TABLE)
    finally:
        beside.stop()
    return summary, notes


def _write_rest(
    store: Store, folder: Path, charts: bool | None, kinds: tuple[str, ...], transcripts: int, single: bool
) -> tuple[dict[str, Any], list[str]]:
    summary = summarize(store)
    fitted = carried(store)
    if fitted:
        summary["populations"] = fitted
    notes = list(summary["run"]["raised"])
    (folder / "summary.json").write_text(summary_text(summary), encoding="utf-8")
    (folder / "report.md").write_text(clean_text(report_markdown(summary, store.created)), encoding="utf-8")
    drawn: list[Chart] = []
    workers = default_workers()
    if draws(summary, charts):
        try:
            drawn = draw_charts(summary, folder / "charts", workers, kinds)
        except ChartsMissing as error:
            notes.append(str(error))
    write_page(store, summary, drawn, workers=workers, transcripts=transcripts, single=single, into=folder)
    if single:
        file = folder / SINGLE_FILE
        notes.append(f"one file to send: {file} ({file.stat().st_size / 1e6:.1f} MB)")
    return summary, notes


def _write_table(places: tuple[Path, Path]) -> None:
    run, folder = places
    store = Store.open(run, write=False)
    write_episodes(store, folder / TABLE)
    store.close()
