"""Turns to the end: how they are distributed, exactly, from counts in SQL."""

from __future__ import annotations

from math import ceil
from typing import Any

from evalkit.runs.store import Store

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def turns_to_the_end(store: Store) -> list[dict[str, Any]]:
    """For each contender the quantiles of model turns, the extremes, and how many episodes never ended.

    A quantile is the smallest number of turns that at least that share of the episodes does not exceed.
    """
    query = (
        "select contender, turns, count(*), sum(ending = 'never') from episode where counted "
        "group by contender, turns order by contender, turns"
    )
    counted: dict[int, list[tuple[int, int, int]]] = {}
    for contender, turns, episodes, never in store.rows(query):
        counted.setdefault(contender, []).append((turns, episodes, never))
    contenders = store.recipe.contenders
    return [
        {
            "strategy": contenders[contender].strategy,
            "harness": contenders[contender].harness,
            "episodes": sum(episodes for _, episodes, _ in counts),
            "never": sum(never for _, _, never in counts),
            "least": counts[0][0],
            "most": counts[-1][0],
            "quantiles": {f"{q:g}": quantile([(turns, n) for turns, n, _ in counts], q) for q in QUANTILES},
        }
        for contender, counts in sorted(counted.items())
    ]


def quantile(counts: list[tuple[int, int]], share: float) -> int:
    """The smallest value of ascending (value, count) whose cumulated count reaches a share of all."""
    wanted = ceil(share * sum(count for _, count in counts))
    reached = 0
    for value, count in counts:
        reached += count
        if reached >= max(1, wanted):
            return value
    raise ValueError("a quantile of nothing")
