"""Turns of the assistant that stand in a request and that the model never said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from evalkit.core.turns import Call, Text, Turn, parse_arguments
from evalkit.wire.answers import encode_json
from evalkit.wire.conversation import said
from evalkit.wire.incoming import Piece


class Spoken:
    """What the model has said so far. A turn that leaves something out of it is not invented."""

    def __init__(self) -> None:
        self._texts: dict[str, None] = {}
        self._calls: set[str] = set()
        self._known: set[str] = set()

    def delivered(self, turn: Turn) -> None:
        """The model said a turn."""
        text = _flat(turn.text)
        if text:
            self._texts[text] = None
            self._known.update(map(_flat, (turn.text, *turn.text.splitlines())))
        self._calls.update(map(_call, turn.calls))
        # A call that was cut in its JSON can only be sent back empty, where a dialect takes no other.
        self._calls.update(f"{call.tool} {{}}" for call in turn.calls if call not in turn.runnable)

    def invented(self, pieces: Sequence[Piece]) -> Iterator[str]:
        """The words of each message that holds what was never said; each is told once."""
        for _, group in groupby(said(pieces), key=lambda piece: (piece.role, piece.at)):
            message = list(group)
            if message[0].role != "assistant":
                continue
            strange = list(self._strange(message))
            if strange:
                self._known.update(strange)
                yield strange[0]

    def _strange(self, message: Iterable[Piece]) -> Iterator[str]:
        for piece in message:
            block = piece.block
            if isinstance(block, Text):
                text = _flat(block.text)
                if text not in self._known and not any(text in whole for whole in self._texts):
                    yield text
            elif isinstance(block, Call):
                call = _call(block)
                if call not in self._calls and call not in self._known:
                    yield call


def _flat(text: str) -> str:
    return " ".join(text.split())


def _call(call: Call) -> str:
    values = parse_arguments(call.arguments)
    return f"{call.tool} {call.arguments if values is None else encode_json(values).decode()}"
