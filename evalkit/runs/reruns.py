"""A part of a run planned once more: what failed in it, or what evalkit itself failed at."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import msgspec

from evalkit.runs.plan import Plan, PlanError, Recipe, plan_from
from evalkit.runs.store import Store

Which: TypeAlias = Literal["failing", "void"]
WHICH: tuple[Which, ...] = get_args(Which)
_WHERE = {"failing": "counted and not correct", "void": "ending = 'void'"}


def again(store: Store, which: Which) -> Plan:
    """A plan of the scenarios with a failing (or void) episode, under the contenders that have one.

    As it was planned: texts of scenarios, seeds, where turns come from. PlanError where nothing is such.
    """
    found = list(
        store.rows(f"select distinct scenario, contender from episode where {_WHERE[which]} order by 1, 2")
    )
    if not found:
        raise PlanError(f"{store.folder}: no episode is {which}: nothing to run again")
    recipe = store.recipe
    scenarios = sorted({scenario for scenario, _ in found})
    contenders = sorted({contender for _, contender in found})
    entries = tuple(recipe.entries[scenario] for scenario in scenarios)
    who = tuple(recipe.contenders[contender] for contender in contenders)
    strategies = {contender.strategy for contender in who}
    places = {entry.place for entry in entries}
    kept: Recipe = msgspec.structs.replace(
        recipe,
        entries=entries,
        contenders=who,
        sources={place: text for place, text in recipe.sources.items() if place in places},
        strategies={name: text for name, text in recipe.strategies.items() if name in strategies},
        baseline=recipe.baseline if recipe.baseline in strategies else who[0].strategy,
    )
    return plan_from(kept)
