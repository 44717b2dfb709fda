"""Which contender to take: the order at each level of checks, the first beside the next, the safe choice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import FAULTS
from evalkit.stats.scenario_results import contender_name
from evalkit.stats.severity import DAMAGE
from evalkit.stats.strategy_comparison import paired, rates_by_scenario

LEVELS = ("full", "weak", "none")
#: The level of the choice of who does not know what checks there will be.
UNSURE = "unsure"
#: What a choice prevents, the worst first: the column of the tally that shows it.
PREVENTED = tuple(name for name in DAMAGE if name in FAULTS)

Row = dict[str, Any]


def is_swept(row: Row) -> bool:
    """Whether a row is of a sweep over assumed error rates: those have a table of their own."""
    return "@" in row["strategy"]


def standing(row: Row) -> tuple[float, float, float]:
    """What the order goes by, best first: correct, then fewer false dones, then fewer premature stops.

    Each is a share of the scenarios played: a contender that can stop too early in fewer of them is not the
    better one for it. Two rows with the same standing are a tie, and stay one: cost names no winner.
    """
    correct, false, early = (share_played(row, rate) for rate in ("correct", "false_done", "premature_stop"))
    return -correct, false, early


def share_played(row: Row, rate: str) -> float:
    """What a rate counts, as a share of the scenarios played, whatever the rate's own base."""
    return float(row[rate]["scenario_count"]) / (row["scenarios"] or 1)


def ranked(rows: Sequence[Row], level: str) -> list[Row]:
    """The rows over all families at one level of checks (or ``all``), best first; sweeps left out.

    Ties stand side by side, in the order of their names.
    """
    mine = [
        row
        for row in rows
        if row["family"] == "all" and row["checks"] == level and row["episodes"] and not is_swept(row)
    ]
    return sorted(mine, key=lambda row: (*standing(row), contender_name(row["strategy"], row["harness"])))


def places(order: Sequence[Row]) -> dict[tuple[str, str], int]:
    """The place of each of some ranked rows, from 1; those in a tie share theirs."""
    standings = [standing(row) for row in order]
    return {_key(row): 1 + standings.index(standing(row)) for row in order}


def leads(store: Store, rows: Sequence[Row]) -> list[Row]:
    """At each level the first, beside the next; with two levels and more also the one to take unsure.

    ``tied`` are those with the first's standing; ``next`` is the best below it, compared with the first by
    ``correct`` on the scenarios that both have (:func:`evalkit.stats.strategy_comparison.paired`).
    ``telling`` is the episode of another contender that shows best what the choice prevents. The ``unsure``
    one is first or second at every level (``places``); there is none where nobody is.
    :func:`evalkit.stats.tally.make_tally` must have run.
    """
    orders = {level: order for level in LEVELS if (order := ranked(rows, level))}
    found = [_lead(store, level, order) for level, order in orders.items()]
    return found + (_unsure(store, orders) if len(orders) > 1 else [])


def _lead(store: Store, level: str, order: list[Row]) -> Row:
    first = order[0]
    tied = [row for row in order[1:] if standing(row) == standing(first)]
    second = next((row for row in order if standing(row) != standing(first)), None)
    lead = _named(first) | {
        "checks": level,
        "tied": [_named(row) for row in tied],
        "next": None if second is None else _named(second),
        "telling": _telling(store, first, order, level),
    }
    if second is None:
        return lead | {"scenarios": 0, "better": 0, "worse": 0, "p": None, "p_holm": None, "note": ""}
    entries = store.recipe.entries
    one, other = (rates_by_scenario(store, _place(store, row)) for row in (first, second))
    shared = [s for s in sorted(one.keys() & other.keys()) if entries[s].checks == level]
    result = msgspec.structs.asdict(
        paired([one[s] - other[s] for s in shared], [entries[s].digest for s in shared])
    )
    return lead | result | {"p_holm": None}


def _unsure(store: Store, orders: dict[str, list[Row]]) -> list[Row]:
    """The contender that is first or second at every level; of several the one with the best places.

    Who is never correct at a level is second to nobody there.
    """
    by_level = {
        level: places([row for row in order if row["correct"]["scenario_count"]])
        for level, order in orders.items()
    }
    known = [key for key in next(iter(by_level.values())) if all(key in found for found in by_level.values())]
    near = [key for key in known if all(found[key] <= 2 for found in by_level.values())]
    if not near:
        return []

    def order(key: tuple[str, str]) -> tuple[int, float, str]:
        rows = [next(row for row in order if _key(row) == key) for order in orders.values()]
        return (
            sum(found[key] for found in by_level.values()),
            sum(map(_false_done, rows)),
            contender_name(*key),
        )

    best = min(near, key=order)
    level = next(iter(orders))
    row = next(row for row in orders[level] if _key(row) == best)
    return [
        _named(row)
        | {
            "checks": UNSURE,
            "places": {name: found[best] for name, found in by_level.items()},
            "telling": _telling(store, row, orders[level], level),
        }
    ]


def _false_done(row: Row) -> float:
    return float(row["false_done"]["scenario_count"])


def _key(row: Row) -> tuple[str, str]:
    return row["strategy"], row["harness"]


def _named(row: Row) -> Row:
    return {"strategy": row["strategy"], "harness": row["harness"]}


def _place(store: Store, row: Row) -> int:
    return next(n for n, c in enumerate(store.recipe.contenders) if (c.strategy, c.harness) == _key(row))


def _telling(store: Store, pick: Row, order: Sequence[Row], level: str) -> Row | None:
    """The episode that shows best what a choice prevents, where the choice itself is always correct.

    The worst fault that another has there, an accepted one aside; of the others the best one that has it, for
    it is the choice's nearest rival; of its scenarios the one in which most others share the fault.
    """
    mine = _place(store, pick)
    for fault in PREVENTED:
        query = (
            f"select t.scenario, t.contender from tally t join tally p using (scenario) "
            f"where p.contender = ? and p.correct = p.episodes and t.checks = ? and t.{fault} > 0 "
            "and t.correct < t.episodes"
        )
        failing: dict[int, list[int]] = {}
        for scenario, contender in store.rows(query, (mine, level)):
            failing.setdefault(scenario, []).append(contender)
        for row in order:
            other = _place(store, row)
            theirs = [scenario for scenario, who in failing.items() if other in who]
            if not theirs:
                continue
            names = store.recipe.entries
            scenario = min(theirs, key=lambda s: (-len(failing[s]), names[s].name))
            query = f"select min(seed) from episode where scenario = ? and contender = ? and {fault} > 0"
            ((seed,),) = store.rows(query, (scenario, other))
            return _named(row) | {
                "scenario": names[scenario].name,
                "seed": seed,
                "fault": fault,
                "beside": _named(pick),
            }
    return None
