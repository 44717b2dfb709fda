"""Messages and answers in any dialect as chat messages, as observability tools keep them."""

from __future__ import annotations

import ast
from typing import Any

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.formats.langchain import langchain_message
from evalkit.transcripts.formats.messages import is_message
from evalkit.transcripts.formats.parts import arguments_of, kind_of
from evalkit.transcripts.formats.responses import is_item
from evalkit.wire.answers import listed, mapped, text_in


def plain(value: Any) -> Any:
    """A value that is kept as text: JSON, or a literal of Python; else the text."""
    if not isinstance(value, str) or value[:1] not in '{["':
        return value
    try:
        return decode(value.encode("utf-8", "surrogatepass"))
    except Broken:
        pass
    if value[:1] in "{[" and len(value) < 1_000_000:
        try:
            return ast.literal_eval(value)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            pass
    return value


def messages_in(value: Any) -> list[dict[str, Any]]:
    """The messages of an input."""
    value = plain(value)
    if isinstance(value, str):
        return [{"role": "user", "content": value}] if value else []
    if isinstance(value, dict):
        return _in_object(value)
    found: list[dict[str, Any]] = []
    for raw in listed(value):
        inner = plain(raw)
        if isinstance(inner, list):
            # LangChain keeps a batch: a list of lists.
            found += messages_in(inner)
        elif isinstance(inner, dict):
            found += as_messages(inner)
        elif isinstance(inner, str) and inner:
            found.append({"role": "user", "content": inner})
    return found


def _in_object(value: dict[str, Any]) -> list[dict[str, Any]]:
    before = []
    system = (
        value.get("system")
        or value.get("instructions")
        or value.get("systemInstruction")
        or value.get("system_instruction")
    )
    if system:
        before.append({"role": "system", "content": mapped(system).get("parts") or system})
    for key in ("messages", "contents", "input", "prompt", "kwargs", "args", "history"):
        inner = plain(value.get(key))
        if isinstance(inner, list | dict) and inner:
            found = messages_in(inner)
            if found:
                return [*before, *found]
        elif isinstance(inner, str) and inner and key in ("input", "prompt"):
            return [*before, {"role": "user", "content": inner}]
    return [*before, *as_messages(value)]


def as_messages(value: dict[str, Any]) -> list[dict[str, Any]]:
    """One message, or one item of the Responses API, as chat messages; none where it is neither."""
    if is_message(value):
        return [value]
    lang = langchain_message(value)
    if lang is not None:
        return [lang]
    if isinstance(value.get("message"), dict):
        return as_messages(value["message"])
    kind = value.get("type")
    if kind in ("function_call_output", "custom_tool_call_output"):
        return [{"role": "tool", "tool_call_id": value.get("call_id"), "content": value.get("output")}]
    if kind in ("function_call", "custom_tool_call"):
        return [{"role": "assistant", "content": "", "tool_calls": [_item_call(value)]}]
    if isinstance(value.get("content"), list | str) and isinstance(value.get("role"), str):
        return [{**value, "role": "assistant" if value["role"].lower() in ("ai", "agent", "bot") else "user"}]
    return []


def _item_call(item: dict[str, Any]) -> dict[str, Any]:
    arguments = item.get("arguments") if "arguments" in item else {"input": item.get("input")}
    return {"id": item.get("call_id") or item.get("id"), "name": item.get("name"), "arguments": arguments}


def answer_in(value: Any) -> dict[str, Any] | None:
    """The answer in an output, as an assistant's message; None where there is none."""
    value = plain(value)
    if isinstance(value, str):
        return {"role": "assistant", "content": value} if value.strip() else None
    if isinstance(value, list):
        return _of_list(value)
    if not isinstance(value, dict):
        return None
    usage = (
        mapped(value.get("usage"))
        or mapped(value.get("usageMetadata"))
        or mapped(value.get("usage_metadata"))
    )
    found = _of_object(value)
    if found is not None and usage and not found.get("usage"):
        found["usage"] = usage
    return found


def _of_object(value: dict[str, Any]) -> dict[str, Any] | None:
    for key in ("choices", "generations", "candidates"):
        inner = listed(value.get(key))
        while inner and isinstance(inner[0], list):
            inner = inner[0]
        if inner:
            choice = mapped(inner[0])
            found = answer_in(choice.get("message") or choice.get("content") or choice.get("text"))
            label = (
                choice.get("finish_reason")
                or choice.get("finishReason")
                or mapped(choice.get("generation_info")).get("finish_reason")
            )
            if found is None:
                # Filtered or cut before its first word.
                return {"role": "assistant", "content": "", "finish_reason": label} if label else None
            return {**found, "finish_reason": found.get("finish_reason") or label}
    lang = langchain_message(value)
    if lang is not None:
        return {**lang, "role": "assistant"}
    if is_message(value):
        return {**value, "role": "assistant"}
    if isinstance(value.get("toolCalls"), list | str) or "finishReason" in value:
        calls = [
            {
                "id": mapped(raw).get("toolCallId"),
                "name": mapped(raw).get("toolName"),
                "arguments": mapped(raw).get("input", mapped(raw).get("args")),
            }
            for raw in listed(plain(value.get("toolCalls")))
        ]
        return {
            "role": "assistant",
            "content": text_in(value.get("text")),
            "tool_calls": calls,
            "finish_reason": value.get("finishReason"),
        }
    if isinstance(value.get("parts"), list):
        return {"role": "assistant", "parts": value["parts"]}
    for key in (
        "output",
        "message",
        "messages",
        "content",
        "response",
        "result",
        "text",
        "completion",
        "tool_calls",
    ):
        said = value.get(key)
        if not said:
            continue
        if key == "tool_calls":
            return {"role": "assistant", "content": "", "tool_calls": said}
        found = answer_in(said[-1:] if key == "messages" and isinstance(said, list) else said)
        if found is not None:
            label = value.get("stop_reason") or value.get("stopReason") or value.get("finish_reason")
            return {**found, "finish_reason": found.get("finish_reason") or label}
    if value.get("tool_call_id") or kind_of(value) in ("tool_use", "functioncall", "tool-call", "tool_call"):
        return {"role": "assistant", "content": [value]}
    return None


def _of_list(values: list[Any]) -> dict[str, Any] | None:
    parts = [
        mapped(plain(raw)) if not isinstance(raw, str) else {"type": "text", "text": raw} for raw in values
    ]
    parts = [part for part in parts if part]
    if not parts:
        return None
    if any(is_item(part) for part in parts) and not any(
        is_message(part) and "type" not in part for part in parts
    ):
        words = [text_in(part.get("content")) for part in parts if part.get("type") == "message"]
        calls = [
            _item_call(part) for part in parts if part.get("type") in ("function_call", "custom_tool_call")
        ]
        thoughts = [text_in(part.get("summary")) for part in parts if part.get("type") == "reasoning"]
        return {
            "role": "assistant",
            "content": "\n".join(words),
            "tool_calls": calls,
            "reasoning": "\n".join(thoughts),
        }
    if all(is_message(part) or langchain_message(part) or "message" in part for part in parts):
        return answer_in(parts[-1])
    if any(kind_of(part) for part in parts):
        return {"role": "assistant", "content": parts}
    return {"role": "assistant", "content": arguments_of(values)}
