"""Requests of the Chat Completions API: read by the server, and written for a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Call, Text
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.incoming import Incoming, Piece, schema_in, shape

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


def read(body: Mapping[str, Any]) -> Incoming:
    """Read the body of ``POST /v1/chat/completions``; BadRequest where it is not of the API's shape."""
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise shape("messages_missing", "Missing required parameter: 'messages'.", "messages")
    if not isinstance(body.get("model"), str):
        raise shape("model_missing", "you must provide a model parameter", "model")
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        _read_message(message, at, pieces)
    limit = body.get("max_completion_tokens", body.get("max_tokens"))
    return Incoming(
        pieces=tuple(pieces),
        model=body["model"],
        limit=limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        tools=tuple(
            str(mapped(mapped(tool).get("function") or mapped(tool).get("custom")).get("name"))
            for tool in listed(body.get("tools"))
        ),
        stream=body.get("stream") is True,
        schema=schema_in(body, "response_format", "json_schema", "schema"),
        choice=_choice(body.get("tool_choice")),
        system="\n".join(
            piece.block.text for piece in pieces if piece.role == "system" and isinstance(piece.block, Text)
        ),
    )


def _choice(choice: Any) -> str:
    if isinstance(choice, str):
        return choice
    return str(mapped(mapped(choice).get("function")).get("name") or "auto")


def _read_message(message: Any, at: int, pieces: list[Piece]) -> None:
    role = mapped(message).get("role")
    if role not in _ROLES:
        raise shape("message_shape", f"Invalid value: {role!r}. Supported values are: {', '.join(_ROLES)}.",
                    f"messages[{at}].role")  # fmt: skip
    said = text_in(message.get("content"))
    if role == "assistant":
        if said:
            pieces.append(Piece("assistant", Text(said), at))
        for call in listed(message.get("tool_calls")):
            function = mapped(mapped(call).get("function"))
            block = Call(
                str(mapped(call).get("id")), str(function.get("name")), str(function.get("arguments") or "{}")
            )
            pieces.append(Piece("assistant", block, at))
    elif role == "tool":
        if not message.get("tool_call_id"):
            where = f"messages[{at}].tool_call_id"
            raise shape("tool_without_id", f"Missing required parameter: '{where}'.", where)
        pieces.append(Piece("user", Result(str(message.get("tool_call_id")), said), at))
    elif role == "user":
        pieces.append(Piece("user", Text(said), at))
    else:
        pieces.append(Piece("system", Text(said), at))


# Writing


def user(results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
    """The messages that answer a turn. The API has no mark for a result that is an error."""
    messages = [{"role": "tool", "tool_call_id": result.id, "content": result.text} for result in results]
    if text is not None:
        messages.append({"role": "user", "content": text})
    return messages


def tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a tool."""
    function = {"name": name, "description": description, "parameters": schema}
    return {"type": "function", "function": function}
