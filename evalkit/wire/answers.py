"""What goes over the wire in any dialect: a turn on its way out, and an answer as it was read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec

from evalkit.core.requests import FIRST_MODEL
from evalkit.core.turns import Block, Call, ServerCall, Turn, make_turn

#: The time stamp in every answer: answers are canonical, so that equal episodes are equal on the wire.
CREATED = 1_767_225_600

#: One event of a stream: its name (None where the dialect names none) and its data.
Event: TypeAlias = tuple[str | None, dict[str, Any]]


class Outgoing(msgspec.Struct, frozen=True):
    """A turn on its way out. ``turn`` has the ids of the wire, ``id`` is the answer's own.

    ``previous`` is the answer that the request continued from, where the server holds the conversation,
    ``polls`` how often a background answer was still under way.
    """

    turn: Turn
    id: str
    model: str = FIRST_MODEL
    input_tokens: int = 0
    background: bool = False
    previous: str | None = None
    limit: int | None = None
    polls: int = 0


class Answer(msgspec.Struct, frozen=True):
    """A provider's answer, read. ``raw`` is what a request sends back for it.

    ``error`` is the provider's own name of an error; ``turn.kind`` is then ``failed``. ``input_tokens`` hold
    those read from a cache and written to one, ``output_tokens`` the thinking. ``counted``: the provider told
    its usage.
    """

    turn: Turn
    id: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    error: str = ""
    raw: Any = None
    cache_read: int = 0
    cache_written: int = 0
    thinking: int = 0
    counted: bool = True


#: Where the finish markers of a stream are kept; no field of any API.
MARKERS = "finish_markers"


def markers_said(body: Mapping[str, Any], label: object) -> str:
    """A provider's label, the last that a stream gave; all of them where they contradict each other."""
    labels = list(dict.fromkeys(body.get(MARKERS) or ()))
    if len(labels) > 1:
        return ", then ".join(labels)
    return label if isinstance(label, str) else "null"


class BrokenStream(Exception):
    """A stream that is no answer: it ended too soon, or an error came in it."""

    def __init__(self, label: str, error: str = "") -> None:
        super().__init__(f"{label}: {error}" if error else label)
        self.label = label
        self.error = error


def failed(label: str, error: str = "") -> Answer:
    """The answer that is no turn; ``label`` says what came instead."""
    return Answer(make_turn((), "failed", native=label), error=error)


def with_ids(turn: Turn, prefix: str, serial: int) -> tuple[Turn, dict[str, str]]:
    """A turn with ids that no other turn of the episode has, and the way back to its own ids."""
    back: dict[str, str] = {}
    blocks: list[Block] = []
    for place, block in enumerate(turn.content):
        if isinstance(block, Call):
            name = f"{prefix}_{serial:06d}_{place}"
            back[name] = block.id
            blocks.append(Call(name, block.tool, block.arguments))
        elif isinstance(block, ServerCall):
            name = f"srv{prefix}_{serial:06d}_{place}"
            back[name] = block.id
            blocks.append(ServerCall(name, block.name, block.result))
        else:
            blocks.append(block)
    return rebuilt(turn, tuple(blocks)), back


def rebuilt(turn: Turn, content: tuple[Block, ...]) -> Turn:
    """The turn with other blocks."""
    return make_turn(
        content, turn.stop, native=turn.native, category=turn.category, claim=turn.claim, told=turn.told
    )


def encode_json(value: Any) -> bytes:
    """JSON bytes; lone surrogates, which JSON can say only escaped, included."""
    try:
        return msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode()


def render(events: Iterable[Event]) -> list[bytes]:
    """Server-sent events, each as the bytes that carry it."""
    rendered = []
    for name, data in events:
        head = f"event: {name}\n".encode() if name else b""
        rendered.append(head + b"data: " + encode_json(data) + b"\n\n")
    return rendered


def pieces_of(text: str) -> tuple[str, ...]:
    """A text as a stream brings it: in parts."""
    if len(text) < 8:
        return (text,) if text else ()
    half = len(text) // 2
    return text[:half], text[half:]


def text_in(value: Any) -> str:
    """The words in whatever a provider puts where a text may stand: a string, or a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        for key in ("text", "title", "stdout", "content", "output", "thinking", "refusal"):
            if value.get(key):
                return text_in(value[key])
        return ""
    if isinstance(value, list | tuple):
        return "\n".join(said for said in map(text_in, value) if said)
    return ""


def listed(value: Any) -> list[Any]:
    """A value where a list is expected; anything else is an empty one."""
    return value if isinstance(value, list) else []


def mapped(value: Any) -> dict[str, Any]:
    """A value where an object is expected; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> int:
    """A count; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
