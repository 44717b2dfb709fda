"""A run folder from the episodes of a test session, wherever its tests ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from evalkit import __version__
from evalkit.harnesses.episode_record import Kept
from evalkit.reports.write import write_report
from evalkit.runs.foreign_records import keep_trace
from evalkit.runs.plan import Contender, Recipe, entry_of
from evalkit.runs.store import FILE, Store, row_of
from evalkit.scenarios.loader import load_text
from evalkit.scoring.episode import Episode


def write_tests(records: list[dict[str, Any]], folder: str) -> Path:
    """Write the run folder and its report; an earlier one of tests in the same place is replaced."""
    records = sorted(records, key=lambda told: (told["scenario"], told["harness"], told["seed"]))
    places = dict.fromkeys(told["place"] for told in records)
    sources = {place: Path(place).read_text(encoding="utf-8") for place in places}
    scenarios = {s.name: s for place, text in sources.items() for s in load_text(text, place)}
    names = list(dict.fromkeys(told["scenario"] for told in records))
    harnesses = list(dict.fromkeys(told["harness"] for told in records))
    recipe = Recipe(
        evalkit=__version__,
        seeds=1 + max(told["seed"] for told in records),
        entries=tuple(entry_of(scenarios[name]) for name in names),
        contenders=tuple(Contender(name, name) for name in harnesses),
        sources=sources,
        strategies=dict.fromkeys(harnesses, "tests"),
        baseline=harnesses[0],
        not_expressible={},
    )
    place = Path(folder)
    for old in place.glob(f"{FILE}*"):
        old.unlink()
    store = Store.create(place, recipe)
    for cell, told in enumerate(records):
        episode = msgspec.convert(told["episode"], Episode)
        where = (cell, names.index(told["scenario"]), harnesses.index(told["harness"]), told["seed"])
        store.add([row_of(*where, episode)])
        keep_trace(place, cell, msgspec.convert(told["kept"], Kept))
    write_report(store, charts=False)
    store.close()
    return place
