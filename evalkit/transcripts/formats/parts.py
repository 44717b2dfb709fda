"""The blocks that messages are made of, in whatever dialect: words, thinking, calls, answers, files.

APIs and harnesses mix their shapes, so every block is read by one rule wherever it stands; what a block is of
is told by its ``type``, or by its only key where it has none (Bedrock, Gemini).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, ServerCall, Text, Thinking, parse_arguments
from evalkit.transcripts.formats.failures import exit_code, looks_failed
from evalkit.wire.answers import encode_json, listed, mapped, text_in

_WORDS = frozenset(("text", "output_text", "input_text", "summary_text", "message", "markdown"))
_THOUGHTS = frozenset(
    (
        "thinking",
        "redacted_thinking",
        "reasoning",
        "thought",
        "think",
        "compaction",
        "reasoning_content",
        "reasoning_text",
    )
)
_CALLS = frozenset(
    ("tool_use", "tool-call", "tool_call", "toolcall", "function_call", "functioncall", "tooluse", "tool-use")
)
_RESULTS = frozenset(
    (
        *("tool_result", "tool-result", "toolresult", "tool_call_response", "tool_response", "tool-return"),
        *("functionresponse", "function_response", "function_call_output", "tool_call_output"),
    )
)
_SERVER = frozenset(
    ("server_tool_use", "mcp_tool_use", "executablecode", "executable_code", "builtin-tool-call")
)
#: Known, and neither words nor calls.
_SILENT = frozenset(
    (
        *(
            "image",
            "image_url",
            "input_image",
            "input_file",
            "input_audio",
            "document",
            "file",
            "audio",
            "video",
        ),
        *("media", "data", "inlinedata", "inline_data", "filedata", "file_data", "source", "source-url"),
        *("source-document", "cachepoint", "cache_point", "cachecontrol", "citationscontent", "step-start"),
        *(
            "step_start",
            "step-finish",
            "patch",
            "snapshot",
            "guardcontent",
            "video_url",
            "computer_screenshot",
        ),
        *(
            "toolreference",
            "tool_reference",
            "container_upload",
            "search_result",
            "fallback",
            "thoughtsignature",
        ),
        *("videometadata", "citations", "audio_url", "refusal_details", "reasoning_signature", "agent"),
    )
)
#: The shapes without a ``type``: the key that says what the block is.
_KEYS: tuple[tuple[str, str], ...] = (
    ("functionCall", "functioncall"),
    ("function_call", "function_call"),
    ("functionResponse", "functionresponse"),
    ("function_response", "function_response"),
    ("toolUse", "tooluse"),
    ("toolResult", "toolresult"),
    ("reasoningContent", "reasoning_content"),
    ("executableCode", "executablecode"),
    ("executable_code", "executable_code"),
    ("codeExecutionResult", "codeexecutionresult"),
    ("code_execution_result", "codeexecutionresult"),
    ("text", "text"),
    ("inlineData", "inlinedata"),
    ("inline_data", "inlinedata"),
    ("fileData", "filedata"),
    ("file_data", "filedata"),
    ("image", "image"),
    ("document", "document"),
    ("video", "video"),
    ("audio", "audio"),
    ("cachePoint", "cachepoint"),
    ("guardContent", "guardcontent"),
    ("citationsContent", "text"),
    ("thoughtSignature", "thoughtsignature"),
    ("thought_signature", "thoughtsignature"),
)

#: The text of a call's arguments while they are not valid JSON, as the wire's reader keeps it.
_PARTIAL = "partial_json"


class Odd(NamedTuple):
    """A block that nobody knows, by its type or its keys."""

    what: str


Part: TypeAlias = "Block | Result | Odd | None"


def arguments_of(value: Any) -> str:
    """A call's arguments as JSON text."""
    if isinstance(value, str):
        return value or "{}"
    return encode_json({} if value is None else value).decode()


def kind_of(block: Mapping[str, Any]) -> str:
    """What a block is, in lower case; empty where neither a type nor a key says it."""
    kind = block.get("type")
    if isinstance(kind, str) and kind:
        return kind.lower()
    for key, name in _KEYS:
        if key in block:
            return name
    return ""


def part_of(raw: Any, place: int = 0) -> Part:
    """A block; None for one that is known to hold neither words nor calls."""
    if isinstance(raw, str):
        return Text(raw)
    if not isinstance(raw, dict):
        return None
    kind = kind_of(raw)
    if kind in _WORDS:
        if raw.get("thought") is True:
            return Thinking(str(raw.get("text") or ""))
        text = raw.get("text")
        return Text(text if isinstance(text, str) else text_in(raw), _phase(raw))
    if kind in _THOUGHTS:
        return Thinking(_thought(raw))
    if kind in _CALLS:
        return call_part(raw, place)
    if kind in _RESULTS:
        return result_part(raw)
    if kind == "refusal":
        return Text(text_in(raw.get("refusal")))
    if kind in _SERVER:
        inner = mapped(raw.get("executableCode") or raw.get("executable_code"))
        name = raw.get("name") or raw.get("tool_name") or ("code_execution" if inner else "server tool")
        return ServerCall(str(raw.get("id") or f"server-{place}"), str(name), "" if inner else None)
    if (
        kind in _SILENT
        or kind.endswith(("_tool_result", "tool_search_output"))
        or kind == "codeexecutionresult"
    ):
        return None
    if not raw:
        return None
    return Odd(kind or ", ".join(list(map(str, raw))[:4]))


def _phase(raw: Mapping[str, Any]) -> str | None:
    phase = raw.get("phase")
    return phase if isinstance(phase, str) else None


def _thought(raw: Mapping[str, Any]) -> str:
    inner = raw.get("reasoningContent")
    if inner is not None:
        return text_in(mapped(inner).get("reasoningText") or inner)
    for key in ("thinking", "reasoning", "thought", "think", "text", "content", "summary"):
        if raw.get(key):
            return text_in(raw[key])
    return ""


def call_part(raw: Mapping[str, Any], place: int = 0) -> Call:
    """A call in any of the shapes: Anthropic, Bedrock, Gemini, AI SDK, pi, OpenTelemetry."""
    inner = raw
    for key in ("toolUse", "functionCall", "function_call", "toolCall", "tool_call", "function"):
        if isinstance(raw.get(key), dict):
            inner = {**raw, **raw[key]}
            break
    identity = first_of(inner, "id", "toolUseId", "toolCallId", "tool_call_id", "call_id", "callId")
    name = first_of(inner, "name", "toolName", "tool_name", "tool", "function_name")
    partial = inner.get(_PARTIAL)
    given = partial if isinstance(partial, str) else None
    if given is None:
        given = next(
            (inner[key] for key in ("input", "arguments", "args", "params", "parameters") if key in inner),
            None,
        )
    return Call(str(identity or f"call-{place}"), str(name or "unknown"), arguments_of(given))


def result_part(raw: Mapping[str, Any]) -> Result:
    """A tool's answer in any of the shapes; the id is the tool's name where the shape has no other."""
    inner = raw
    for key in ("toolResult", "functionResponse", "function_response", "tool_result"):
        if isinstance(raw.get(key), dict):
            inner = {**raw, **raw[key]}
            break
    identity = first_of(
        inner,
        "tool_use_id",
        "toolUseId",
        "toolCallId",
        "tool_call_id",
        "call_id",
        "callId",
        "id",
        "name",
        "toolName",
    )
    value = next(
        (
            inner[key]
            for key in ("content", "response", "output", "result", "value")
            if inner.get(key) is not None
        ),
        None,
    )
    text = answer_text(value)
    flag = next(
        (inner[key] for key in ("is_error", "isError", "error") if isinstance(inner.get(key), bool)), None
    )
    if flag is None and isinstance(inner.get("status"), str):
        flag = True if inner["status"] in ("error", "failed", "failure") else None
    if flag is None and isinstance(value, dict):
        flag = failed_fields(value)
    return Result(str(identity or ""), text, looks_failed(text) if flag is None else flag)


def failed_fields(value: Mapping[str, Any]) -> bool | None:
    """What an answer's own fields say of its call; None where they say nothing."""
    code = next(
        (exit_code(value[key]) for key in ("exit_code", "exitCode", "exit", "returncode") if key in value),
        None,
    )
    if code is not None:
        return code != 0
    for key in ("isError", "is_error"):
        if isinstance(value.get(key), bool):
            return bool(value[key])
    for key in ("error", "errorMessage"):
        if value.get(key):
            return True
    return (not value["success"]) if isinstance(value.get("success"), bool) else None


#: JSON that is only a wrapper of a text.
_WRAPPED = ("output", "result", "content", "text", "message", "error", "stdout")


def answer_text(value: Any) -> str:
    """The words of an answer: its text, or its value as JSON where it is no text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict):
        if value.get("type") in ("text", "json", "error-text", "error-json", "content") and "value" in value:
            return answer_text(value["value"])
        if len(value) == 1:
            ((key, inner),) = value.items()
            if key in (*_WRAPPED, "json"):
                return answer_text(inner)
        return text_in(value) if value.get("type") == "text" else encode_json(value).decode()
    if isinstance(value, list):
        words = [
            answer_text(inner) if isinstance(inner, str | dict) else encode_json(inner).decode()
            for inner in value
        ]
        return "\n".join(word for word in words if word)
    return encode_json(value).decode()


def first_of(value: Mapping[str, Any], *names: str) -> Any:
    """The first of the fields that has a value."""
    for name in names:
        if value.get(name):
            return value[name]
    return None


_TAGGED = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)
_THINK = re.compile(r"<think(?:ing)?>(.*?)</think(?:ing)?>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\s]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\s]+)>\n?(.*?)\n?</parameter>", re.DOTALL)


def tagged_blocks(text: str, number: int = 0) -> tuple[Block, ...]:
    """The blocks of a turn whose calls and thoughts stand in its text as tags (Hermes, OpenHands)."""
    calls: list[Call] = []
    for place, found in enumerate(_TAGGED.finditer(text)):
        value = mapped(parse_arguments(found[1]))
        calls.append(
            call_part({"id": f"call-{number}.{place}", **value})
            if value
            else Call(f"call-{number}.{place}", "unknown", found[1])
        )
    for place, found in enumerate(_FUNCTION.finditer(text), len(calls)):
        given = dict(_PARAMETER.findall(found[2]))
        calls.append(Call(f"call-{number}.{place}", found[1], arguments_of(given)))
    thoughts = [Thinking(found.strip()) for found in _THINK.findall(text) if found.strip()]
    words = _FUNCTION.sub("", _TAGGED.sub("", _THINK.sub("", text))).strip()
    return (*thoughts, *((Text(words),) if words else ()), *calls)


def listed_parts(content: Any) -> list[Any]:
    """Content as a list of blocks: a text is one."""
    if isinstance(content, str):
        return [content] if content else []
    if isinstance(content, dict):
        return [content]
    return listed(content)
