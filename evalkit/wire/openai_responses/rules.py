"""The Responses API's own rules of requests, each with its evidence.

Sources are the API reference (the field descriptions in ``openai`` 3.57 repeat it), the guides at
developers.openai.com/api/docs, and public reports that quote the API's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from evalkit.core.turns import Turn
from evalkit.wire.answers import listed, mapped
from evalkit.wire.incoming import Incoming
from evalkit.wire.rules import Rule

Broken: TypeAlias = tuple[str, str] | None

#: The least output limit that the API takes.
LEAST_LIMIT = 16


def _small_limit(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.limit is None or incoming.limit >= LEAST_LIMIT:
        return None
    return (
        "Invalid 'max_output_tokens': integer below minimum value. "
        f"Expected a value >= {LEAST_LIMIT}, but got {incoming.limit} instead.",
        "max_output_tokens",
    )


def _input_missing(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    held = (incoming.continues, body.get("prompt"), body.get("conversation"))
    if body.get("input") or any(value is not None for value in held):
        return None
    return (
        "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation' must be provided.",
        "input",
    )


def _two_histories(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.continues is not None and body.get("conversation") is not None:
        return (
            "'previous_response_id' cannot be used in conjunction with 'conversation'.",
            "previous_response_id",
        )
    return None


def _background_unstored(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.background and body.get("store") is False:
        return "Background mode requires 'store' to be true.", "store"
    return None


def _choice_without_tools(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.choice in ("auto", "none"):
        return None
    if not incoming.tools:
        return f"Tool choice '{incoming.choice}' must be specified with 'tools' parameter.", "tool_choice"
    if incoming.choice != "required" and incoming.choice not in incoming.tools:
        return f"Tool choice '{incoming.choice}' not found in 'tools' parameter.", "tool_choice"
    return None


def _lone_reasoning(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    items = [mapped(item) for item in listed(body.get("input"))]
    for at, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        after = items[at + 1] if at + 1 < len(items) else {}
        if not after or after.get("role") == "user" or after.get("type") in ("function_call_output",):
            name = f"Item '{item.get('id')}' of type 'reasoning'"
            return f"{name} was provided without its required following item.", f"input[{at}]"
    return None


RULES: tuple[Rule, ...] = (
    Rule("input_missing", "assumed", "seen in public reports of clients only", _input_missing),
    Rule(
        "max_output_tokens_small",
        "recorded",
        "quoted in vectorize-io/hindsight#58",
        _small_limit,
        code="integer_below_min_value",
    ),
    Rule(
        "two_histories",
        "documented",
        "API reference, previous_response_id: cannot be used with conversation",
        _two_histories,
    ),
    Rule(
        "background_unstored",
        "documented",
        "guide 'Background mode': background requires store",
        _background_unstored,
    ),
    Rule("choice_without_tools", "assumed", "no reference found", _choice_without_tools),
    Rule("reasoning_alone", "recorded", "quoted in continuedev/continue#8933", _lone_reasoning),
)
