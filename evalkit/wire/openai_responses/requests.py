"""Requests of the Responses API: read by the server, and written for a client."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Text
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.incoming import Incoming, Piece, schema_in, shape
from evalkit.wire.openai_responses.answers import CLIENT_ITEMS, read_items
from evalkit.wire.openai_responses.compaction import summary_in

#: Tools that the API runs itself, by how their types begin.
_SERVER_TOOLS = ("web_search", "file_search", "code_interpreter", "image_generation", "mcp", "tool_search")
_OUTPUTS = ("function_call_output", "custom_tool_call_output", *(f"{kind}_output" for kind in CLIENT_ITEMS))


def read(body: Mapping[str, Any]) -> Incoming:
    """Read the body of ``POST /v1/responses``; BadRequest where it is not of the API's shape."""
    if not isinstance(body.get("model"), str):
        raise shape("model_missing", "Missing required parameter: 'model'.", "model")
    given = body.get("input", [])
    if not isinstance(given, str | list):
        raise shape("input_shape", "Invalid type for 'input': expected a string or an array.", "input")
    pieces: list[Piece] = []
    if isinstance(given, str):
        pieces.append(Piece("user", Text(given), 0))
    else:
        for at, item in enumerate(given):
            _read_item(item, at, pieces)
    limit = body.get("max_output_tokens")
    previous = body.get("previous_response_id")
    return Incoming(
        pieces=tuple(pieces),
        model=body["model"],
        limit=limit if isinstance(limit, int) and not isinstance(limit, bool) else None,
        tools=tuple(
            str(mapped(tool).get("name") or mapped(tool).get("type")) for tool in listed(body.get("tools"))
        ),
        stream=body.get("stream") is True,
        continues=str(previous) if previous is not None else None,
        background=body.get("background") is True,
        schema=schema_in(body, "text", "format", "schema"),
        choice=_choice(body.get("tool_choice")),
        system=text_in(body.get("instructions")),
        server_tools=any(
            str(mapped(tool).get("type")).startswith(_SERVER_TOOLS) for tool in listed(body.get("tools"))
        ),
    )


def _choice(choice: Any) -> str:
    if isinstance(choice, str):
        return choice
    return str(mapped(choice).get("name") or mapped(choice).get("mode") or "auto")


def _read_item(item: Any, at: int, pieces: list[Piece]) -> None:
    if not isinstance(item, dict):
        raise shape("item_shape", f"Invalid type for 'input[{at}]': expected an object.", f"input[{at}]")
    role, kind = item.get("role"), item.get("type", "message")
    if kind == "compaction":
        pieces.append(Piece("user", Text(summary_in(item)), at))
    elif role == "assistant" or kind not in ("message", *_OUTPUTS):
        content = item.get("content")
        if isinstance(content, str):
            item = {**item, "type": "message", "content": [{"type": "output_text", "text": content}]}
        blocks, _ = read_items([{**item, "type": item.get("type", "message")}])
        pieces.extend(Piece("assistant", block, at) for block in blocks)
    elif kind in _OUTPUTS:
        # The output of a local shell names its call by ``id``.
        result = Result(str(item.get("call_id") or item.get("id")), text_in(item.get("output")))
        pieces.append(Piece("user", result, at))
    else:
        said = Text(text_in(item.get("content")))
        pieces.append(Piece("user" if role == "user" else "system", said, at))


# Writing


def user(results: Sequence[Result], text: str | None) -> list[dict[str, Any]]:
    """The items that answer a turn. The API has no mark for an output that is an error."""
    items: list[dict[str, Any]] = [
        {"type": "function_call_output", "call_id": result.id, "output": result.text} for result in results
    ]
    if text is not None:
        items.append({"role": "user", "content": text})
    return items


def tool(name: str, description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The definition of a tool."""
    return {
        "type": "function",
        "name": name,
        "description": description,
        "parameters": schema,
        "strict": True,
    }
