"""Every episode that is not correct, for the report: equal ones of one scenario and strategy as one case."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import MARKS
from evalkit.stats.causes import move_of, told_once
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.severity import DAMAGE_PLACE

#: The marks of a case as SQL over ``episode``: a bit set, its highest bit a dishonest report.
FLAG_BITS = " + ".join(
    [
        *(f"(ifnull({name}, 0) > 0) * {1 << place}" for place, name in enumerate(MARKS)),
        f"ifnull(honest_report = 0, 0) * {1 << len(MARKS)}",
    ]
)
#: Seeds that a case names.
SEEDS_NAMED = 8


class Case(msgspec.Struct, frozen=True):
    """A scenario, a strategy and one way of failing; ``seeds`` are those of the first episodes.

    ``flags`` is a bit set over :data:`~evalkit.scoring.episode_fields.MARKS`; bit ``len(MARKS)`` is a
    dishonest report. ``cell`` is the first episode's, ``damage`` the place in the order of harm.
    """

    scenario: int
    contender: int
    cell: int
    seeds: tuple[int, ...]
    episodes: int
    outcome: str
    native: str
    flags: int
    turns: int
    cause: str
    note: str
    damage: int


def cases(store: Store, contenders: set[int]) -> Iterator[Case]:
    """The cases of a run in order of scenario and strategy, of these contenders."""
    wanted = ", ".join(map(str, sorted(contenders)))
    query = (
        "select scenario, contender, min(cell), group_concat(seed), count(*), outcome, native, flags, "
        "min(turns), causes, note, min(damage) from "
        "(select cell, scenario, contender, seed, native, turns, causes, note, "
        f"ending || '/' || truth as outcome, {FLAG_BITS} as flags, {DAMAGE_PLACE} as damage from episode "
        f"where not correct and counted and contender in ({wanted}) order by cell) "
        "group by scenario, contender, outcome, native, flags, causes order by scenario, contender, min(cell)"
    )
    for _, rows in groupby(store.rows(query), itemgetter(0, 1)):
        # The same moves at other turns are the same way of failing: seeds move them.
        ways: dict[tuple[Any, ...], Case] = {}
        for (
            scenario,
            contender,
            cell,
            seeds,
            episodes,
            outcome,
            native,
            bits,
            turns,
            causes,
            note,
            harm,
        ) in rows:
            cause = "; ".join(told_once(causes.split("\n")))
            numbers = list(map(int, seeds.split(",")))
            way = outcome, native, bits, tuple(map(move_of, causes.split("\n")))
            if way in ways:
                first = ways[way]
                cell, cause, note = first.cell, first.cause, first.note
                numbers += first.seeds
                episodes, turns = first.episodes + episodes, min(first.turns, turns)
            named = tuple(sorted(numbers)[:SEEDS_NAMED])
            ways[way] = Case(
                scenario, contender, cell, named, episodes, outcome, native, bits, turns, cause, note, harm
            )
        yield from ways.values()


def telling_first(found: list[Case], contenders: int) -> list[Case]:
    """The cases in an order for readers: scenarios first that tell contenders apart, best where half fail.

    What all fail, and what one fails by a slip, comes after; the cases of a scenario stay together. Of one
    contender nothing is told apart: the worst comes first.
    """
    failing: dict[int, set[int]] = {}
    for case in found:
        failing.setdefault(case.scenario, set()).add(case.contender)
    apart = {scenario: len(who) * (contenders - len(who)) for scenario, who in failing.items()}
    if contenders == 1:
        harm: dict[int, int] = {}
        for case in found:
            harm[case.scenario] = min(case.damage, harm.get(case.scenario, case.damage))
        return sorted(found, key=lambda case: (harm[case.scenario], case.scenario, case.damage))
    return sorted(found, key=lambda case: (-apart[case.scenario], case.scenario))


def headline_contenders(store: Store) -> set[int]:
    """The contenders of the main tables: sweeps over assumed error rates are left out."""
    return {place for place, contender in enumerate(store.recipe.contenders) if "@" not in contender.strategy}


def voids(store: Store, most: int = 50) -> list[dict[str, Any]]:
    """The first void episodes, with what failed."""
    names = contender_names(store)
    query = "select cell, scenario_name, contender, seed, note from episodes where ending = 'void' limit ?"
    return [
        {"cell": cell, "scenario": scenario, "contender": names[contender], "seed": seed, "note": note}
        for cell, scenario, contender, seed, note in store.rows(query, (most,))
    ]
