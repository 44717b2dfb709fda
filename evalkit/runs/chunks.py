"""What is still to be run, handed out in chunks whose size follows from how long such episodes took."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from evalkit.runs.plan import Plan, Span
from evalkit.worlds import world_class

Rows: TypeAlias = "list[tuple[Any, ...]]"
Chunk: TypeAlias = tuple[Span, ...]

#: Seconds of work in a chunk, at first and at most. Handing one over costs an engine 0.4 to 11 ms, losing one
#: this much: a chunk grows with the run, and stays this small a part of what is done.
TARGET, LONGEST, PART = 0.25, 2.0, 1 / 1000
#: Seconds for an episode of which nothing is known yet: few enough go into the first chunks.
GUESS = 0.02
#: Episodes in a chunk at most, so that its rows are a small message.
MOST = 5_000


class Work:
    """Chunks of about ``target`` seconds at first, in order of the spans.

    Episodes of one kind of world cost about the same; what a chunk took corrects the estimate of its kinds.
    Where most of that is commands whose results all strategies share, the cells of a scenario stay together:
    two workers would run each command twice.
    """

    def __init__(
        self, plan: Plan, spans: Iterable[Span], target: float = TARGET, guess: float = GUESS
    ) -> None:
        self._kinds = [scenario.world.kind for scenario in plan.scenarios]
        self._shares = [world_class(kind).shares_results for kind in self._kinds]
        self._alone = [contender.foreign for contender in plan.recipe.contenders]
        self._spans = iter(spans)
        self._rest: Span | None = None
        self._first = self._target = target
        self._worked = 0.0
        self._guess = guess
        self._cost: dict[str, float] = {}

    def __iter__(self) -> Iterator[Chunk]:
        while chunk := self.take():
            yield chunk

    def take(self) -> Chunk:
        """The next chunk; empty where no work is left."""
        chunk: list[Span] = []
        seconds, episodes = 0.0, 0
        while episodes < MOST:
            span = self._rest if self._rest is not None else next(self._spans, None)
            self._rest = None
            if span is None:
                break
            if seconds >= self._target and not self._belongs(span, chunk):
                self._rest = span
                break
            cost = self._cost.get(self._kinds[span.scenario], self._guess)
            fits = max(1, min(int((self._target - seconds) / cost), MOST - episodes))
            if fits < span.seeds:
                span, self._rest = _split(span, fits)
            chunk.append(span)
            seconds += cost * span.seeds
            episodes += span.seeds
        return tuple(chunk)

    def _belongs(self, span: Span, chunk: list[Span]) -> bool:
        """Whether a cell shares most of its work with the one in front of it."""
        if span.seeds > 1 or self._alone[span.contender] or not self._shares[span.scenario]:
            return False
        return bool(chunk) and chunk[-1].scenario == span.scenario

    def took(self, chunk: Chunk, seconds: float) -> None:
        """Learn from a finished chunk; ``seconds`` is its running time without the way there and back."""
        self._worked += seconds
        self._target = max(self._first, min(LONGEST, PART * self._worked))
        costs = {
            kind: self._cost.get(kind, self._guess)
            for kind in dict.fromkeys(self._kinds[span.scenario] for span in chunk)
        }
        expected = sum(costs[self._kinds[span.scenario]] * span.seeds for span in chunk)
        if not expected or seconds <= 0:
            return
        # Half way to what was seen: a single slow chunk does not make the next ones tiny.
        factor = (1 + seconds / expected) / 2
        for kind, cost in costs.items():
            self._cost[kind] = cost * factor


def _split(span: Span, seeds: int) -> tuple[Span, Span]:
    head = Span(span.scenario, span.contender, span.first_seed, seeds, span.cell)
    tail = Span(
        span.scenario,
        span.contender,
        span.first_seed + seeds,
        span.seeds - seeds,
        span.cell + seeds,
    )
    return head, tail


def singles(chunk: Chunk) -> list[Span]:
    """The cells of a chunk, one by one."""
    return [
        Span(span.scenario, span.contender, span.first_seed + offset, 1, span.cell + offset)
        for span in chunk
        for offset in range(span.seeds)
    ]
