"""Which script to try next, guided by what was seen, so that bugs that need several moves are found.

Two things count as progress. *New answers*: an ending, or what the harness made of a kind of turn after its
answer before, that no run showed yet; the moves that led there are kept and gone on from. *New orders*: each
pair and each triple of kinds of moves that were delivered in an order, whatever lay between; bugs hide in
orders, and a long run holds many. So scripts are long, and what is likely to end a run where it stands comes
last. How likely that is is learned of each kind, apart for runs that were nudged often in a row and for runs
whose work is done: there almost any end of turn is the last. New work, or undone work, leads out of both.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from random import Random
from typing import TypeAlias

from evalkit.search.falsification.trials import Alphabet, Script, Tried

#: What a pair in a new order counts for against a triple.
_PAIR = 8
#: Nudges in a row after which most harnesses give up.
_NUDGES = 3
#: Runs of a kind's class that its own weigh as much as, when it is asked whether it ends a run.
_OTHERS = 2
#: How much more a move counts that leads out of where most ends of turn are the last.
_RELIEF = 10

#: Where a run stands: whether it was nudged often in a row, and whether all work is done as far as is told.
_Where: TypeAlias = tuple[bool, bool]


class _Course:
    """How a script's moves go: where a run stands after those taken so far."""

    def __init__(self, alphabet: Alphabet, is_nudged: Callable[[int], bool]) -> None:
        self._alphabet = alphabet
        self._is_nudged = is_nudged
        self._items = frozenset(range(len(alphabet.names)))
        self._open = set(self._items)
        self._nudged = 0
        self.taken: set[int] = set()

    @property
    def where(self) -> _Where:
        """Where a run stands now."""
        return self._nudged >= _NUDGES, not self._open

    def take(self, place: int) -> None:
        """Take a move."""
        move = self._alphabet.moves[place]
        if self._is_nudged(place):
            self._nudged += 1
        elif move.happens:
            self._nudged = 0
        elif self._alphabet.works(place):
            self._nudged *= place in self.taken
            about = {move.item} if move.item >= 0 else self._items
            self._open = self._open | about if move.undoes else self._open - about
        self.taken.add(place)

    def is_relief(self, place: int) -> bool:
        """Whether a move leads out of where a run stands."""
        if not self._open:
            return self._alphabet.moves[place].undoes
        return self._alphabet.works(place) and place not in self.taken


class Guide:
    """What was seen of one harness, and the scripts that follow from it. ``longest`` bounds their moves."""

    def __init__(self, alphabet: Alphabet, longest: int, seed: int) -> None:
        self._alphabet = alphabet
        self._longest = longest
        self._random = Random(seed)
        self._kinds = alphabet.kinds
        self._kind = {place: kind for kind, places in enumerate(self._kinds) for place in places}
        self._pairs: set[tuple[int, int]] = set()
        self._triples: set[tuple[int, int, int]] = set()
        self._seen: set[tuple[str, ...]] = set()
        #: Moves that led to a new answer and did not end the run, and how often they were gone on from.
        self._corpus: dict[tuple[int, ...], int] = {}
        self._made = [0] * len(self._kinds)
        self._nudged = [0] * len(self._kinds)
        #: How often moves were made where a run stood, and ended it: of a kind, and of all that are like it.
        self._there: Counter[tuple[int | bool, _Where, str]] = Counter()
        self._last: Counter[tuple[int | bool, _Where, str]] = Counter()

    @property
    def orders(self) -> float:
        """The share of the orders of three kinds of moves, of all that there can be, that were delivered."""
        return len(self._triples) / len(self._kinds) ** 3

    # What was seen

    def learn(self, tried: Tried) -> None:
        """Take note of a run: what is new in it is gone on from."""
        moves = tried.script.moves
        kinds = [self._kind[place] for place in moves]
        self._pairs.update(combinations(kinds, 2))
        self._triples.update(combinations(kinds, 3))
        ended = tried.turns <= self._alphabet.turns(moves)
        before, course = "", self._course()
        for at, (place, answer) in enumerate(zip(moves, self._answers(tried), strict=False)):
            kind, last = self._kind[place], ended and at == len(moves) - 1
            self._made[kind] += 1
            self._nudged[kind] += answer.startswith("nudged")
            for key in self._classes(kind, course.where):
                self._there[key] += 1
                self._last[key] += last
            course.take(place)
            if self._is_new((before, str(kind), answer)) and not last:
                self._corpus.setdefault(moves[: at + 1], 0)
            before = answer
        if self._is_new(("ends", tried.episode.outcome, tried.episode.native)) and not ended:
            self._corpus.setdefault(moves, 0)

    def _course(self) -> _Course:
        return _Course(self._alphabet, lambda place: self._is_nudged(self._kind[place]))

    def _classes(self, kind: int, where: _Where) -> tuple[tuple[int | bool, _Where, str], ...]:
        """What a move is counted as: one of its kind, and one that is nudged or not, each where it stood."""
        return (kind, where, "kind"), (self._is_nudged(kind), where, "class")

    def _is_new(self, what: tuple[str, ...]) -> bool:
        new = what not in self._seen
        self._seen.add(what)
        return new

    def _answers(self, tried: Tried) -> list[str]:
        """What the harness made of each move's turn, items left out; nothing for what is no turn."""
        steps = [step for step in tried.kept.exchanges if step.number and not step.by]
        answers: list[str] = []
        turn = 0
        for place in tried.script.moves:
            if self._alphabet.moves[place].happens or turn >= len(steps):
                answers.append("")
                continue
            step = steps[turn]
            said = step.says
            for name in self._alphabet.names:
                said = said.replace(name, "ITEM")
            answers.append(f"{step.action}: {re.sub(r'[0-9]+', '#', said)[:200]}")
            turn += 1
        return answers

    # What is tried next

    def propose(self) -> Script:
        """A script that nobody has tried, as far as can be told."""
        choose = self._random
        start: tuple[int, ...] = ()
        if self._corpus and choose.random() < 0.5:
            fewest = min(self._corpus.values())
            start = choose.choice([known for known, times in self._corpus.items() if times <= fewest + 1])
            self._corpus[start] += 1
        elif self._alphabet.listing is not None and choose.random() < 0.6:
            start = (self._alphabet.listing,)
        most = max(1, choose.choice((self._longest * 2 // 3, self._longest)))
        length = min(self._longest, len(start) + most)
        moves: list[int] = []
        course = self._course()
        #: What each kind would add as the next move, in new pairs and triples.
        adds, orders = [1] * len(self._kinds), set[tuple[int, ...]]()
        while len(moves) < length:
            if len(moves) < len(start):
                place = start[len(moves)]
            else:
                place = self._item(self._next(adds, course, last=len(moves) == length - 1), moves)
            self._note(adds, orders, [self._kind[other] for other in moves], self._kind[place])
            moves.append(place)
            course.take(place)
        return self._alphabet.script(tuple(moves), for_ever=choose.random() < 0.05)

    def _note(self, adds: list[int], orders: set[tuple[int, ...]], before: Sequence[int], kind: int) -> None:
        """Count what each kind would add after one more move of this kind."""
        found = {(kind,), *((other, kind) for other in before)} - orders
        orders |= found
        for order in found:
            known, worth = (self._pairs, _PAIR) if len(order) == 1 else (self._triples, 1)
            for next_kind in range(len(adds)):
                adds[next_kind] += worth * ((*order, next_kind) not in known)

    def _next(self, adds: Sequence[int], course: _Course, *, last: bool) -> int:
        """The kind of the next move: that which makes most of the new orders, chance aside."""
        where = course.where
        relief = any(where) and self._random.random() < 0.5
        best, most = 0, -1.0
        for kind, places in enumerate(self._kinds):
            weight = adds[kind] * self._random.uniform(0.2, 1)
            if not last:
                weight *= (1 - self._risk(kind, where)) ** 2
                if relief and any(map(course.is_relief, places)):
                    weight *= _RELIEF
            if weight > most:
                best, most = kind, weight
        return best

    def _risk(self, kind: int, where: _Where) -> float:
        """How likely a kind ends a run there: by its own runs, and by those of its class where it has few."""
        own, alike = self._classes(kind, where)
        usual = self._last[alike] / max(1, self._there[alike])
        return (self._last[own] + _OTHERS * usual) / (self._there[own] + _OTHERS)

    def _rate(self, counts: list[int], kind: int) -> float:
        return counts[kind] / max(1, self._made[kind])

    def _is_nudged(self, kind: int) -> bool:
        return self._rate(self._nudged, kind) > 0.3

    def _item(self, kind: int, moves: Sequence[int]) -> int:
        """The move of a kind: as often as not about the item that was last dealt with."""
        places = self._kinds[kind]
        about = next(
            (self._alphabet.moves[p].item for p in reversed(moves) if self._alphabet.moves[p].item >= 0), 0
        )
        same = [place for place in places if self._alphabet.moves[place].item == about]
        return same[0] if same and self._random.random() < 0.5 else self._random.choice(places)
