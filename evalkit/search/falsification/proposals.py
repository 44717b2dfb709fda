"""What is kept from one search for the next, and how a script that breaks something is made small."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from evalkit.search.falsification.trials import Alphabet, OutOfBudget, Script


def make_small(script: Script, alphabet: Alphabet, breaks: Callable[[Script], bool]) -> tuple[Script, bool]:
    """The smallest script found that still breaks something, and whether nothing smaller was left to try.

    Moves are left out, many at a time and then one by one; two of one kind become one that is about no single
    item; moves are made plainer, and plainer ones put first. ``breaks`` raises OutOfBudget to stop it.
    """
    with contextlib.suppress(OutOfBudget):
        while True:
            smaller = next((one for one in _smaller(script, alphabet) if breaks(one)), None)
            if smaller is None:
                return script, True
            script = smaller
    return script, False


def _smaller(script: Script, alphabet: Alphabet) -> Iterator[Script]:
    """Scripts that are smaller than one, the smallest first as far as it is worth it."""
    moves = script.moves
    if script.for_ever:
        yield Script.of(moves)
    size = len(moves) // 2
    while size:
        for at in range(len(moves) - size, -1, -1):
            yield alphabet.script((*moves[:at], *moves[at + size :]), script.for_ever)
        size //= 2
    for first, second in combinations(range(len(moves)), 2):
        if alphabet.is_alike(moves[first], moves[second]):
            rest = moves[:first] + moves[first + 1 : second]
            for place in alphabet.of_no_item:
                yield alphabet.script((*rest, place, *moves[second + 1 :]), script.for_ever)
    for at, place in enumerate(moves):
        for plainer in alphabet.plainer(place):
            yield alphabet.script((*moves[:at], plainer, *moves[at + 1 :]), script.for_ever)
    for at, (one, other) in enumerate(pairwise(moves)):
        if other < one:
            yield alphabet.script((*moves[:at], other, one, *moves[at + 2 :]), script.for_ever)


class Memory:
    """The smallest scripts that were found, in Hypothesis' example database, by harness and property.

    Without a folder nothing is kept.
    """

    def __init__(self, folder: Path | None, alphabet: Alphabet, harness: str) -> None:
        from hypothesis.database import DirectoryBasedExampleDatabase

        self.database: Any = None if folder is None else DirectoryBasedExampleDatabase(folder)
        self._places = {move.name: place for place, move in enumerate(alphabet.moves)}
        self._alphabet = alphabet
        self._harness = harness

    def key(self, about: str) -> bytes:
        """Where something about this harness is kept."""
        text = f"{self._harness}\n{about}".encode()
        return b"evalkit.falsify/1 " + hashlib.blake2b(text, digest_size=16).digest()

    def known(self, about: str) -> list[Script]:
        """What was found before, as far as the model still has these moves."""
        found = []
        for raw in self._raw(about):
            names, for_ever = json.loads(raw)
            if all(name in self._places for name in names):
                found.append(Script.of(tuple(self._places[name] for name in names), for_ever))
        return sorted(found)

    def keep(self, about: str, script: Script | None) -> None:
        """Keep a script in the place of what was found before; None forgets that."""
        if self.database is None:
            return
        key = self.key(about)
        for raw in self._raw(about):
            self.database.delete(key, raw)
        if script is not None:
            names = [self._alphabet.moves[place].name for place in script.moves]
            self.database.save(key, json.dumps([names, script.for_ever]).encode())

    def _raw(self, about: str) -> list[bytes]:
        return [] if self.database is None else list(self.database.fetch(self.key(about)))
