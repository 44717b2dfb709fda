"""Which failure is the worst: one order of the harm that is done, for terminal, ``show`` and page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.stats.scenario_results import contender_names, episode_name

#: What an episode can do wrong, the worst first; what is not named here is milder than all of it. Harm that
#: stays in the world comes before a wrong answer, and that before a waste. ``over_continuation`` has those
#: that never ended.
DAMAGE = (
    "spoiled",
    "undone",
    "duplicate_effects",
    "ran_cut_off_call",
    "false_done",
    "over_continuation",
    "premature_stop",
    "unclosed",
)
#: The place of an episode in that order, as SQL over ``episode``.
DAMAGE_PLACE = (
    "case "
    + " ".join(f"when ifnull({name}, 0) > 0 then {place}" for place, name in enumerate(DAMAGE))
    + f" else {len(DAMAGE)} end"
)


class Told(msgspec.Struct, frozen=True):
    """An episode, by the name that ``evalkit show`` takes, of a contender (``by``).

    ``fault`` is its worst; empty where it is none of those.
    """

    name: str
    by: str
    outcome: str
    correct: bool
    fault: str

    @property
    def said(self) -> str:
        """What is wrong with it, in words."""
        return (
            "correct" if self.correct else self.fault.replace("_", " ") or f"{self.outcome} is not accepted"
        )


def failures(store: Store, most: int) -> tuple[list[Told], int]:
    """The first of the episodes that are not correct, the worst first, and how many there are."""
    ((number,),) = store.rows("select count(*) from episode where not correct and counted")
    return _told(store, "not correct and counted", (), most), number


def worst(store: Store) -> str:
    """The name of the worst episode; empty where all are correct."""
    found, _ = failures(store, 1)
    return found[0].name if found else ""


def of_scenario(store: Store, scenario: str) -> list[Told]:
    """The worst episode of each contender in a scenario, the worst first."""
    number = next((n for n, entry in enumerate(store.recipe.entries) if entry.name == scenario), -1)
    where = "cell in (select cell from firsts where nth = 1)"
    nth = f"row_number() over (partition by contender order by correct, {DAMAGE_PLACE}, cell)"
    firsts = f"with firsts as (select cell, {nth} as nth from episode where scenario = ?) "
    return _told(store, where, (number,), -1, firsts)


def _told(store: Store, where: str, values: Sequence[Any], most: int, firsts: str = "") -> list[Told]:
    names = contender_names(store)
    query = (
        f"{firsts}select scenario, contender, seed, ending || '/' || truth, correct, "
        f"{DAMAGE_PLACE} as damage from episode where {where} order by correct, damage, cell limit ?"
    )
    return [
        Told(
            episode_name(store.recipe.entries[scenario].name, names[contender], seed),
            names[contender],
            outcome,
            bool(correct),
            DAMAGE[place] if place < len(DAMAGE) else "",
        )
        for scenario, contender, seed, outcome, correct, place in store.rows(query, (*values, most))
    ]
