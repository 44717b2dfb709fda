"""A request body of any dialect in common terms: who said what, and what was asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Text

Role: TypeAlias = Literal["system", "user", "assistant"]


class Piece(msgspec.Struct, frozen=True, gc=False):
    """One thing in a request: a block of an assistant turn, a user's text, or a result.

    ``at`` is the index of the message or input item that holds it.
    """

    role: Role
    block: Block | Result
    at: int


class Incoming(msgspec.Struct, frozen=True):
    """A request, read.

    ``limit`` is the output limit, None where the request sets none. ``continues`` is the answer whose
    conversation the server holds and this request goes on with. ``schema`` is a structured output asked for.
    ``choice`` is the tool choice: ``auto``, ``none``, ``required``, or a tool's name. ``server_tools``: it
    offers tools that the API runs itself.
    """

    pieces: tuple[Piece, ...]
    model: str = ""
    limit: int | None = None
    tools: tuple[str, ...] = ()
    stream: bool = False
    continues: str | None = None
    background: bool = False
    schema: Mapping[str, Any] | None = None
    choice: str = "auto"
    system: str = ""
    server_tools: bool = False


class BadRequest(Exception):
    """A request that the API refuses.

    ``status`` and ``code`` are the API's; ``param`` names the part of the request that is wrong.
    """

    def __init__(
        self,
        rule: str,
        message: str,
        *,
        param: str | None = None,
        status: int = 400,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.message = message
        self.param = param
        self.status = status
        self.code = code


def shape(rule: str, message: str, param: str) -> BadRequest:
    """A body that is not of the API's shape."""
    return BadRequest(rule, message, param=param)


def parse_body(raw: bytes) -> dict[str, Any]:
    """A request body as an object; BadRequest where it is none."""
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        raise BadRequest("body_not_json", "The request body is not valid JSON.") from None
    if not isinstance(body, dict):
        raise BadRequest("body_not_object", "The request body is not a JSON object.")
    return body


def user_texts(incoming: Incoming) -> list[str]:
    """What the user says in a request, block by block."""
    return [
        piece.block.text
        for piece in incoming.pieces
        if piece.role == "user" and isinstance(piece.block, Text)
    ]


def user_text(incoming: Incoming) -> str:
    """All that the user says in a request."""
    return "\n".join(user_texts(incoming))


def last_words(incoming: Incoming) -> str:
    """What the user says in the last message of a request."""
    pieces = [piece for piece in incoming.pieces if piece.role != "system"]
    last = pieces[-1].at if pieces else 0
    return "\n".join(
        piece.block.text
        for piece in pieces
        if piece.at == last and piece.role == "user" and isinstance(piece.block, Text)
    )


def schema_in(value: Any, *path: str) -> Mapping[str, Any] | None:
    """The JSON Schema at a path of a body, if there is one."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else None
