"""Faults: what the network or the API does instead of answering, delivered in each dialect."""

from __future__ import annotations

from typing import Any

import msgspec

from evalkit.core.requests import FULL_WINDOW
from evalkit.core.turns import Text, Turn, make_turn
from evalkit.wire.answers import Event, Outgoing, encode_json, listed, mapped, render
from evalkit.wire.codecs import CODECS
from evalkit.wire.dialects import Dialect
from evalkit.wire.replies import EVENT_STREAM, Reply, error_body

#: What a broken answer begins with; nobody gets to read it whole.
_BEGUN = make_turn((Text("The next step is to go through the remaining items one by one."),), "end_turn")
_JSON = ("content-type", "application/json")
#: Seconds that a rate limit asks a client to wait, and the milliseconds that the SDKs look at first.
RETRY_AFTER = (("retry-after", "1"), ("retry-after-ms", "10"))

#: Faults that only a stream can have.
STREAM_ONLY = ("cut_mid_stream", "cut_no_end", "cut_in_call", "cut_after_call", "body_error_event")


def fault_reply(
    dialect: Dialect, label: str, *, streamed: bool, stall_s: float = 0.0, begun: Turn | None = None
) -> Reply:
    """The answer that a fault's label stands for; ``begun`` is what it breaks off.

    Labels are those of :class:`~evalkit.scenarios.moves.FaultSpec`. One that only a stream can have breaks an
    answer that is not streamed within its body. ValueError for a label that is none.
    """
    said = f"fault {label}"
    if label.startswith("http_"):
        return _status(dialect, label.removeprefix("http_"), said)
    if label == "cut_before_headers":
        return Reply(cut="before_headers", said=said)
    out = Outgoing(begun or _BEGUN, "msg_broken" if dialect == "anthropic" else "resp_broken")
    if not streamed:
        return _broken_body(encode_json(CODECS[dialect].body(out)), label, stall_s, said)
    return _broken_stream(dialect, CODECS[dialect].events(out), label, stall_s, said)


#: What the providers say of a request that does not fit: recorded of both.
_TOO_LONG = {
    "anthropic": "prompt is too long: 210042 tokens > 200000 maximum",
    "responses": "Your input exceeds the context window of this model. "
    "Please adjust your input and try again.",
    "chat": "This model's maximum context length is 200000 tokens. However, your messages resulted in 210042 "
    "tokens. Please reduce the length of the messages.",
}


def _status(dialect: Dialect, label: str, said: str) -> Reply:
    status = int(label.removesuffix(FULL_WINDOW))
    if label.endswith(FULL_WINDOW):
        code = None if dialect == "anthropic" else "context_length_exceeded"
        param = None if dialect == "anthropic" else "input" if dialect == "responses" else "messages"
        body = encode_json(error_body(dialect, status, _TOO_LONG[dialect], param=param, code=code))
        return Reply(status, (_JSON,), body, said=said)
    words = {429: "Rate limited.", 529: "Overloaded."}.get(status, "The server had an error.")
    body = encode_json(error_body(dialect, status, words))
    headers = (_JSON, *(RETRY_AFTER if status == 429 else ()))
    return Reply(status, headers, body, said=said)


def _broken_body(body: bytes, label: str, stall_s: float, said: str) -> Reply:
    whole = Reply(200, (_JSON,), body, said=said)
    if label == "stall":
        return msgspec.structs.replace(whole, cut="stall", stall_s=stall_s)
    if label == "body_malformed":
        return msgspec.structs.replace(whole, body=body[: len(body) // 2])
    if label == "cut_mid_body" or label in STREAM_ONLY:
        return msgspec.structs.replace(whole, cut="mid")
    raise ValueError(f"unknown fault {label!r}")


def _broken_stream(dialect: Dialect, events: list[Event], label: str, stall_s: float, said: str) -> Reply:
    if label in ("cut_in_call", "cut_after_call"):
        return _broken_at_call(dialect, events, label, said)
    parts = render(events)
    some, half = tuple(parts[: len(parts) // 2]), parts[len(parts) // 2]
    begun = Reply(200, (EVENT_STREAM,), stream=some, said=said)
    if label == "stall":
        return msgspec.structs.replace(begun, cut="stall", stall_s=stall_s)
    if label == "cut_mid_stream":
        return msgspec.structs.replace(begun, cut="mid")
    if label == "cut_mid_body":
        return msgspec.structs.replace(begun, stream=(*some, half[: len(half) // 2]), cut="mid")
    if label == "cut_no_end":
        return begun
    if label == "body_malformed":
        broken = half.rstrip(b"\n")[:-2] + b"\n\n"
        return msgspec.structs.replace(begun, stream=(*some, broken))
    if label == "body_error_event":
        return msgspec.structs.replace(begun, stream=(*some, *render([_error_event(dialect)])))
    raise ValueError(f"unknown fault {label!r}")


def _broken_at_call(dialect: Dialect, events: list[Event], label: str, said: str) -> Reply:
    """A stream that breaks within a call's arguments, or when the call is whole and nothing has followed."""
    parts = render(events)
    ends = [place for place, (_, data) in enumerate(events) if _in_call(dialect, data, label)]
    if not ends:
        raise ValueError(f"{label}: there is no call to break at")
    return Reply(200, (EVENT_STREAM,), stream=tuple(parts[: ends[-1] + 1]), cut="mid", said=said)


def _in_call(dialect: Dialect, data: dict[str, Any] | None, label: str) -> bool:
    """Whether an event carries a call's arguments or, for ``cut_after_call``, ends a call."""
    if data is None:
        return False
    kind = data.get("type")
    if dialect == "anthropic":
        if kind == "content_block_delta":
            return mapped(data.get("delta")).get("type") == "input_json_delta"
        return label == "cut_after_call" and kind == "content_block_stop"
    if dialect == "responses":
        if kind == "response.function_call_arguments.delta":
            return True
        done = label == "cut_after_call" and kind == "response.output_item.done"
        return done and mapped(data.get("item")).get("type") == "function_call"
    return any("tool_calls" in mapped(choice.get("delta")) for choice in listed(data.get("choices")))


def _error_event(dialect: Dialect) -> Event:
    """An error within a stream: the shapes are the recorded ones."""
    if dialect == "anthropic":
        return "error", error_body("anthropic", 529, "Overloaded.")
    body = error_body(dialect, 500, "The server had an error while processing your request.")
    if dialect == "chat":
        return None, body
    return "error", {
        "type": "error",
        "sequence_number": 3,
        "error": {**body["error"], "code": "server_error"},
    }
