"""Traces of observability tools, span by span: OpenInference, LangSmith, Langfuse, Weave."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.formats.dialects import answer_in, messages_in, plain
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.parts import answer_text
from evalkit.transcripts.formats.spans import ModelCall, Span, ToolCall
from evalkit.wire.answers import listed, mapped, text_in

# OpenInference


def is_openinference(value: Any) -> bool:
    """A span as Phoenix exports it: a span kind of its own, and a context or a trace id."""
    if not isinstance(value, dict):
        return False
    kind = _kind(value)
    return kind in _KINDS and ("context" in value or "trace_id" in value or "context.trace_id" in value)


_KINDS = frozenset(
    (
        "LLM",
        "TOOL",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "RERANKER",
        "GUARDRAIL",
        "EVALUATOR",
        "UNKNOWN",
    )
)


def _kind(value: dict[str, Any]) -> str:
    attributes = mapped(value.get("attributes"))
    kind = (
        value.get("span_kind")
        or attributes.get("openinference.span.kind")
        or mapped(mapped(attributes.get("openinference")).get("span")).get("kind")
    )
    return str(kind or "").upper()


def openinference_spans(value: dict[str, Any]) -> Iterator[Span]:
    """The span in an exported object."""
    context = mapped(value.get("context"))
    attributes = mapped(value.get("attributes")) or {
        key.removeprefix("attributes."): inner
        for key, inner in value.items()
        if key.startswith("attributes.")
    }
    yield Span(
        str(context.get("trace_id") or value.get("context.trace_id") or value.get("trace_id")),
        str(
            context.get("span_id") or value.get("context.span_id") or value.get("span_id") or value.get("id")
        ),
        str(value.get("parent_id") or value.get("parent_span_id") or ""),
        str(value.get("start_time") or value.get("startTime") or ""),
        openinference_call(
            _kind(value),
            attributes,
            str(value.get("status_code") or mapped(value.get("status")).get("status_code") or ""),
            str(value.get("name") or ""),
        ),
    )


def openinference_call(
    kind: str, attributes: dict[str, Any], status: str, name: str
) -> ModelCall | ToolCall | None:
    """What a span of these conventions is; flat keys and nested objects alike."""
    flat = flattened(attributes)
    if kind == "LLM":
        before = _oi_messages(flat, "llm.input_messages.")
        answers = _oi_messages(flat, "llm.output_messages.")
        answer = answers[0] if answers else answer_in(flat.get("output.value"))
        if answer is not None:
            answer["usage"] = {
                "prompt_tokens": flat.get("llm.token_count.prompt"),
                "completion_tokens": flat.get("llm.token_count.completion"),
            }
        if not before:
            before = messages_in(flat.get("input.value"))
        return ModelCall(before, answer if status.upper() != "ERROR" or answer else None)
    if kind == "TOOL":
        text = answer_text(plain(flat.get("output.value")))
        failed = status.upper() in ("ERROR", "STATUS_CODE_ERROR") or looks_failed(text)
        return ToolCall(
            str(flat.get("tool_call.id") or flat.get("tool.call.id") or ""),
            str(flat.get("tool.name") or flat.get("tool_call.function.name") or name),
            text,
            failed,
        )
    return None


def flattened(attributes: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Attributes under dotted keys, nested objects and lists taken apart where they are messages."""
    flat: dict[str, Any] = {}
    for key, value in attributes.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and not name.endswith((".value", "metadata")):
            flat.update(flattened(value, f"{name}."))
        elif (isinstance(value, list) and "messages" in name) or (
            isinstance(value, list) and name.endswith(("tool_calls", "contents"))
        ):
            for place, inner in enumerate(value):
                flat.update(flattened(mapped(inner), f"{name}.{place}."))
        else:
            flat[name] = value
    return flat


_KEPT: tuple[str, ...] = ("role", "content", "tool_calls", "tool_call_id", "name")
_PLACE = re.compile(r"(\d{1,6})\.message\.(.*)")
_CALL = re.compile(r"tool_calls\.(\d{1,6})\.tool_call\.(.*)")
_CONTENT = re.compile(r"contents\.(\d{1,6})\.message_content\.(.*)")


def _oi_messages(flat: dict[str, Any], prefix: str) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for key, value in flat.items():
        if not key.startswith(prefix):
            continue
        place = _PLACE.fullmatch(key.removeprefix(prefix))
        if place is None:
            continue
        message = found.setdefault(
            int(place[1]), {"role": "assistant", "content": "", "calls": {}, "contents": {}}
        )
        call, content = _CALL.fullmatch(place[2]), _CONTENT.fullmatch(place[2])
        if call is not None:
            message["calls"].setdefault(int(call[1]), {})[call[2]] = value
        elif content is not None:
            message["contents"].setdefault(int(content[1]), {})[content[2]] = value
        else:
            message[place[2]] = value
    messages: list[dict[str, Any]] = []
    for number in sorted(found):
        message = found[number]
        calls = [
            {
                "id": call.get("id"),
                "name": call.get("function.name"),
                "arguments": call.get("function.arguments"),
            }
            for _, call in sorted(message.pop("calls").items())
        ]
        contents = [text_in(part.get("text")) for _, part in sorted(message.pop("contents").items())]
        message["tool_calls"] = calls
        message["content"] = text_in(message.get("content")) or "\n".join(filter(None, contents))
        messages.append({key: message[key] for key in _KEPT if key in message})
    return messages


# LangSmith


def is_langsmith(value: Any) -> bool:
    """A run: its type, its trace or parent, its inputs."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("post"), list) or isinstance(value.get("patch"), list):
        return any(
            "run_type" in mapped(run) or "dotted_order" in mapped(run)
            for run in (*listed(value.get("post")), *listed(value.get("patch")))
        )
    return "run_type" in value and (
        "dotted_order" in value or "trace_id" in value or "parent_run_id" in value
    )


class LangSmith:
    """Runs as spans; a batch's posts and patches of one run are joined by their id."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, Any]] = {}

    def spans(self, value: dict[str, Any]) -> Iterator[Span]:
        """The runs that are whole now: those with outputs or an error."""
        for run in _unbatched(value):
            known = self._runs.pop(str(run.get("id")), {})
            joined = {**known, **{key: inner for key, inner in run.items() if inner is not None}}
            if (
                not joined.get("outputs")
                and not joined.get("error")
                and "end_time" not in joined
                and len(self._runs) < 10_000
            ):
                self._runs[str(run.get("id"))] = joined
            else:
                yield _langsmith_span(joined)

    def rest(self) -> Iterator[Span]:
        """Runs that never got outputs."""
        for run in self._runs.values():
            yield _langsmith_span(run)
        self._runs = {}


def _unbatched(value: dict[str, Any]) -> list[dict[str, Any]]:
    if "run_type" in value:
        nested = [mapped(run) for run in listed(value.get("child_runs"))]
        return [value, *(inner for run in nested if run for inner in _unbatched(run))]
    return [
        mapped(run)
        for run in (*listed(value.get("post")), *listed(value.get("patch")))
        if isinstance(run, dict)
    ]


def _langsmith_span(run: dict[str, Any]) -> Span:
    kind = run.get("run_type")
    what: ModelCall | ToolCall | None = None
    if kind == "llm":
        answer = answer_in(run.get("outputs"))
        what = ModelCall(
            messages_in(run.get("inputs")), None if run.get("error") and answer is None else answer
        )
    elif kind == "tool":
        outputs = mapped(run.get("outputs"))
        output = outputs.get("output", run.get("outputs"))
        # A message of LangChain, plain or as a constructor.
        message = mapped(mapped(output).get("kwargs") or output)
        text = answer_text(message.get("content") or output)
        said = text_in(run.get("error")) or text
        what = ToolCall("", str(run.get("name") or ""), said, bool(run.get("error")) or looks_failed(said))
    return Span(
        str(run.get("trace_id") or run.get("session_id") or run.get("id")),
        str(run.get("id")),
        str(run.get("parent_run_id") or ""),
        str(run.get("dotted_order") or run.get("start_time") or ""),
        what,
    )


# Langfuse


def is_langfuse(value: Any) -> bool:
    """A trace with its observations, or an observation of one."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("observations"), list):
        return any(
            "type" in mapped(inner) and ("startTime" in mapped(inner) or "traceId" in mapped(inner))
            for inner in value["observations"]
        )
    return (
        value.get("type") in _OBSERVATIONS
        and "traceId" in value
        and ("startTime" in value or "start_time" in value)
    )


_OBSERVATIONS = frozenset(
    (
        "GENERATION",
        "SPAN",
        "TOOL",
        "AGENT",
        "CHAIN",
        "EVENT",
        "RETRIEVER",
        "EMBEDDING",
        "EVALUATOR",
        "GUARDRAIL",
    )
)


def langfuse_spans(value: dict[str, Any]) -> Iterator[Span]:
    """The observations of a trace, or the one."""
    trace = mapped(value.get("trace")) or value
    if not isinstance(value.get("observations"), list):
        yield _observation(value, str(value.get("traceId")))
        return
    for raw in value["observations"]:
        inner = mapped(raw)
        yield _observation(inner, str(inner.get("traceId") or trace.get("id")))


def _observation(raw: dict[str, Any], trace: str) -> Span:
    kind = str(raw.get("type"))
    name = str(raw.get("name") or "")
    what: ModelCall | ToolCall | None = None
    error = str(raw.get("level")) == "ERROR"
    output = plain(raw.get("output"))
    if kind == "GENERATION":
        answer = answer_in(output)
        usage = mapped(raw.get("usage"))
        if answer is not None and usage and not answer.get("usage"):
            answer["usage"] = {
                "prompt_tokens": usage.get("input", usage.get("promptTokens")),
                "completion_tokens": usage.get("output", usage.get("completionTokens")),
            }
        what = ModelCall(messages_in(raw.get("input")), None if error and answer is None else answer)
    elif kind == "TOOL":
        text = text_in(raw.get("statusMessage")) if error and not output else answer_text(output)
        if isinstance(output, dict) and isinstance(output.get("content"), str | list):
            text = answer_text(output["content"])
        identity = str(mapped(plain(raw.get("input"))).get("id") or mapped(output).get("tool_call_id") or "")
        what = ToolCall(identity, name, text, error or looks_failed(text))
    return Span(
        trace,
        str(raw.get("id")),
        str(raw.get("parentObservationId") or ""),
        str(raw.get("startTime") or raw.get("start_time") or ""),
        what,
    )


# Weave


def is_weave(value: Any) -> bool:
    """A call: its operation, its trace, its inputs."""
    return isinstance(value, dict) and "op_name" in value and "trace_id" in value and "inputs" in value


def weave_spans(value: dict[str, Any]) -> Iterator[Span]:
    """The call as a span; calls of the providers' clients are the model's."""
    name = str(value["op_name"]).rsplit("/", 1)[-1].split(":")[0]
    what: ModelCall | ToolCall | None = None
    if re.search(
        r"(?:completions?|messages|responses|generate_content|converse)\.?(?:create|stream|parse)?$|litellm\.a?completion",
        name,
        re.IGNORECASE,
    ):
        what = ModelCall(messages_in(value.get("inputs")), answer_in(value.get("output")))
    elif value.get("parent_id") and not re.search(r"predict|agent|chain|evaluat|run", name, re.IGNORECASE):
        text = text_in(value.get("exception")) or answer_text(value.get("output"))
        what = ToolCall("", name.rsplit(".", 1)[-1], text, bool(value.get("exception")) or looks_failed(text))
    yield Span(
        str(value["trace_id"]),
        str(value.get("id")),
        str(value.get("parent_id") or ""),
        str(value.get("started_at") or ""),
        what,
    )
