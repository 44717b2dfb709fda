"""Requests of the Messages API: read by the server, and written for a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Text
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.anthropic_messages.answers import read_blocks
from evalkit.wire.incoming import Incoming, Piece, Role, schema_in, shape

#: Tools that the API runs itself, by how their types begin; others of its own (bash, memory) the client runs.
_SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search", "advisor")
THREADS_BETA = "message-threads-2026-08-12"


def read(body: Mapping[str, Any]) -> Incoming:
    """Read the body of ``POST /v1/messages``; BadRequest where it is not of the API's shape."""
    thread = mapped(body.get("thread"))
    continues = thread.get("previous_message_id") if thread.get("type") == "continue" else None
    messages = body.get("messages")
    if not isinstance(messages, list):
        raise shape("messages_missing", "messages: Field required", "messages")
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or isinstance(limit, bool):
        raise shape("max_tokens_missing", "max_tokens: Field required", "max_tokens")
    if not isinstance(body.get("model"), str):
        raise shape("model_missing", "model: Field required", "model")
    pieces: list[Piece] = []
    for at, message in enumerate(messages):
        _read_message(message, at, pieces)
    choice = mapped(body.get("tool_choice"))
    return Incoming(
        pieces=tuple(pieces),
        model=body["model"],
        limit=limit,
        tools=tuple(str(tool.get("name")) for tool in listed(body.get("tools")) if isinstance(tool, dict)),
        stream=body.get("stream") is True,
        continues=str(continues) if continues is not None else None,
        schema=schema_in(body, "output_config", "format", "schema")
        or schema_in(body, "output_format", "schema"),
        choice=_choice(choice),
        system=text_in(body.get("system")),
        server_tools=bool(body.get("mcp_servers"))
        or any(str(mapped(tool).get("type")).startswith(_SERVER_TOOLS) for tool in listed(body.get("tools"))),
    )


def _choice(choice: dict[str, Any]) -> str:
    kind = str(choice.get("type") or "auto")
    return {"any": "required", "tool": str(choice.get("name"))}.get(kind, kind)


def _read_message(message: Any, at: int, pieces: list[Piece]) -> None:
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise shape(
            "message_shape", f"messages.{at}: Input does not match the expected shape.", f"messages.{at}"
        )
    role: Role = message["role"]
    content = message.get("content")
    if isinstance(content, str):
        pieces.append(Piece(role, Text(content), at))
        return
    if not isinstance(content, list):
        if role == "system":
            return
        raise shape("message_shape", f"messages.{at}.content: Field required", f"messages.{at}")
    if role == "assistant":
        blocks = read_blocks([block for block in content if isinstance(block, dict)])
        pieces.extend(Piece(role, block, at) for block in blocks)
        return
    for block in content:
        kind = mapped(block).get("type")
        if kind == "tool_result":
            result = Result(
                str(block.get("tool_use_id")), text_in(block.get("content")), bool(block.get("is_error"))
            )
            pieces.append(Piece(role, result, at))
        elif kind == "text":
            pieces.append(Piece(role, Text(str(block.get("text") or "")), at))


# Writing


def user(results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
    """The messages that answer a turn: results first, the text after them."""
    content: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": result.id,
            "content": result.text,
            **({"is_error": True} if result.error else {}),
        }
        for result in results
    ]
    if text is not None:
        content.append({"type": "text", "text": text})
    return [{"role": "user", "content": content}] if content else []


def assistant(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The message that sends an answer back."""
    return [{"role": "assistant", "content": raw}] if raw else []


def tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a tool."""
    return {"name": name, "description": description, "input_schema": schema}
