"""What a model delivers: blocks, and the turn they make up."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import msgspec

StopReason: TypeAlias = Literal[
    "end_turn",
    "tool_use",
    "pause_turn",
    "compaction",
    "max_tokens",
    "context_window",
    "refusal",
    "stop_sequence",
    "in_progress",
    "failed",
    "cancelled",
    "unknown",
]
STOP_REASONS: frozenset[str] = frozenset(StopReason.__args__)  # type: ignore[attr-defined]

#: A refusal by OpenAI's content filter, which that API tells apart from the model's own.
CONTENT_FILTER = "content_filter"

#: What an ideal reader reads in a turn's words.
Claim: TypeAlias = Literal["none", "partial", "blocked", "done"]

#: How a loop has to treat a turn; content wins over a label that contradicts it.
Kind: TypeAlias = Literal["content", "pause", "cut_off", "refusal", "unknown", "failed", "in_progress"]


class Text(msgspec.Struct, frozen=True, gc=False, tag="text"):
    """Words for the user; ``phase`` is the Responses API's ``commentary`` or ``final_answer``."""

    text: str
    phase: str | None = None


class Thinking(msgspec.Struct, frozen=True, gc=False, tag="thinking"):
    """Reasoning or a progress display; not an answer."""

    text: str


class Call(msgspec.Struct, frozen=True, gc=False, tag="call"):
    """A client tool call. ``arguments`` is JSON as the model wrote it; of a cut call it may not parse."""

    id: str
    tool: str
    arguments: str


class ServerCall(msgspec.Struct, frozen=True, gc=False, tag="server_call"):
    """A tool the provider runs; ``result`` is None while it is in flight."""

    id: str
    name: str
    result: str | None = None


Block: TypeAlias = Text | Thinking | Call | ServerCall


class Finish(msgspec.Struct, frozen=True, gc=False):
    """A report of what was completed and skipped, by the finish tool or in words."""

    completed: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    reason: str = ""


class Turn(msgspec.Struct, frozen=True, gc=False):
    """One model response. Make it with :func:`make_turn`, which fills the derived fields.

    ``native`` is the provider's own stop label, ``category`` a refusal's. ``claim`` and ``told`` are what an
    ideal reader of the words would read; only verifiers and folds that declare it look at them.
    ``runnable`` are the calls whose arguments parse. ``tokens`` is its output by :func:`count_tokens`.
    """

    content: tuple[Block, ...]
    stop: StopReason
    native: str | None = None
    category: str | None = None
    claim: Claim = "none"
    told: Finish | None = None
    calls: tuple[Call, ...] = ()
    runnable: tuple[Call, ...] = ()
    text: str = ""
    kind: Kind = "content"
    tokens: int = 0

    @property
    def is_no_turn(self) -> bool:
        """Whether this answer is none: a fault, or a poll of what is still in progress (D1.3)."""
        return self.kind == "failed" or self.kind == "in_progress"


@lru_cache(maxsize=8192)
def count_tokens(text: str) -> int:
    """Tokens of a text in scripted runs, by evalkit's stated counter: UTF-8 bytes over 4, rounded up."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) // 4


@lru_cache(maxsize=8192)
def parse_arguments(arguments: str) -> Mapping[str, Any] | None:
    """The arguments of a call as an object; None where they are not valid JSON or not an object.

    Answers are shared between callers: they are values, never to be changed.
    """
    try:
        value = _decode_object(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if type(value) is dict else None


def read_finish(arguments: str) -> Finish:
    """The finish that a call's arguments say. What is not of the tool's shape says nothing."""
    value = parse_arguments(arguments)
    if value is None:
        return Finish()
    reason = value.get("reason_skipped")
    return Finish(
        _names(value.get("items_completed")),
        _names(value.get("items_skipped")),
        reason if isinstance(reason, str) else "",
    )


def _names(value: object) -> tuple[str, ...]:
    return tuple(name for name in value if isinstance(name, str)) if isinstance(value, list) else ()


_decode_object = msgspec.json.Decoder().decode


def _tokens_of(block: Block) -> int:
    if isinstance(block, Call):
        return count_tokens(block.tool) + count_tokens(block.arguments)
    if isinstance(block, ServerCall):
        return count_tokens(block.name) + count_tokens(block.result or "")
    return count_tokens(block.text)


_KINDS: dict[str, Kind] = {
    "max_tokens": "cut_off",
    "context_window": "cut_off",
    "refusal": "refusal",
    "unknown": "unknown",
    "failed": "failed",
    "cancelled": "failed",
    "in_progress": "in_progress",
}


def make_turn(
    content: tuple[Block, ...],
    stop: StopReason,
    *,
    native: str | None = None,
    category: str | None = None,
    claim: Claim = "none",
    told: Finish | None = None,
) -> Turn:
    """Build a turn and what follows from its content.

    A pause label over complete client calls is a tool turn (``kind`` content): a paused turn has no client
    action pending. All other labels that name a protocol state decide the kind.
    """
    calls = tuple(block for block in content if type(block) is Call)
    kind: Kind = _KINDS.get(stop, "content")
    if stop in ("pause_turn", "compaction") and not calls:
        kind = "pause"
    return Turn(
        content=content,
        stop=stop,
        native=native,
        category=category,
        claim=claim,
        told=told,
        calls=calls,
        runnable=tuple(call for call in calls if parse_arguments(call.arguments) is not None),
        text="\n".join(block.text for block in content if type(block) is Text),
        kind=kind,
        tokens=sum(map(_tokens_of, content)),
    )
