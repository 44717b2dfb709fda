"""The Chat Completions API's own rules of requests, each with its evidence.

Sources are the API reference (the field descriptions in ``openai`` 3.57 repeat it) and the guides at
developers.openai.com/api/docs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from evalkit.core.turns import Turn
from evalkit.wire.answers import listed, mapped
from evalkit.wire.incoming import Incoming
from evalkit.wire.rules import Rule

Broken: TypeAlias = tuple[str, str] | None


def _no_messages(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if body.get("messages"):
        return None
    return "Invalid 'messages': empty array. Expected an array with minimum length 1.", "messages"


def _empty_assistant(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    for at, message in enumerate(listed(body.get("messages"))):
        said = any(message.get(key) for key in ("content", "tool_calls", "function_call", "refusal", "audio"))
        if message.get("role") == "assistant" and not said and message.get("content") is None:
            where = f"messages[{at}].content"
            return f"Invalid value for 'content': expected a string, got null. ({where})", where
    return None


def _results_late(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    waiting: set[str] = set()
    for at, message in enumerate(listed(body.get("messages"))):
        role = message.get("role")
        if role == "tool":
            waiting.discard(str(message.get("tool_call_id")))
        elif waiting:
            where = f"messages[{at}].role"
            return (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: "
                f"{', '.join(sorted(waiting))} ({where})",
                where,
            )
        if role == "assistant":
            waiting = {str(mapped(call).get("id")) for call in listed(message.get("tool_calls"))}
    return None


def _limit(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.limit is None or incoming.limit >= 1:
        return None
    return f"Invalid 'max_tokens': integer below minimum value, got {incoming.limit}.", "max_tokens"


def _two_limits(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        return (
            "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
            "max_tokens",
        )
    return None


def _stream_options(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if body.get("stream_options") is not None and not incoming.stream:
        return "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options"
    return None


def _choice_without_tools(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if body.get("tool_choice") is None or incoming.choice == "none":
        return None
    if not incoming.tools:
        return "'tool_choice' is only allowed when 'tools' are specified.", "tool_choice"
    if incoming.choice not in ("auto", "required", *incoming.tools):
        return f"Tool choice '{incoming.choice}' not found in 'tools' parameter.", "tool_choice"
    return None


RULES: tuple[Rule, ...] = (
    Rule("messages_empty", "documented", "API reference, messages: minItems 1", _no_messages),
    Rule(
        "assistant_empty",
        "documented",
        "API reference, assistant message: content is required unless tool_calls or function_call is given",
        _empty_assistant,
    ),
    Rule(
        "results_not_first",
        "documented",
        "guide 'Function calling': tool messages follow the message with the calls",
        _results_late,
    ),
    Rule("max_tokens_small", "assumed", "no reference found", _limit),
    Rule("two_limits", "assumed", "seen in public reports of clients only", _two_limits),
    Rule(
        "stream_options_unstreamed",
        "documented",
        "API reference, stream_options: only when stream is true",
        _stream_options,
    ),
    Rule("choice_without_tools", "assumed", "seen in public reports of clients only", _choice_without_tools),
)
