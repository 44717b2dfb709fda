"""Strategies compared on the same scenarios against a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.stats.signflip import flip_range, holm, sign_flip, whole

#: Under so many scenarios counts are shown and no p-value.
FEWEST = 20
FEW = f"fewer than {FEWEST} scenarios: counts only"
EQUAL = "no scenario differs"


class Paired(msgspec.Struct, frozen=True):
    """Two contenders on the same scenarios: by how much, on how many, and how sure.

    ``difference`` is the mean over scenarios, seeds averaged within each. ``p`` is the exact sign-flip
    test's; ``low`` and ``high`` bound the differences that it does not reject at 5 %. ``note`` says why there
    is none.
    """

    scenarios: int
    better: int
    worse: int
    difference: float | None
    p: float | None
    low: float | None
    high: float | None
    note: str = ""


def paired(differences: Sequence[Fraction]) -> Paired:
    """The paired comparison of differences by scenario."""
    number = len(differences)
    if not number:
        return Paired(0, 0, 0, None, None, None, None, "no scenario in common")
    better = sum(difference > 0 for difference in differences)
    worse = sum(difference < 0 for difference in differences)
    signed, scale = whole(differences)
    mean = sum(signed) / scale / number
    if number < FEWEST:
        return Paired(number, better, worse, mean, None, None, None, FEW)
    if not better and not worse:
        return Paired(number, 0, 0, mean, None, None, None, EQUAL)
    p = sign_flip(differences)
    low, high = flip_range(differences, p) or (None, None)
    return Paired(number, better, worse, mean, p, low, high)


def paired_comparisons(store: Store) -> list[dict[str, Any]]:
    """Each contender against the run's baseline by ``correct``, at each level of checks and over all.

    ``p_holm`` is left to :func:`adjust`. :func:`evalkit.stats.tally.make_tally` must have run. Contenders
    that assume error rates (sweeps) are left out: they have a table of their own.
    """
    recipe = store.recipe
    at = next((place for place, c in enumerate(recipe.contenders) if c.strategy == recipe.baseline), None)
    if at is None:
        return []
    levels = [level for level in ("full", "weak", "none") if any(e.checks == level for e in recipe.entries)]
    base = rates_by_scenario(store, at)
    found: list[dict[str, Any]] = []
    for place, contender in enumerate(recipe.contenders):
        if place == at or "@" in contender.strategy:
            continue
        mine = rates_by_scenario(store, place)
        shared = sorted(base.keys() & mine.keys())
        for level in ("all", *levels):
            scenarios = [s for s in shared if level in ("all", recipe.entries[s].checks)]
            if not scenarios:
                continue
            row: dict[str, Any] = {
                "baseline": recipe.baseline,
                "strategy": contender.strategy,
                "harness": contender.harness,
                "rate": "correct",
                "checks": level,
            }
            result = paired([mine[scenario] - base[scenario] for scenario in scenarios])
            found.append(row | msgspec.structs.asdict(result) | {"p_holm": None})
    return found


def adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Give each comparison its ``p_holm``: Holm's adjustment over all that a report tests.

    A comparison in which no scenario differs counts as p = 1, and has none of its own.
    """
    tested = [1.0 if row["note"] == EQUAL else row["p"] for row in rows]
    for shown, adjusted in zip(rows, holm(tested), strict=True):
        shown["p_holm"] = adjusted if shown["p"] is not None else None


def rates_by_scenario(store: Store, contender: int, rate: str = "correct") -> Mapping[int, Fraction]:
    """The share of a rate within each scenario, from the tally; scenarios with an empty base left out."""
    query = f"select scenario, {rate}, {rate}_base from tally where contender = ? and {rate}_base > 0"
    return {scenario: Fraction(count, base) for scenario, count, base in store.rows(query, (contender,))}
