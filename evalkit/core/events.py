"""What happens to a run from outside, between its turns: a later user message, a compaction, an approval."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from evalkit.core.requests import Request
from evalkit.core.tasks import occurs_whole


class UserWrites(msgspec.Struct, frozen=True, gc=False):
    """The user writes.

    ``closes``: what was asked last may still be answered, then the user is gone. ``asks`` are items (a bit
    set) that are part of the task from then on.
    """

    text: str
    closes: bool = False
    asks: int = 0


class Compacts(msgspec.Struct, frozen=True, gc=False):
    """The conversation is compacted: what stands only in it is lost, but for the prompt and the last turn.

    ``summary`` is what the model said when it was asked for one; empty where nothing was summed up.
    """

    summary: str = ""


class Approves(msgspec.Struct, frozen=True, gc=False):
    """A person approves gated items (a bit set); none is a refusal to approve.

    ``refused`` are items whose calls are refused, ``changed`` pairs of an id and the one put in its place,
    ``message`` what the person says to it.
    """

    items: int = 0
    refused: int = 0
    changed: tuple[tuple[str, str], ...] = ()
    message: str = ""


class Crashed(Exception):
    """The script kills the harness here; what it knew outside of its memory is all that is left of it."""


Event: TypeAlias = UserWrites | Compacts | Approves


def with_words(request: Request, events: tuple[Event, ...]) -> Request:
    """A request that carries what the user wrote besides; one that does is no repetition of another."""
    words = [event.text for event in events if isinstance(event, UserWrites)]
    if not words:
        return request
    text = "\n".join(words if request.text is None else [request.text, *words])
    return msgspec.structs.replace(request, text=text, again=False)


def summary_text(done: tuple[str, ...], still_open: tuple[str, ...], words: tuple[str, ...] = ()) -> str:
    """A faithful summary of a conversation: what it shows as done, what as open, and the user's words."""
    parts = ["Summary of the work so far."]
    parts.extend(f"The user wrote: {text}" for text in words)
    parts.append(f"Done: {', '.join(done) or 'nothing'}.")
    parts.append(f"Open: {', '.join(still_open) or 'nothing'}.")
    return "\n".join(parts)


#: How a text shows items as done: a list after "Done:", or one item that "is done".
_DONE_LIST = re.compile(r"(?:^|\n)\s*(?:done|completed):(?P<names>[^\n]*)", re.IGNORECASE)
_IS_DONE = r"(?:: done\b| is done\b| are done\b)"


def shown_done(text: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that a user's words or a summary show as done."""
    lists = " ".join(found["names"] for found in _DONE_LIST.finditer(text))
    return tuple(
        name
        for name in names
        if occurs_whole(name, lists) or re.search(rf"(?<![\w./-]){re.escape(name)}{_IS_DONE}", text)
    )
