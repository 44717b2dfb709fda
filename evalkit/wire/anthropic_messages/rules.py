"""The Messages API's own rules of requests, each with its evidence.

Sources are the API reference (the field descriptions in ``anthropic`` 2.14 repeat it), the guides at
platform.claude.com/docs, and public reports that quote the API's own 400.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from evalkit.core.turns import Thinking, Turn
from evalkit.wire.answers import listed, mapped
from evalkit.wire.incoming import Incoming
from evalkit.wire.rules import Rule

Broken: TypeAlias = tuple[str, str] | None


def _messages(body: Mapping[str, Any]) -> list[tuple[int, str, list[dict[str, Any]] | str]]:
    found = []
    for at, message in enumerate(listed(body.get("messages"))):
        content = message.get("content")
        found.append((at, str(message.get("role")), content if isinstance(content, str) else listed(content)))
    return found


def _no_messages(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if body.get("messages") or incoming.continues is not None:
        return None
    return "messages: at least one message is required", "messages"


def _negative_limit(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.limit is None or incoming.limit >= 0:
        return None
    return "max_tokens: Input should be greater than or equal to 0", "max_tokens"


def _empty_text(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    for at, _, content in _messages(body):
        if isinstance(content, str):
            continue
        for place, block in enumerate(content):
            if mapped(block).get("type") == "text" and not block.get("text"):
                where = f"messages.{at}.content.{place}"
                return f"{where}.text: text content blocks must be non-empty", where
    return None


def _blank_text(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    for at, _, content in _messages(body):
        blocks = content if isinstance(content, list) else ()
        texts = [str(block.get("text")) for block in blocks if mapped(block).get("type") == "text"]
        if texts and not any(text.strip() for text in texts):
            where = f"messages.{at}"
            return f"{where}: text content blocks must contain non-whitespace text", where
    return None


def _empty_message(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    messages = _messages(body)
    for at, role, content in messages:
        if not content and role != "system" and not (role == "assistant" and at == len(messages) - 1):
            where = f"messages.{at}"
            return (
                f"{where}: all messages must have non-empty content except for the optional final "
                "assistant message",
                where,
            )
    return None


def _results_late(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    for at, role, content in _messages(body):
        if role != "user" or isinstance(content, str):
            continue
        kinds = [mapped(block).get("type") for block in content]
        if "tool_result" in kinds and any(kind != "tool_result" for kind in kinds[: _last_result(kinds)]):
            where = f"messages.{at}"
            return (
                f"{where}: `tool_use` ids were found without `tool_result` blocks immediately after: the "
                "`tool_result` blocks must come first in the content",
                where,
            )
    return None


def _last_result(kinds: list[Any]) -> int:
    return len(kinds) - kinds[::-1].index("tool_result")


def _results_by_assistant(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    for at, role, content in _messages(body):
        for block in content if isinstance(content, list) else ():
            kind = mapped(block).get("type")
            if (role, kind) in (("assistant", "tool_result"), ("user", "tool_use")):
                where = f"messages.{at}"
                allowed = "user" if kind == "tool_result" else "assistant"
                return f"{where}: `{kind}` blocks can only be in `{allowed}` messages", where
    return None


def _first_not_user(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    messages = _messages(body)
    if incoming.continues is None and messages and messages[0][1] == "assistant":
        return 'messages: first message must use the "user" role', "messages.0"
    return None


def _budget(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    thinking = mapped(body.get("thinking"))
    budget = thinking.get("budget_tokens")
    if thinking.get("type") != "enabled":
        return None
    if not isinstance(budget, int) or budget < 1024:
        return (
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            "thinking.budget_tokens",
        )
    if incoming.limit is not None and budget >= incoming.limit:
        return "`max_tokens` must be greater than `thinking.budget_tokens`", "max_tokens"
    return None


def _forced_while_thinking(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    thinks = mapped(body.get("thinking")).get("type") == "enabled"
    if thinks and incoming.choice not in ("auto", "none"):
        return "Thinking may not be enabled when tool_choice forces tool use.", "tool_choice"
    return None


def _choice_without_tools(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.choice in ("auto", "none") or incoming.continues is not None:
        return None
    if not incoming.tools:
        return "tool_choice: may only be specified while providing tools", "tool_choice"
    if incoming.choice != "required" and incoming.choice not in incoming.tools:
        return f"tool_choice.name: no tool named {incoming.choice!r}", "tool_choice"
    return None


def _thinking_dropped(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if last is None or not last.calls or mapped(body.get("thinking")).get("type") in (None, "disabled"):
        return None
    if not any(isinstance(block, Thinking) for block in last.content) or incoming.continues is not None:
        return None
    ids = {call.id for call in last.calls}
    for at, role, content in _messages(body):
        kinds = [mapped(block).get("type") for block in content if isinstance(content, list)]
        mine = any(mapped(block).get("id") in ids for block in content if isinstance(content, list))
        if role == "assistant" and mine and not {"thinking", "redacted_thinking"} & set(kinds):
            where = f"messages.{at}"
            return (
                f"{where}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{kinds[0]}`",
                where,
            )
    return None


def _thread_fields(body: Mapping[str, Any], incoming: Incoming, last: Turn | None) -> Broken:
    if incoming.continues is None:
        return None
    for field in ("system", "tools"):
        if body.get(field) is not None:
            return f"{field}: must stay the same across a thread's turns", field
    return None


RULES: tuple[Rule, ...] = (
    Rule("messages_empty", "documented", "API reference, messages: Required", _no_messages),
    Rule("max_tokens_negative", "documented", "API reference, max_tokens: 0 or more", _negative_limit),
    Rule("text_empty", "recorded", "quoted in anthropics/claude-code#59812", _empty_text),
    Rule(
        "text_blank",
        "recorded",
        "quoted in anthropics/claude-code#23440; LibreChat-AI/agents#124 tried which blocks count",
        _blank_text,
    ),
    Rule("message_empty", "recorded", "quoted in anthropics/claude-code#6774", _empty_message),
    Rule(
        "results_not_first",
        "documented",
        "guide 'Handle tool calls': tool_result blocks come first, text after all of them",
        _results_late,
    ),
    Rule(
        "block_of_other_role",
        "documented",
        "guide 'Handle tool calls': results come in a user message, calls in an assistant one",
        _results_by_assistant,
    ),
    Rule("first_not_user", "assumed", "older references said so; the current one is silent", _first_not_user),
    Rule(
        "thinking_budget",
        "documented",
        "API reference, budget_tokens: at least 1024, below max_tokens",
        _budget,
    ),
    Rule(
        "forced_while_thinking",
        "documented",
        "guide 'Extended thinking': only tool_choice auto and none",
        _forced_while_thinking,
    ),
    Rule("choice_without_tools", "assumed", "no reference found", _choice_without_tools),
    Rule(
        "thinking_dropped",
        "documented",
        "guide 'Extended thinking': during tool use the last turn's thinking blocks must be sent back",
        _thinking_dropped,
    ),
    Rule(
        "thread_fields",
        "documented",
        "API reference, thread_fingerprint_mismatch",
        _thread_fields,
        code="thread_fingerprint_mismatch",
    ),
)
