"""What a recorded turn claims: by its finish call, or as :mod:`~evalkit.strategies.claim_reader` reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from evalkit.core.turns import Claim, Turn
from evalkit.strategies.claim_reader import Reading, read_claim
from evalkit.transcripts.recording import bare_name, finishes

__all__ = ["ClaimReader", "Reading", "claim_of", "read_claim"]

#: Reads what a turn claims. A live verifier has this shape too.
ClaimReader: TypeAlias = Callable[[Turn], Claim]


def words_of(turn: Turn) -> str:
    """The words by which a turn claims, as the rules found them; the call where it is one."""
    for call in turn.calls:
        if finishes(call):
            return f"a call of {bare_name(call.tool)}"
    return read_claim(turn.text).words


def claim_of(turn: Turn) -> Claim:
    """The claim of a recorded turn, by the rules. Its thinking is not read: nobody was told it."""
    if any(finishes(call) for call in turn.calls):
        return "done"
    if turn.kind in ("cut_off", "refusal", "failed"):
        return "none"
    return read_claim(turn.text).claim
