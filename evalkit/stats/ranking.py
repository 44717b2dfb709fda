"""Which contender is correct most often at each level of checks, and how it fares beside the next best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalkit.runs.store import Store
from evalkit.stats.compare import rates_by_scenario
from evalkit.stats.records import contender_name

LEVELS = ("full", "weak", "none")


def is_swept(row: dict[str, Any]) -> bool:
    """Whether a row is of a sweep over assumed error rates: those have a table of their own."""
    return "@" in row["strategy"]


def ranked(rows: Sequence[dict[str, Any]], level: str) -> list[dict[str, Any]]:
    """The rows over all families at one level of checks (or ``all``), best first; sweeps left out.

    Of equally reliable ones the cheaper is first.
    """
    mine = [
        row
        for row in rows
        if row["family"] == "all" and row["checks"] == level and row["episodes"] and not is_swept(row)
    ]
    return sorted(
        mine,
        key=lambda row: (
            -(row["correct"]["scenario_rate"] or 0),
            row["tokens"] or 0,
            contender_name(row["strategy"], row["harness"]),
        ),
    )


def leads(store: Store, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """At each level of checks the best contender beside the best of those that are correct less often.

    Counts only, in how many scenarios the first is ``better`` and in how many ``worse``: a test of the two
    that happened to come first would not mean what it says. A level in which all are equal has none.
    :func:`evalkit.stats.tally.make_tally` must have run.
    """
    entries = store.recipe.entries
    places = {(c.strategy, c.harness): place for place, c in enumerate(store.recipe.contenders)}
    found = []
    for level in LEVELS:
        order = ranked(rows, level)
        best = order[0]["correct"]["scenario_rate"] if order else None
        second = next((row for row in order if row["correct"]["scenario_rate"] != best), None)
        if second is None:
            continue
        names = [(row["strategy"], row["harness"]) for row in (order[0], second)]
        one, other = (rates_by_scenario(store, places[name]) for name in names)
        shared = [s for s in one.keys() & other.keys() if entries[s].checks == level]
        found.append(
            {
                "checks": level,
                "strategy": names[0][0],
                "harness": names[0][1],
                "next": {"strategy": names[1][0], "harness": names[1][1]},
                "scenarios": len(shared),
                "better": sum(one[s] > other[s] for s in shared),
                "worse": sum(one[s] < other[s] for s in shared),
            }
        )
    return found
