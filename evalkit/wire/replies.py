"""What the server answers a request with, down to how the answer breaks."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.wire.answers import Event, encode_json, render
from evalkit.wire.dialects import Dialect
from evalkit.wire.incoming import BadRequest

#: Where an answer breaks: before it begins, within its bytes, or by falling silent; None: it is whole.
Cut: TypeAlias = Literal["before_headers", "mid", "stall"] | None


class Reply(msgspec.Struct, frozen=True):
    """An answer. ``body`` is a whole body, ``stream`` the parts of one of unknown length.

    ``turn`` is the number of the turn it delivers, 0 for none. ``stall_s`` is how long it stays silent.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    stream: tuple[bytes, ...] | None = None
    cut: Cut = None
    stall_s: float = 0.0
    turn: int = 0
    said: str = ""


def json_reply(value: Any, *, status: int = 200, said: str = "", turn: int = 0) -> Reply:
    """A JSON answer."""
    return Reply(status, (("content-type", "application/json"),), encode_json(value), said=said, turn=turn)


EVENT_STREAM = ("content-type", "text/event-stream; charset=utf-8")
DONE = b"data: [DONE]\n\n"


def stream_reply(dialect: Dialect, events: list[Event], *, said: str = "", turn: int = 0) -> Reply:
    """A streamed answer. Chat Completions ends its streams with ``[DONE]``."""
    parts = render(events)
    if dialect == "chat":
        parts.append(DONE)
    return Reply(200, (EVENT_STREAM,), stream=tuple(parts), said=said, turn=turn)


# Errors

_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_OPENAI_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "invalid_request_error",
    413: "invalid_request_error",
    429: "rate_limit_exceeded",
}


def error_body(
    dialect: Dialect, status: int, message: str, *, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error in the API's shape."""
    if dialect == "anthropic":
        kind = _ANTHROPIC_ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
        error: dict[str, Any] = {"type": kind, "message": message}
        if code is not None:
            error["details"] = {"error_code": code}
        return {"type": "error", "error": error, "request_id": "req_scripted"}
    kind = _OPENAI_ERRORS.get(status, "server_error" if status >= 500 else "invalid_request_error")
    if code is None and status == 429:
        code = "rate_limit_exceeded"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def refusal(dialect: Dialect, bad: BadRequest) -> Reply:
    """The answer to a request that breaks a rule."""
    body = error_body(dialect, bad.status, bad.message, param=bad.param, code=bad.code)
    return json_reply(body, status=bad.status, said=f"refused: {bad.rule}")
