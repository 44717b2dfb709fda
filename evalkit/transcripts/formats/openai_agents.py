"""Traces of the OpenAI Agents SDK, as its processors export them: traces and spans, one object each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.formats.messages import looks_failed
from evalkit.transcripts.formats.responses import read_input, read_response
from evalkit.transcripts.formats.spans import ModelCall, Span, ToolCall
from evalkit.transcripts.recording import Conversation, Ended
from evalkit.wire.answers import listed, mapped, text_in


def is_agents_object(value: Any) -> bool:
    """Whether a value is an exported trace or span."""
    return isinstance(value, dict) and value.get("object") in ("trace", "trace.span")


def spans_of(value: dict[str, Any]) -> Iterator[Span]:
    """The span in an exported object; traces have none of their own."""
    if value.get("object") != "trace.span":
        return
    data = mapped(value.get("span_data"))
    kind = data.get("type")
    what: ModelCall | ToolCall | None = None
    if kind == "generation":
        what = ModelCall(_dicts(data.get("input")), _answer(data))
    elif kind == "response":
        what = _response(data)
    elif kind == "function":
        text = text_in(data.get("output"))
        what = ToolCall("", str(data.get("name")), text, bool(value.get("error")) or looks_failed(text))
    yield Span(
        str(value.get("trace_id")),
        str(value.get("id")),
        str(value.get("parent_id") or ""),
        str(value.get("started_at") or ""),
        what,
        _ended(value.get("error")) if kind == "agent" else None,
    )


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [inner for inner in listed(value) if isinstance(inner, dict)]


def _answer(data: dict[str, Any]) -> dict[str, Any] | None:
    outputs = _dicts(data.get("output"))
    if not outputs:
        return None
    message = outputs[-1]
    choices = _dicts(message.get("choices"))
    if choices:
        message = {**mapped(choices[0].get("message")), "finish_reason": choices[0].get("finish_reason")}
    return {**message, "usage": mapped(data.get("usage"))}


def _response(data: dict[str, Any]) -> ModelCall:
    """A response span: without content as the SDK exports it; some processors add it."""
    response = mapped(data.get("response")) or ({"output": data["output"]} if "output" in data else {})
    if not isinstance(response.get("output"), list):
        return ModelCall([], None)
    asked, answered = Conversation(), Conversation()
    read_input(asked, data.get("input"))
    read_response(answered, response)
    step = answered.last
    if step is None:
        return ModelCall([], None)
    calls = [{"id": call.id, "name": call.tool, "arguments": call.arguments} for call in step.turn.calls]
    answer: dict[str, Any] = {
        "content": step.turn.text,
        "tool_calls": calls,
        "usage": mapped(data.get("usage")),
    }
    return ModelCall(_as_messages(data.get("input")), answer)


def _as_messages(given: Any) -> list[dict[str, Any]]:
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages = []
    for item in _dicts(given):
        kind = item.get("type", "message")
        if kind == "function_call_output":
            messages.append(
                {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
            )
        elif kind == "message":
            messages.append({"role": str(item.get("role")), "content": item.get("content")})
        elif kind == "function_call":
            messages.append({"role": "assistant", "content": ""})
    return messages


def _ended(error: Any) -> tuple[Ended, str] | None:
    if not error:
        return None
    message = text_in(mapped(error).get("message")) or text_in(error)
    return ("limit" if "max turns" in message.lower() else "error"), message[:80]
