"""Strategies compared on the same scenarios against a baseline."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
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
    test's over files, variants of one taken together; ``low`` and ``high`` bound the differences that it does
    not reject at 5 %. ``note`` says why there is none.
    """

    scenarios: int
    better: int
    worse: int
    difference: float | None
    p: float | None
    low: float | None
    high: float | None
    note: str = ""


def paired(differences: Sequence[Fraction], clusters: Sequence[Hashable]) -> Paired:
    """The paired comparison of differences by scenario.

    ``clusters`` says of each difference what its scenario belongs to: variants of one file are one cluster,
    whose signs are flipped together, since they were not written independently.
    """
    number = len(differences)
    if not number:
        return Paired(0, 0, 0, None, None, None, None, "no scenario in common")
    better = sum(difference > 0 for difference in differences)
    worse = sum(difference < 0 for difference in differences)
    signed, scale = whole(differences)
    mean = sum(signed) / scale / number
    together: dict[Hashable, tuple[Fraction, int]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        total, size = together.get(cluster, (Fraction(), 0))
        together[cluster] = total + difference, size + 1
    if len(together) < FEWEST:
        return Paired(number, better, worse, mean, None, None, None, FEW)
    if not better and not worse:
        return Paired(number, 0, 0, mean, None, None, None, EQUAL)
    p = sign_flip([total for total, _ in together.values()])
    low, high = flip_range(tuple(together.values()), p) or (None, None)
    # Clusters that all cancel out: nothing speaks against chance.
    return Paired(number, better, worse, mean, 1.0 if p is None else p, low, high)


def adjusted(tests: Sequence[tuple[float | None, str]]) -> list[float | None]:
    """Holm's adjustment over all that is shown or tested together, given as p-value and note.

    A comparison in which no scenario differs could have differed: it counts as p = 1. One of which only
    counts are shown is no test.
    """
    p_values = holm([1.0 if note == EQUAL else p for p, note in tests])
    return [None if p is None else adjusted for (p, _), adjusted in zip(tests, p_values, strict=True)]


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
            differences = [mine[scenario] - base[scenario] for scenario in scenarios]
            result = paired(differences, [recipe.entries[scenario].digest for scenario in scenarios])
            found.append(row | msgspec.structs.asdict(result) | {"p_holm": None})
    return found


def adjust(rows: Sequence[dict[str, Any]]) -> None:
    """Give each comparison its ``p_holm``: Holm's adjustment over all that a report tests."""
    for row, p in zip(rows, adjusted([(row["p"], row["note"]) for row in rows]), strict=True):
        row["p_holm"] = p


def rates_by_scenario(store: Store, contender: int, rate: str = "correct") -> Mapping[int, Fraction]:
    """The share of a rate within each scenario, from the tally; scenarios with an empty base left out."""
    query = f"select scenario, {rate}, {rate}_base from tally where contender = ? and {rate}_base > 0"
    return {scenario: Fraction(count, base) for scenario, count, base in store.rows(query, (contender,))}
