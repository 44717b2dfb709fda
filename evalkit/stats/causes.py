"""Which moves each contender fell for: the causes of its wrong decisions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from evalkit.runs.store import Store

_TURN = re.compile(r", (?:after )?turn (\d+)$")


def causes(store: Store) -> list[dict[str, Any]]:
    """By contender and move: ``called_done`` (ended as done while it was not), ``missed`` (the reverse).

    The wrong decisions of an episode are kept in order; where it ended as done wrongly that is its last one.
    """
    query = (
        "select contender, causes, fp, count(*) from episode where causes <> '' and counted "
        "group by contender, causes, fp order by contender, causes, fp"
    )
    found: dict[tuple[int, str], list[int]] = {}
    for contender, text, fp, episodes in store.rows(query):
        lines = text.split("\n")
        for place, line in enumerate(lines):
            counts = found.setdefault((contender, move_of(line)), [0, 0])
            counts[0 if fp and place == len(lines) - 1 else 1] += episodes
    contenders = store.recipe.contenders
    return [
        {
            "strategy": contenders[contender].strategy,
            "harness": contenders[contender].harness,
            "move": move,
            "called_done": called,
            "missed": missed,
        }
        for (contender, move), (called, missed) in sorted(
            found.items(), key=lambda item: (item[0][0], -sum(item[1]), item[0][1])
        )
    ]


def move_of(cause: str) -> str:
    """The move without its turn."""
    return _TURN.sub("", cause)


def told_once(causes: Iterable[str]) -> list[str]:
    """Each move once, in the order of the first: with its turn, or how often and from which turn to which."""
    told: dict[str, list[str]] = {}
    for cause in causes:
        told.setdefault(move_of(cause), []).append(cause)
    return [
        same[0] if len(same) == 1 else f"{move}, {len(same)} times{_from_to(same[0], same[-1])}"
        for move, same in told.items()
    ]


def _from_to(first: str, last: str) -> str:
    turns = [found[1] for cause in (first, last) if (found := _TURN.search(cause))]
    return f", turns {' to '.join(turns)}" if turns else ""
