"""Strategies compared on the same scenarios against a baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

from evalkit.stats.signflip import holm, sign_flip

#: Under so many scenarios counts are shown and no p-value.
FEWEST = 20


class Named(Protocol):
    """A contender: a strategy, or a harness of its own."""

    @property
    def strategy(self) -> str: ...

    @property
    def harness(self) -> str: ...


Query = Callable[[str], Iterator[tuple[Any, ...]]]


def paired_comparisons(rows: Query, contenders: Sequence[Named], baseline: str) -> list[dict[str, Any]]:
    """Each contender against the baseline by ``correct``: by scenario, seeds averaged within it.

    ``p`` is the exact sign-flip test's, ``p_holm`` adjusted over all that is shown; both None under 20
    scenarios (counts only) or where nothing differs.
    """
    rates = _rates(rows)
    at = next((place for place, c in enumerate(contenders) if c.strategy == baseline), None)
    if at is None:
        return []
    compared: list[dict[str, Any]] = []
    for place, contender in enumerate(contenders):
        if place == at:
            continue
        shared = sorted(rates.get(at, {}).keys() & rates.get(place, {}).keys())
        if not shared:
            continue
        differences = [rates[place][scenario] - rates[at][scenario] for scenario in shared]
        p = sign_flip(differences) if len(shared) >= FEWEST else None
        compared.append(
            {
                "baseline": baseline,
                "strategy": contender.strategy,
                "harness": contender.harness,
                "rate": "correct",
                "scenarios": len(shared),
                "better": sum(difference > 0 for difference in differences),
                "worse": sum(difference < 0 for difference in differences),
                "difference": float(sum(differences, Fraction(0)) / len(shared)),
                "p": p,
                "p_holm": None,
            }
        )
    for row, adjusted in zip(compared, holm([row["p"] for row in compared]), strict=True):
        row["p_holm"] = adjusted
    return compared


def _rates(rows: Query) -> dict[int, dict[int, Fraction]]:
    query = (
        "select contender, scenario, sum(correct), count(*) from episode where ending <> 'void' "
        "group by contender, scenario order by contender, scenario"
    )
    found: dict[int, dict[int, Fraction]] = {}
    for contender, scenario, right, episodes in rows(query):
        found.setdefault(contender, {})[scenario] = Fraction(right, episodes)
    return found
