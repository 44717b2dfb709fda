"""``episodes.csv``: one row for each episode, in order of cells."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalkit.core.escaping import for_csv
from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import KEPT

#: What says which episode it is, and the outcome beside the truth; the rest as the store has it.
COLUMNS = (
    *("episode", "scenario", "family", "checks", "strategy", "harness", "seed"),
    *("ending", "native", "truth", "outcome"),
    *(figure.name for figure in KEPT[3:]),
)
_SOURCE = {"episode": "cell", "scenario": "scenario_name", "causes": "replace(causes, char(10), '; ')"}


def write_episodes(store: Store, file: Path) -> None:
    """Write the table. Flags are 1 and 0, and empty where an episode is outside a rate's base."""
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(map(for_csv, row) for row in episode_rows(store))


def episode_rows(store: Store) -> Iterator[tuple[Any, ...]]:
    """The rows of the table, under :data:`COLUMNS`."""
    query = f"select {', '.join(_SOURCE.get(name, name) for name in COLUMNS)} from episodes order by cell"
    yield from store.rows(query)
