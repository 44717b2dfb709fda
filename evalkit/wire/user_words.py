"""The user's words on their way to the model: which were said, and in which requests they stood."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.core.requests import Result
from evalkit.core.turns import Text
from evalkit.wire.incoming import Piece


def _folded(text: str) -> str:
    """A text without the white space that clients add and take away."""
    return " ".join(text.split())


class _Said:
    """One message of the user's: the first and the last request in which it stood, counted from 1."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.folded = _folded(text)
        self.first = 0
        self.last = 0
        #: How many requests there had been when a request for a summary held it; -1: none did.
        self.summed = -1

    @property
    def place(self) -> str:
        """In which requests it stood."""
        if not self.first:
            return "in no request"
        return f"in request {self.first}" + (f" to {self.last}" if self.last > self.first else "")


class Words:
    """What the user has written to a harness, held against each request.

    Words may stand in any block: user text, a tool's result, a reminder. Of a conversation that the server
    holds only what a request adds is looked at; what once stood in it stands.
    """

    def __init__(self) -> None:
        self._said: list[_Said] = []
        self._requests = 0
        self._held = False

    def say(self, text: str) -> None:
        """The harness was given a message."""
        self._said.append(_Said(text))

    def look(self, pieces: Iterable[Piece], *, held: bool) -> tuple[str, ...]:
        """Look through a request; the messages that stand in it for the first time.

        ``held``: it goes on from an answer whose conversation the server holds.
        """
        self._requests += 1
        self._held = held
        if not self._said:
            return ()
        texts = [piece.block.text for piece in pieces if isinstance(piece.block, Text | Result)]
        body = _folded("\n".join(texts))
        new = []
        for said in self._said:
            stands = said.folded in body
            if stands and not said.first:
                said.first = self._requests
                new.append(said.text)
            if stands or (held and said.first):
                said.last = self._requests
        return tuple(new)

    def sum_up(self, text: str) -> tuple[str, ...]:
        """A summary is asked for with a request that holds ``text``; the messages that stand in it."""
        body = _folded(text)
        found = [said for said in self._said if said.folded in body]
        for said in found:
            said.first = said.first or max(self._requests, 1)
            said.summed = self._requests
        return tuple(said.text for said in found)

    def lost(self) -> tuple[str, ...]:
        """Messages that the compaction before the last request has lost.

        They stood in the request before, and neither in the one for the summary nor in the last.
        """
        before = self._requests - 1
        return tuple(said.text for said in self._said if said.last == before > 0 and said.summed < before)

    @property
    def any(self) -> bool:
        """Whether the user has written anything."""
        return bool(self._said)

    @property
    def places(self) -> tuple[str, ...]:
        """In which requests each message stood."""
        return tuple(said.place for said in self._said)

    @property
    def undelivered(self) -> tuple[str, ...]:
        """Messages that stood in no request."""
        return tuple(said.text for said in self._said if not said.first)

    @property
    def forgotten(self) -> tuple[str, ...]:
        """Messages that stood in a request, and neither in the last nor in one for a summary since."""
        return tuple(
            said.text
            for said in self._said
            if said.first > 0 and said.last < self._requests and said.summed < max(said.last, 1)
        )
