"""Answers about a scenario that is partly left to chance: a seed matters only through the choices it makes.

Two seeds whose choices agree wherever a run drew one give the same run. So what is known of one is known of
the other, and a million seeds of a script with five choices ask for at most 32 answers.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeAlias, TypeVar

from evalkit.scenarios.player import Player

Answer = TypeVar("Answer")
Visits: TypeAlias = tuple[int, ...]

#: Answers that are kept; then all are forgotten, so that memory does not grow with the number of episodes.
MOST = 20_000


class Chances(Generic[Answer]):
    """Answers by what they are about and by the choices of a seed."""

    def __init__(self, player: Player) -> None:
        self._player = player
        #: What happens from outside is looked ahead for, which the visits of a run do not show.
        self._by_seed = player.random and player.eventful
        self._known: dict[Hashable, dict[Visits, dict[Hashable, Answer]]] = {}
        self._count = 0

    def get(self, about: Hashable, since: Visits, seed: int) -> Answer | None:
        """The answer for a seed, for a run that had made its choices up to ``since``; None if not known."""
        runs = self._known.get(about)
        if runs is None:
            return None
        for until, answers in runs.items():
            answer = answers.get(self._choices(since, until, seed))
            if answer is not None:
                return answer
        return None

    def keep(self, about: Hashable, since: Visits, until: Visits, seed: int, answer: Answer) -> None:
        """Keep an answer that a run gave which made its choices from ``since`` to ``until``."""
        if self._count >= MOST:
            self._known.clear()
            self._count = 0
        self._count += 1
        runs = self._known.setdefault(about, {})
        runs.setdefault(until, {})[self._choices(since, until, seed)] = answer

    def _choices(self, since: Visits, until: Visits, seed: int) -> Hashable:
        """What a seed chooses between two points of a run."""
        if self._by_seed:
            return seed
        option = self._player.option
        return tuple(
            [
                option(slot, visit, seed)
                for slot, last in enumerate(until)
                for visit in range(since[slot], last)
            ]
        )
