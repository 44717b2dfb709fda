"""What a request holds that a summary of it is made from."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.core.requests import Result
from evalkit.core.turns import Call, Text
from evalkit.wire.conversation import Memory
from evalkit.wire.incoming import Incoming


def answered_calls(incoming: Incoming, memory: Memory) -> Iterator[tuple[Call, Result]]:
    """The calls in a request that it holds a result of, as the script made them."""
    calls = {p.block.id: p.block for p in incoming.pieces if isinstance(p.block, Call)}
    for held in memory.turns:
        sent = zip(held.sent.wire.calls, held.sent.turn.calls, strict=True)
        calls.update({wire.id: own for wire, own in sent})
    for piece in incoming.pieces:
        if isinstance(piece.block, Result) and piece.block.id in calls:
            yield calls[piece.block.id], piece.block


def told_words(incoming: Incoming, summaries: tuple[str, ...]) -> str:
    """The words in a request that tell the model what was done: the user's, and summaries."""
    texts = ((piece.role, piece.block.text) for piece in incoming.pieces if isinstance(piece.block, Text))
    return "\n".join(
        text for role, text in texts if role == "user" or any(summary in text for summary in summaries)
    )
