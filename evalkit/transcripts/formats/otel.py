"""OpenTelemetry spans of generative AI, in OTLP JSON: a document, or one export request a line.

Read are the current conventions (``gen_ai.input.messages`` and ``gen_ai.output.messages``), the events of
version 1.36 and before (``gen_ai.choice``, ``gen_ai.content.prompt``, …), ``gen_ai.prompt`` as JSON text, the
numbered attributes of OpenLLMetry (``gen_ai.prompt.0.content``, …), the AI SDK's own (``ai.prompt.messages``)
and OpenInference's. Spans may also stand without OTLP's wrapping, as SDKs print them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.documents import Broken, decode
from evalkit.transcripts.formats.dialects import answer_in, messages_in, plain
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.parts import answer_text, arguments_of
from evalkit.transcripts.formats.spans import ModelCall, Span, ToolCall
from evalkit.transcripts.formats.traces import flattened, openinference_call
from evalkit.wire.answers import listed, mapped, text_in

_MODEL_OPERATIONS = frozenset(("chat", "generate_content", "text_completion"))


def is_otlp(value: Any) -> bool:
    """Whether a value is an export request for spans."""
    return isinstance(value, dict) and isinstance(
        value.get("resourceSpans") or value.get("resource_spans"), list
    )


def is_bare_span(value: Any) -> bool:
    """Whether a value is a span without OTLP's wrapping, or the attributes of one alone."""
    if not isinstance(value, dict):
        return False
    attributes = value.get("attributes")
    if attributes is None:
        return any(key in value for key in _TELLING)
    names = (
        attributes
        if isinstance(attributes, dict)
        else {str(mapped(pair).get("key")): 0 for pair in listed(attributes)}
    )
    return any(str(key).startswith(_FAMILIES) for key in names)


_TELLING = (
    "gen_ai.operation.name",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.system",
)
_FAMILIES = ("gen_ai.", "ai.operationId", "openinference.span", "llm.request.type", "traceloop.")


def bare_spans(value: dict[str, Any]) -> Iterator[Span]:
    """The span in a value without wrapping: ids may lie in a context of their own."""
    attributes = value.get("attributes")
    if attributes is None:
        yield _span({"traceId": "attributes", "spanId": str(id(value)), "attributes": value})
        return
    context = mapped(value.get("context") or value.get("spanContext") or value.get("_spanContext"))
    parent = (
        value.get("parentSpanId")
        or value.get("parent_id")
        or mapped(value.get("parentSpanContext")).get("spanId")
        or value.get("parentId")
    )
    yield _span(
        {
            **value,
            "traceId": context.get("traceId")
            or context.get("trace_id")
            or value.get("traceId")
            or value.get("trace_id"),
            "spanId": context.get("spanId")
            or context.get("span_id")
            or value.get("spanId")
            or value.get("id")
            or value.get("span_id"),
            "parentSpanId": parent or "",
            "startTimeUnixNano": _time(
                value.get("startTime") or value.get("start_time") or value.get("startTimeUnixNano")
            ),
        }
    )


def _time(value: Any) -> str:
    if isinstance(value, list) and len(value) == 2:
        # Seconds and nanoseconds, as the JavaScript SDK has them.
        return f"{value[0]}{value[1]:0>9}"
    return str(value or "")


def spans_of(value: dict[str, Any]) -> Iterator[Span]:
    """The spans of an export request, or of one element of its ``resourceSpans``."""
    for resource in listed(value.get("resourceSpans") or value.get("resource_spans") or [value]):
        given = mapped(resource)
        for scope in listed(given.get("scopeSpans") or given.get("scope_spans")):
            for raw in listed(mapped(scope).get("spans")):
                if isinstance(raw, dict):
                    yield _span(raw)


def _span(raw: dict[str, Any]) -> Span:
    given = raw.get("attributes")
    attributes = _nested(given) if isinstance(given, dict) else _attributes(given)
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
    elif "ai.operationId" in attributes:
        what = _ai_sdk(attributes)
    elif "openinference.span.kind" in attributes:
        status = str(mapped(raw.get("status")).get("code") or "")
        kind = str(attributes["openinference.span.kind"]).upper()
        what = openinference_call(
            kind,
            attributes,
            "ERROR" if status in ("2", "STATUS_CODE_ERROR") else "",
            str(raw.get("name") or ""),
        )
    elif not operation and any(
        key in attributes
        for key in ("gen_ai.prompt", "gen_ai.completion", "gen_ai.input.messages", "gen_ai.prompt.0.role")
    ):
        what = _model_call(attributes, listed(raw.get("events")))
    return Span(
        str(raw.get("traceId") or raw.get("trace_id")),
        str(raw.get("spanId") or raw.get("span_id")),
        str(raw.get("parentSpanId") or raw.get("parent_span_id") or ""),
        str(raw.get("startTimeUnixNano") or raw.get("start_time_unix_nano") or "").rjust(20, "0"),
        what,
    )


def _nested(given: dict[str, Any]) -> dict[str, Any]:
    """Attributes as a plain object; some exporters nest them by their dots."""
    flat: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, dict) and key in (
            "gen_ai",
            "ai",
            "llm",
            "openinference",
            "tool",
            "input",
            "output",
        ):
            flat.update(flattened(value, f"{key}."))
        else:
            flat[key] = value
    return flat


_INNER = (".doGenerate", ".doStream")


def _ai_sdk(attributes: dict[str, Any]) -> ModelCall | ToolCall | None:
    """A span of the Vercel AI SDK; the outer one wraps the inner one's turn."""
    operation = str(attributes["ai.operationId"])
    if operation == "ai.toolCall":
        text = answer_text(plain(attributes.get("ai.toolCall.result")))
        return ToolCall(
            str(attributes.get("ai.toolCall.id") or ""),
            str(attributes.get("ai.toolCall.name") or ""),
            text,
            looks_failed(text),
        )
    if not operation.endswith(_INNER):
        return None
    answer = answer_in(
        {
            "text": attributes.get("ai.response.text") or attributes.get("ai.response.object") or "",
            "toolCalls": attributes.get("ai.response.toolCalls") or [],
            "finishReason": attributes.get("ai.response.finishReason"),
        }
    )
    if answer is not None:
        answer["usage"] = {
            name: attributes.get(f"ai.usage.{old}", attributes.get(f"ai.usage.{new}"))
            for name, old, new in (
                ("prompt_tokens", "promptTokens", "inputTokens"),
                ("completion_tokens", "completionTokens", "outputTokens"),
            )
        }
    return ModelCall(messages_in(attributes.get("ai.prompt.messages") or attributes.get("ai.prompt")), answer)


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
        before += messages_in(attributes.get("gen_ai.prompt"))
        answer_told = answer_in(attributes.get("gen_ai.completion"))
        if answer_told is None:
            return ModelCall([], None)
        outputs = [answer_told]
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
    before: list[dict[str, Any]] = []
    outputs: list[dict[str, Any]] = []
    for raw in events:
        event = mapped(raw)
        name = str(event.get("name") or "")
        raw_attributes = event.get("attributes")
        attributes = raw_attributes if isinstance(raw_attributes, dict) else _attributes(raw_attributes)
        body = {
            **{key: _parsed(value) for key, value in attributes.items()},
            **mapped(_parsed(attributes.get("body"))),
        }
        if name in ("gen_ai.content.prompt", "gen_ai.content.completion"):
            told = attributes.get(name.replace("content.", "")) or body.get("content")
            if name.endswith("prompt"):
                before += messages_in(told)
            else:
                answer_told = answer_in(told)
                outputs += [answer_told] if answer_told is not None else []
        elif name == "gen_ai.client.inference.operation.details":
            outputs += [_message(inner) for inner in listed(body.get("gen_ai.output.messages"))]
            for inner in listed(body.get("gen_ai.input.messages")):
                before += _messages(inner)
        elif name == "gen_ai.choice":
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
