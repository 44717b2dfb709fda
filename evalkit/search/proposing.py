"""What Hypothesis does for a search: it proposes scripts, makes them small, remembers them."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from evalkit.search.trials import Alphabet, OutOfBudget, Script

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy


#: What a move is about, by the word of the scenario language that makes it. Each is as likely as any other,
#: however many moves there are of it; the first ones are the plainest.
_GROUPS = (
    ("say", "think", "turn", "empty", "output"),
    ("call",),
    ("work", "undo"),
    ("tick", "finish"),
    ("pause", "truncate", "refuse"),
)


def scripts(alphabet: Alphabet, longest: int) -> SearchStrategy[Script]:
    """Scripts of at most ``longest`` moves: what each is about first, then its kind, then its item.

    Every other one begins with the list of the items, without which many harnesses know nothing; one in eight
    repeats its last move for ever, which takes many turns.
    """
    from hypothesis import strategies as st

    def about(places: tuple[int, ...]) -> int:
        document = alphabet.moves[places[0]].document
        if "stop" in document:
            return len(_GROUPS) - 1  # a label that does not fit is a matter of the protocol
        return next(at for at, words in enumerate(_GROUPS) if not document.keys().isdisjoint(words))

    groups = [[places for places in alphabet.kinds if about(places) == at] for at in range(len(_GROUPS))]
    one = st.sampled_from([group for group in groups if group])
    one_move = one.flatmap(st.sampled_from).flatmap(st.sampled_from)
    listed = tuple(place for place, move in enumerate(alphabet.moves) if move.name == "lists the items")
    return st.builds(
        lambda start, moves, for_ever: Script.of((*start, *moves)[:longest], for_ever),
        st.sampled_from(((), listed)),
        st.lists(one_move, max_size=longest),
        st.sampled_from((*(False,) * 7, True)),
    )


def make_small(
    alphabet: Alphabet,
    longest: int,
    breaks: Callable[[Script], bool],
    seed: int,
    proposals: int,
    memory: Memory,
    about: str,
) -> bool:
    """Propose scripts until one breaks something, then ever smaller ones; whether it came to its end.

    ``breaks`` raises OutOfBudget to stop it.
    """
    from hypothesis import Phase, Verbosity, find, settings
    from hypothesis.errors import NoSuchExample

    ended = False
    names = "\n".join(move.name for move in alphabet.moves)
    with contextlib.suppress(OutOfBudget):
        with contextlib.suppress(NoSuchExample):
            find(
                scripts(alphabet, longest),
                breaks,
                settings=settings(
                    max_examples=proposals,
                    database=memory.database,
                    deadline=None,
                    derandomize=False,
                    phases=(Phase.reuse, Phase.generate, Phase.shrink),
                    print_blob=False,
                    verbosity=Verbosity.quiet,
                ),
                random=Random(seed),
                # Choices mean the same scripts only in the same alphabet.
                database_key=memory.key(f"{about}\n{longest}\n{names}"),
            )
        ended = True
    return ended


class Memory:
    """The smallest scripts that were found, in Hypothesis' example database, by harness and property.

    Beside them Hypothesis keeps there what it had when a search was cut short. Without a folder nothing is
    kept.
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
