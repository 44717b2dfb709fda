"""A run of a million episodes: real ones of the shipped library, repeated seed by seed.

python -m tests.reports.million FOLDER [EPISODES]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from evalkit.runs.engine import default_workers
from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import COLUMNS, Store
from evalkit.scenarios.suites import load_suites
from evalkit.strategies.presets import PRESETS

BATCH = 50_000


def make(folder: Path, episodes: int = 1_000_000) -> Path:
    """Make the run; its folder. Scenarios in worlds that start programs are left out."""
    scenarios = [scenario for scenario in load_suites(()) if scenario.world.kind not in ("repo", "files")]
    sources = {
        place: Path(place).read_text(encoding="utf-8")
        for place in dict.fromkeys(scenario.place for scenario in scenarios)
    }
    plan = make_plan(scenarios, sources, tuple(PRESETS), 1, None)
    small = Store.create(folder / "small", plan.recipe)
    run_plan(plan, small, default_workers())
    rows = list(small.rows(f"select {', '.join(COLUMNS)} from episode order by cell"))
    small.close()
    seeds = -(-episodes // len(rows))
    store = Store.create(folder / "large", replace(plan.recipe, seeds=seeds))
    batch: list[tuple[Any, ...]] = []
    for row in _repeated(rows, seeds, episodes):
        batch.append(row)
        if len(batch) == BATCH:
            store.add(batch)
            batch = []
    store.add(batch)
    store.close()
    return folder / "large"


def _repeated(rows: list[tuple[Any, ...]], seeds: int, episodes: int) -> Iterator[tuple[Any, ...]]:
    cell = 0
    for row in rows:
        for seed in range(seeds):
            if cell < episodes:
                yield (cell, row[1], row[2], seed, *row[4:])
                cell += 1


if __name__ == "__main__":
    print(make(Path(sys.argv[1]), *map(int, sys.argv[2:])))
