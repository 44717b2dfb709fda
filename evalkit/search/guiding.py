"""Which script to try next, guided by what was seen, so that bugs that need several moves are found.

Two things count as progress. *New answers*: an ending, or what the harness made of a kind of turn after its
answer before, that no run showed yet; the moves that led there are kept and gone on from. *New orders*: each
pair and each triple of kinds of moves that were delivered in an order, whatever lay between; bugs hide in
orders, and a long run holds many. A kind that ended runs where it stood is put last.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from random import Random

from evalkit.search.trials import Alphabet, Script, Tried

#: So many kinds are weighed against each other for each place of a script.
_WEIGHED = 24
#: What a pair in a new order counts for against a triple.
_PAIR = 8
#: Nudges in a row after which most harnesses give up.
_NUDGES = 3


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
        self._ended = [0] * len(self._kinds)
        self._nudged = [0] * len(self._kinds)

    # What was seen

    def learn(self, tried: Tried) -> None:
        """Take note of a run: what is new in it is gone on from."""
        moves = tried.script.moves
        kinds = [self._kind[place] for place in moves]
        self._pairs.update(combinations(kinds, 2))
        self._triples.update(combinations(kinds, 3))
        ended = tried.turns <= self._alphabet.turns(moves)
        before = ""
        for at, (kind, answer) in enumerate(zip(kinds, self._answers(tried), strict=False)):
            last = ended and at == len(kinds) - 1
            self._made[kind] += 1
            self._ended[kind] += last
            self._nudged[kind] += answer.startswith("nudged")
            if self._is_new((before, str(kind), answer)) and not last:
                self._corpus.setdefault(moves[: at + 1], 0)
            before = answer
        if self._is_new(("ends", tried.episode.outcome, tried.episode.native)) and not ended:
            self._corpus.setdefault(moves, 0)

    def _is_new(self, what: tuple[str, ...]) -> bool:
        new = what not in self._seen
        self._seen.add(what)
        return new

    def _answers(self, tried: Tried) -> list[str]:
        """What the harness made of each move's turn, items left out; nothing for what is no turn."""
        steps = [step for step in tried.kept.exchanges if step.number]
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
        moves: list[int] = []
        if self._corpus and choose.random() < 0.5:
            fewest = min(self._corpus.values())
            start = choose.choice([known for known, times in self._corpus.items() if times <= fewest + 1])
            self._corpus[start] += 1
            moves = list(start)
        elif self._alphabet.listing is not None and choose.random() < 0.6:
            moves = [self._alphabet.listing]
        length = min(self._longest, len(moves) + choose.choice((4, 8, 12, 16, 24)))
        nudged = 0
        while len(moves) < length:
            kind = self._next(moves, last=len(moves) == length - 1, tired=nudged >= _NUDGES)
            moves.append(self._item(kind, moves))
            if self._is_nudged(kind):
                nudged += 1
            elif self._alphabet.works(moves[-1]) and moves[-1] not in moves[:-1]:
                nudged = 0
        return self._alphabet.script(tuple(moves), for_ever=choose.random() < 0.05)

    def _next(self, moves: Sequence[int], *, last: bool, tired: bool) -> int:
        """The kind of the next move: that which makes most of the new orders, chance aside."""
        before = [self._kind[place] for place in moves]
        pairs = list(combinations(before, 2))
        best, most = 0, -1.0
        for kind in self._random.sample(range(len(self._kinds)), min(_WEIGHED, len(self._kinds))):
            new = _PAIR * sum((other, kind) not in self._pairs for other in set(before))
            new += sum((*pair, kind) not in self._triples for pair in set(pairs))
            weight = (new + 1) * self._random.uniform(0.5, 1)
            if not last:
                weight *= (1 - self._rate(self._ended, kind)) ** 3
            if tired and self._is_nudged(kind):
                weight *= 0.1
            if weight > most:
                best, most = kind, weight
        return best

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
