"""The rules of requests: the neutral ones, said in each API's words, and the dialects' own.

Each rule states its evidence. A request that breaks a documented or recorded rule is answered with an error
of the API's shape; what is only assumed warns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.core.requests import Request, Result, neutral_faults
from evalkit.core.turns import Call, Turn
from evalkit.wire.conversation import Joined
from evalkit.wire.dialects import Dialect
from evalkit.wire.incoming import BadRequest, Incoming, Piece

Evidence: TypeAlias = Literal["documented", "recorded", "assumed"]


class Rule(msgspec.Struct, frozen=True):
    """A rule of one API. ``source`` says where it is documented or recorded, or why it is assumed.

    ``check`` takes the body, the request as read, and the last turn (wire ids); it returns what is wrong and
    the part of the request that is, or None.
    """

    name: str
    evidence: Evidence
    source: str
    check: Callable[[Mapping[str, Any], Incoming, Turn | None], tuple[str, str] | None]
    status: int = 400
    code: str | None = None


class Ruling(msgspec.Struct, frozen=True):
    """What the rules say of a request: the refusal, if it is one, and the warnings."""

    refused: BadRequest | None = None
    warnings: tuple[str, ...] = ()


def judge(rules: Sequence[Rule], body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Ruling:
    """Hold a request against a dialect's own rules. The first that refuses it decides."""
    warnings: list[str] = []
    for rule in rules:
        broken = rule.check(body, incoming, last)
        if broken is None:
            continue
        message, param = broken
        if rule.evidence == "assumed":
            warnings.append(rule.name)
        else:
            refused = BadRequest(rule.name, message, param=param, status=rule.status, code=rule.code)
            return Ruling(refused, tuple(warnings))
    return Ruling(None, tuple(warnings))


# The rules that are held while a request is read, or against what the server remembers

#: (dialect, rule): its evidence and source.
OTHER_RULES: dict[tuple[str, str], tuple[Evidence, str]] = {
    ("all", "body_not_json"): ("recorded", "quoted in anthropics/claude-code#77525"),
    ("all", "body_not_object"): ("documented", "API references: the body is an object"),
    ("all", "model_missing"): ("documented", "API references, model: required"),
    ("anthropic", "messages_missing"): ("documented", "API reference, messages: required"),
    ("anthropic", "max_tokens_missing"): ("documented", "API reference, max_tokens: required"),
    ("anthropic", "message_shape"): ("recorded", "'messages.0: Input does not match the expected shape.'"),
    ("anthropic", "thread_not_found"): ("documented", "API reference, thread_not_found"),
    ("anthropic", "thread_already_continued"): ("documented", "API reference, thread_already_continued"),
    ("responses", "input_shape"): ("documented", "API reference, input: a string or a list of items"),
    ("responses", "item_shape"): ("documented", "API reference, input: a string or a list of items"),
    ("responses", "previous_response_not_found"): (
        "recorded",
        "quoted in router-for-me/CLIProxyAPI#2954",
    ),
    ("chat", "messages_missing"): ("documented", "API reference, messages: required"),
    ("chat", "message_shape"): ("documented", "API reference, messages: the roles there are"),
    ("chat", "tool_without_id"): ("documented", "API reference, tool message: tool_call_id is required"),
}

# The neutral rules

#: Where each neutral rule is said to hold; all are documented by both providers.
NEUTRAL_SOURCES: dict[str, str] = {
    "call_without_result": "platform.claude.com/docs: tool use, 'Handle tool calls'; "
    "developers.openai.com/api/docs/guides/function-calling",
    "result_without_call": "platform.claude.com/docs: tool use, 'Handle tool calls'; "
    "developers.openai.com/api/docs/guides/function-calling",
    "result_twice": "platform.claude.com/docs: tool use, 'Handle tool calls'",
    "pause_changed": "platform.claude.com/docs: stop reasons, pause_turn ('provide the response back as-is')",
    "pause_followed": "platform.claude.com/docs: server tools, 'Continue a paused turn'",
}


def neutral(previous: Turn | None, joined: Joined) -> tuple[str, ...]:
    """The neutral rules that a request breaks: at its join, or anywhere in a conversation of its own."""
    if joined.complete:
        return _pairs(joined.pieces)
    if joined.kind in ("again", "same_answer"):
        return ()
    request: Request = joined.request
    if previous is None or not (previous.calls or previous.kind == "pause" or request.results):
        return ()
    return neutral_faults(previous, request)


def _pairs(pieces: Sequence[Piece]) -> tuple[str, ...]:
    """The rules on calls and results over a whole conversation."""
    called = [piece.block.id for piece in pieces if isinstance(piece.block, Call)]
    given = [piece.block.id for piece in pieces if isinstance(piece.block, Result)]
    faults = []
    if set(called) - set(given):
        faults.append("call_without_result")
    if set(given) - set(called):
        faults.append("result_without_call")
    if len(set(given)) != len(given):
        faults.append("result_twice")
    return tuple(faults)


_SAID: dict[Dialect, dict[str, str]] = {
    "anthropic": {
        "call_without_result": "`tool_use` ids were found without `tool_result` blocks immediately after: "
        "{id}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
        "result_without_call": "unexpected `tool_use_id` found in `tool_result` blocks: {id}. "
        "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
        "result_twice": "each tool_use must have a single result. Found several for {id}",
        "pause_changed": "a paused turn must be sent back unchanged",
        "pause_followed": "a paused turn must be the last message",
    },
    "responses": {
        "call_without_result": "No tool output found for function call {id}.",
        "result_without_call": "No tool call found for function call output with call_id {id}.",
        "result_twice": "Duplicate tool output for function call {id}.",
    },
    "chat": {
        "call_without_result": "An assistant message with 'tool_calls' must be followed by tool messages "
        "responding to each 'tool_call_id'. "
        "The following tool_call_ids did not have response messages: {id}",
        "result_without_call": "Invalid parameter: messages with role 'tool' must be a response to a "
        "preceding message with 'tool_calls'.",
        "result_twice": "Duplicate response to tool_call_id {id}.",
    },
}


def say_neutral(dialect: Dialect, rule: str, joined: Joined, last: Turn | None) -> BadRequest:
    """The refusal of a request that breaks a neutral rule, in the dialect's words, naming the message."""
    at, name = place_of(rule, joined, last)
    message = _SAID[dialect].get(rule, rule).format(id=name)
    if dialect == "anthropic":
        where = f"messages.{at}"
        return BadRequest(rule, f"{where}: {message}", param=where)
    where = f"input[{at}]" if dialect == "responses" else f"messages[{at}]"
    return BadRequest(rule, f"{message} ({where})", param=where)


def place_of(rule: str, joined: Joined, last: Turn | None) -> tuple[int, str]:
    """The message that breaks a neutral rule, and the id that is wrong in it."""
    calls = [(piece.at, piece.block.id) for piece in joined.pieces if isinstance(piece.block, Call)]
    if not calls and last is not None:
        # The server holds the turn: what is wrong is the first message that should have answered it.
        calls = [(0, call.id) for call in last.calls]
    results = [(piece.at, piece.block.id) for piece in joined.pieces if isinstance(piece.block, Result)]
    called, given = [name for _, name in calls], [name for _, name in results]
    if rule == "call_without_result":
        return next(((at, name) for at, name in calls if name not in given), (0, ""))
    if rule == "result_without_call":
        return next(((at, name) for at, name in results if name not in called), (0, ""))
    if rule == "result_twice":
        return next(((at, name) for at, name in results if given.count(name) > 1), (0, ""))
    return (joined.pieces[-1].at if joined.pieces else 0), ""
