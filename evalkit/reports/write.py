"""All files of a report, written again from the episodes at any time."""

from __future__ import annotations

from typing import Any

import msgspec

from evalkit.reports.charts import ChartsMissing, write_charts
from evalkit.reports.episodes_csv import write_episodes
from evalkit.reports.markdown import report_markdown
from evalkit.runs.store import Store
from evalkit.stats.summary import summarize


def summary_text(summary: dict[str, Any]) -> str:
    """``summary.json`` as text."""
    return msgspec.json.format(msgspec.json.encode(summary), indent=1).decode() + "\n"


def write_report(store: Store, *, charts: bool = True) -> tuple[dict[str, Any], list[str]]:
    """Write the report of a run into its folder; the summary, and notes on what was left out."""
    summary = summarize(store)
    notes = []
    (store.folder / "summary.json").write_text(summary_text(summary), encoding="utf-8")
    write_episodes(store, store.folder / "episodes.csv")
    (store.folder / "report.md").write_text(report_markdown(summary), encoding="utf-8")
    if charts:
        try:
            write_charts(summary, store.folder / "charts")
        except ChartsMissing as error:
            notes.append(str(error))
    return summary, notes
