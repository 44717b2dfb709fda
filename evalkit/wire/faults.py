"""Faults: what the network or the API does instead of answering, delivered in each dialect."""

from __future__ import annotations

import msgspec

from evalkit.core.turns import Text, make_turn
from evalkit.wire.answers import Dialect, Event, Outgoing, encode_json, render
from evalkit.wire.dialects import SPOKEN
from evalkit.wire.replies import EVENT_STREAM, Reply, error_body

#: What a broken answer begins with; nobody gets to read it whole.
_BEGUN = make_turn((Text("The next step is to go through the remaining items one by one."),), "end_turn")
_JSON = ("content-type", "application/json")
#: Seconds that a rate limit asks a client to wait, and the milliseconds that the SDKs look at first.
RETRY_AFTER = (("retry-after", "1"), ("retry-after-ms", "10"))

#: Faults that only a stream can have.
STREAM_ONLY = ("cut_mid_stream", "cut_no_end", "body_error_event")


def fault_reply(dialect: Dialect, label: str, *, streamed: bool, stall_s: float = 0.0) -> Reply:
    """The answer that a fault's label stands for.

    Labels are those of :class:`~evalkit.scenarios.moves.FaultSpec`. One that only a stream can have breaks an
    answer that is not streamed within its body. ValueError for a label that is none.
    """
    said = f"fault {label}"
    if label.startswith("http_"):
        return _status(dialect, int(label.removeprefix("http_")), said)
    if label == "cut_before_headers":
        return Reply(cut="before_headers", said=said)
    out = Outgoing(_BEGUN, "msg_broken" if dialect == "anthropic" else "resp_broken")
    if not streamed:
        return _broken_body(encode_json(SPOKEN[dialect].body(out)), label, stall_s, said)
    return _broken_stream(dialect, SPOKEN[dialect].events(out), label, stall_s, said)


def _status(dialect: Dialect, status: int, said: str) -> Reply:
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
