"""LangChain: serialised messages, as lists and as states of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evalkit.transcripts.formats.messages import (
    read_message,
)
from evalkit.transcripts.recording import Conversation, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped

_LC = {
    **dict.fromkeys(("human", "HumanMessage", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("ai", "AIMessage", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("system", "SystemMessage", "developer"), "system"),
    **dict.fromkeys(("tool", "ToolMessage", "ToolMessageChunk", "function", "FunctionMessage"), "tool"),
}


def langchain_message(value: Any) -> dict[str, Any] | None:
    """A message of LangChain as a chat message: plain, ``{type, data}``, or a constructor with ``kwargs``."""
    if not isinstance(value, dict):
        return None
    given = value
    kind = given.get("type")
    if kind == "constructor" or "lc" in given:
        name = listed(given.get("id"))
        kind, given = (name[-1] if name else ""), mapped(given.get("kwargs"))
    elif isinstance(given.get("data"), dict) and kind in _LC:
        given = given["data"]
    if not isinstance(kind, str) or kind not in _LC or "content" not in given or "role" in given:
        return None
    more = mapped(given.get("additional_kwargs"))
    metadata = mapped(given.get("response_metadata"))
    calls = listed(given.get("tool_calls")) or listed(more.get("tool_calls"))
    invalid = [
        {**mapped(raw), "args": mapped(raw).get("args") or "{"}
        for raw in listed(given.get("invalid_tool_calls"))
    ]
    return {
        "role": _LC[kind],
        "content": _unless_calls(given["content"], calls),
        "name": given.get("name") if _LC[kind] == "tool" else None,
        "tool_calls": [*calls, *invalid],
        "function_call": more.get("function_call"),
        "tool_call_id": given.get("tool_call_id"),
        "status": given.get("status"),
        "finish_reason": metadata.get("finish_reason")
        or metadata.get("stop_reason")
        or metadata.get("done_reason"),
        "usage": given.get("usage_metadata"),
    }


def _unless_calls(content: Any, calls: list[Any]) -> Any:
    """Content without the calls that stand in ``tool_calls`` too."""
    if not calls or not isinstance(content, list):
        return content
    return [
        block
        for block in content
        if mapped(block).get("type") not in ("tool_use", "function_call", "tool_call")
    ]


def is_langchain(value: Any) -> bool:
    """Whether a value is a message of LangChain."""
    return langchain_message(value) is not None


def langchain(messages: Iterable[Any], source: Source) -> Recording:
    """A list of messages."""
    conversation = Conversation()
    for number, raw in enumerate(messages, 1):
        message = langchain_message(raw)
        if message is None:
            conversation.skip("is no message", f"message {number}")
        else:
            read_message(conversation, message)
    return conversation.recording(source.id(), source.file, "langchain")
