"""OpenTelemetry spans of generative AI, in OTLP JSON: a document, or one export request a line.

Read are the current conventions (``gen_ai.input.messages`` and ``gen_ai.output.messages``), the events of
version 1.36 and before (``gen_ai.choice``, …), and the numbered attributes of OpenLLMetry
(``gen_ai.prompt.0.content``, …).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.messages import arguments_of
from evalkit.transcripts.spans import ModelCall, Span, ToolCall
from evalkit.wire.answers import listed, mapped, text_in

_MODEL_OPERATIONS = frozenset(("chat", "generate_content", "text_completion"))


def is_otlp(value: Any) -> bool:
    """Whether a value is an export request for spans."""
    return isinstance(value, dict) and isinstance(
        value.get("resourceSpans") or value.get("resource_spans"), list
    )


def spans_of(value: dict[str, Any]) -> Iterator[Span]:
    """The spans of an export request, or of one element of its ``resourceSpans``."""
    for resource in listed(value.get("resourceSpans") or value.get("resource_spans") or [value]):
        given = mapped(resource)
        for scope in listed(given.get("scopeSpans") or given.get("scope_spans")):
            for raw in listed(mapped(scope).get("spans")):
                if isinstance(raw, dict):
                    yield _span(raw)


def _span(raw: dict[str, Any]) -> Span:
    attributes = _attributes(raw.get("attributes"))
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type") or "")
    what: ModelCall | ToolCall | None = None
    if operation in _MODEL_OPERATIONS:
        what = _model_call(attributes, listed(raw.get("events")))
    elif operation == "execute_tool":
        failed = str(mapped(raw.get("status")).get("code")) in ("2", "STATUS_CODE_ERROR")
        what = ToolCall(
            str(attributes.get("gen_ai.tool.call.id") or ""),
            str(attributes.get("gen_ai.tool.name") or ""),
            _plain(attributes.get("gen_ai.tool.call.result")),
            failed or "error.type" in attributes,
        )
    return Span(
        str(raw.get("traceId") or raw.get("trace_id")),
        str(raw.get("spanId") or raw.get("span_id")),
        str(raw.get("parentSpanId") or raw.get("parent_span_id") or ""),
        str(raw.get("startTimeUnixNano") or raw.get("start_time_unix_nano") or "").rjust(20, "0"),
        what,
    )


def _attributes(raw: Any) -> dict[str, Any]:
    return {str(pair.get("key")): _value(pair.get("value")) for pair in listed(raw) if isinstance(pair, dict)}


def _value(raw: Any) -> Any:
    """OTLP's tagged value as a plain one."""
    given = mapped(raw)
    for name in ("stringValue", "boolValue", "doubleValue"):
        if name in given:
            return given[name]
    if "intValue" in given:
        text = str(given["intValue"])
        return int(text) if text.lstrip("-").isdigit() and len(text) < 20 else text
    if "arrayValue" in given:
        return [_value(inner) for inner in listed(mapped(given["arrayValue"]).get("values"))]
    if "kvlistValue" in given:
        return _attributes(mapped(given["kvlistValue"]).get("values"))
    return None


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else arguments_of(value)


def _parsed(value: Any) -> Any:
    """An attribute that is recorded as JSON text where structure was not supported."""
    if not isinstance(value, str):
        return value
    try:
        return decode(value.encode("utf-8", "surrogatepass"))
    except Broken:
        return value


def _model_call(attributes: dict[str, Any], events: list[Any]) -> ModelCall:
    before: list[dict[str, Any]] = []
    instructions = _parsed(attributes.get("gen_ai.system_instructions"))
    if instructions:
        before.append({"role": "system", "content": _words(instructions)})
    outputs = [_message(raw) for raw in listed(_parsed(attributes.get("gen_ai.output.messages")))]
    for raw in listed(_parsed(attributes.get("gen_ai.input.messages"))):
        before += _messages(raw)
    if not outputs:
        inner, outputs = _from_events(events)
        before += inner
    if not outputs:
        before += _numbered(attributes, "gen_ai.prompt")
        outputs = _numbered(attributes, "gen_ai.completion")
    if not outputs:
        return ModelCall([], None)
    answer = outputs[0]
    if not answer.get("finish_reason"):
        reasons = listed(attributes.get("gen_ai.response.finish_reasons"))
        answer["finish_reason"] = reasons[0] if reasons else None
    answer["usage"] = {
        name: attributes.get(f"gen_ai.usage.{name}") for name in ("input_tokens", "output_tokens")
    }
    return ModelCall(before, answer)


def _words(parts: Any) -> str:
    if isinstance(parts, list):
        return "\n".join(_words(part) for part in parts)
    return text_in(parts)


def _message(raw: Any) -> dict[str, Any]:
    """A message of parts as a chat message."""
    given = mapped(raw)
    words, thoughts, calls = [], [], []
    for part in listed(given.get("parts")):
        inner = mapped(part)
        kind = inner.get("type")
        if kind == "text":
            words.append(text_in(inner.get("content")))
        elif kind in ("reasoning", "thinking"):
            thoughts.append(text_in(inner.get("content")))
        elif kind == "tool_call":
            calls.append(
                {
                    "id": inner.get("id"),
                    "name": inner.get("name"),
                    "arguments": _parsed(inner.get("arguments")),
                }
            )
    return {
        "role": str(given.get("role") or "assistant"),
        "content": "\n".join(words),
        "reasoning_content": "\n".join(thoughts),
        "tool_calls": calls,
        "finish_reason": given.get("finish_reason"),
    }


def _messages(raw: Any) -> list[dict[str, Any]]:
    """An input message, its tool answers as messages of their own."""
    given = mapped(raw)
    found = []
    for part in listed(given.get("parts")):
        inner = mapped(part)
        if inner.get("type") == "tool_call_response":
            answer = inner.get("response", inner.get("result"))
            found.append({"role": "tool", "tool_call_id": inner.get("id"), "content": _plain(answer)})
    message = _message(given)
    if message["content"] or message["tool_calls"] or not found:
        found.insert(0, message)
    return found


def _from_events(events: list[Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    before, outputs = [], []
    for raw in events:
        event = mapped(raw)
        name = str(event.get("name") or "")
        attributes = _attributes(event.get("attributes"))
        body = {
            **{key: _parsed(value) for key, value in attributes.items()},
            **mapped(_parsed(attributes.get("body"))),
        }
        if name == "gen_ai.choice":
            message = mapped(body.get("message")) or body
            outputs.append({**message, "role": "assistant", "finish_reason": body.get("finish_reason")})
        elif name.startswith("gen_ai.") and name.endswith(".message"):
            before.append(
                {
                    "role": name.split(".")[1],
                    "content": body.get("content"),
                    "tool_calls": body.get("tool_calls"),
                    "tool_call_id": body.get("id"),
                }
            )
    return before, outputs


def _numbered(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Messages whose fields are attributes of their own: ``gen_ai.prompt.0.tool_calls.1.name``."""
    messages = []
    for found in _groups(attributes, f"{prefix}."):
        calls = [
            {"id": call.get("id"), "name": call.get("name"), "arguments": call.get("arguments")}
            for call in _groups(found, "tool_calls.")
        ]
        messages.append(
            {
                "role": str(found.get("role") or "assistant"),
                "content": _parsed_content(found.get("content")),
                "tool_calls": calls,
                "tool_call_id": found.get("tool_call_id"),
                "finish_reason": found.get("finish_reason"),
            }
        )
    return messages


def _groups(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    groups: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        number, _, field = key.removeprefix(prefix).partition(".")
        if key.startswith(prefix) and number.isdigit() and len(number) < 9:
            groups.setdefault(int(number), {})[field] = value
    return [groups[number] for number in sorted(groups)]


def _parsed_content(value: Any) -> Any:
    """Content that is a list of parts in JSON text, or plain text."""
    parsed = _parsed(value) if isinstance(value, str) and value.startswith("[") else value
    return parsed if isinstance(parsed, list) else value
