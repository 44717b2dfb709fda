"""``episodes.csv``: one row for each episode, in order of cells."""

from __future__ import annotations

import csv
from pathlib import Path

from evalkit.runs.store import Store

COLUMNS = (
    "episode",
    "scenario",
    "family",
    "checks",
    "strategy",
    "harness",
    "seed",
    "ending",
    "native",
    "truth",
    "outcome",
    "correct",
    "premature_stop",
    "silent",
    "false_done",
    "over_continuation",
    "unclosed",
    "spoiled",
    "undone",
    "duplicate_effects",
    "ran_cut_off_call",
    "orphan_calls",
    "protocol_faults",
    "dialect_faults",
    "lost_work",
    "honest_report",
    "over_reported",
    "turns",
    "tokens",
    "excess_turns",
    "excess_tokens",
    "tp",
    "fp",
    "tn",
    "fn",
    "causes",
    "stops",
    "note",
    "output_tokens",
    "open_stops",
    "final_stop",
)
_SOURCE = {"episode": "cell", "scenario": "scenario_name", "causes": "replace(causes, char(10), '; ')"}


def write_episodes(store: Store, file: Path) -> None:
    """Write the table. Flags are 1 and 0, and empty where an episode is outside a rate's base."""
    query = f"select {', '.join(_SOURCE.get(name, name) for name in COLUMNS)} from episodes order by cell"
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(store.rows(query))
