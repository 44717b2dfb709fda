"""Twins: pairs of scenarios with equal words over different worlds, and who tells them apart."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from evalkit.runs.store import Store

#: What a deterministic reader of words alone gets, and the most that a coin can expect: for any chance p of
#: "done" it is right on both with p·(1−p).
WORDS_ALONE, COIN_AT_MOST = 0.0, 0.25


def twin_rows(store: Store) -> list[dict[str, Any]]:
    """Pairs told apart by each contender: the decision right on both, seed by seed, averaged within a pair.

    ``right`` counts the pairs that were told apart with every seed.
    """
    tried = dict(_tried(store))
    rows = []
    for number, contender in enumerate(store.recipe.contenders):
        pairs = tried.get(number, [])
        if not pairs:
            continue
        shares = sum((Fraction(right, seeds) for _, right, seeds in pairs), Fraction(0))
        told = [name for name, right, seeds in pairs if right == seeds]
        rows.append(
            {
                "strategy": contender.strategy,
                "harness": contender.harness,
                "pairs": len(pairs),
                "right": len(told),
                "rate": float(shares / len(pairs)),
                "words_alone": WORDS_ALONE,
                "coin_at_most": COIN_AT_MOST,
                "told_apart": told,
                "missed": [name for name, right, seeds in pairs if right < seeds],
            }
        )
    return rows


def _tried(store: Store) -> Iterator[tuple[int, list[tuple[str, int, int]]]]:
    """By contender: (pair, seeds in which both were right, seeds)."""
    base = store.base
    base.execute("drop table if exists temp.twin")
    base.execute(
        "create temp table twin (contender integer, scenario integer, seed integer, told integer, "
        "primary key (scenario, contender, seed)) without rowid"
    )
    base.execute(
        "insert into twin select contender, scenario, seed, twin from episode "
        "where counted and scenario in (select id from scenario where twin is not null) "
        "order by scenario, contender, seed"
    )
    query = (
        "select a.contender, one.name || ' / ' || other.name, sum(a.told and b.told), count(*) "
        "from scenario one join scenario other on other.name = one.twin and other.twin = one.name "
        "cross join temp.twin a on a.scenario = one.id cross join temp.twin b "
        "on b.scenario = other.id and b.contender = a.contender and b.seed = a.seed "
        "where one.name < other.name group by a.contender, one.id order by a.contender, one.name"
    )
    found: dict[int, list[tuple[str, int, int]]] = {}
    for contender, name, right, seeds in store.rows(query):
        found.setdefault(contender, []).append((name, right, seeds))
    yield from found.items()
