"""Sessions of command-line agents: Copilot CLI, Kimi CLI, Droid, Grok CLI, Antigravity."""

from __future__ import annotations

from typing import Any

from evalkit.core.requests import Result
from evalkit.core.turns import Block, Call, Text, Thinking, make_turn, parse_arguments
from evalkit.transcripts.formats.failures import looks_failed
from evalkit.transcripts.formats.lines import Gathering, Lines
from evalkit.transcripts.formats.messages import answer, call_of, read_message
from evalkit.transcripts.formats.parts import answer_text, arguments_of, part_of
from evalkit.transcripts.formats.tree import chain
from evalkit.wire.answers import listed, mapped, text_in


def _fields(given: dict[str, Any]) -> str:
    return ", ".join(list(map(str, given))[:6]) or "none"


# GitHub Copilot CLI

_COPILOT = (
    "session.",
    "user.",
    "assistant.",
    "tool.",
    "abort",
    "subagent.",
    "hook.",
    "system.",
    "skill.",
    "permission.",
)


def is_copilot(line: Any) -> bool:
    """An event with its data: a dotted type, ``data``, and ids."""
    return (
        isinstance(line, dict)
        and isinstance(line.get("type"), str)
        and line["type"].startswith(_COPILOT)
        and isinstance(line.get("data"), dict)
        and ("parentId" in line or "timestamp" in line)
    )


class Copilot(Lines):
    """Takes the events of ``events.jsonl``."""

    format = "copilot-cli"

    def __init__(self) -> None:
        super().__init__()
        self._thought = ""

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind, data = str(given.get("type")), mapped(given.get("data"))
        if data.get("parentToolCallId"):
            # A child agent's: its claims end only the child.
            return
        if kind == "user.message":
            self.ended = None
            own = data.get("source") not in (None, "user")
            self.conversation.user(text_in(data.get("content")), "harness" if own else "user")
        elif kind == "assistant.reasoning":
            self._thought = text_in(data.get("content"))
        elif kind == "assistant.message":
            self._turn(data)
        elif kind == "tool.execution_complete":
            result = data.get("result")
            text = text_in(
                mapped(result).get("content") or mapped(data.get("error")).get("message") or result
            )
            flag = data.get("success")
            failed = not flag if isinstance(flag, bool) else looks_failed(text)
            # A command that failed is told as a tool that ran.
            self.conversation.result(str(data.get("toolCallId")), text, failed or looks_failed(text))
        elif kind == "abort":
            self.ended = "unknown", f"aborted ({data.get('reason') or 'no reason'})"
        elif kind == "session.error":
            self.ended = "error", text_in(data.get("message"))[:80] or "error"
        elif kind == "system.message":
            self.conversation.system(text_in(data.get("content")))
        elif not kind.startswith(_COPILOT):
            self.conversation.skip(f"a line of no known type; its fields: {_fields(given)}")

    def _turn(self, data: dict[str, Any]) -> None:
        self.ended = None
        text, thought = text_in(data.get("content")), self._thought or text_in(data.get("reasoningText"))
        self._thought = ""
        calls = [call_of(raw, place) for place, raw in enumerate(listed(data.get("toolRequests")))]
        blocks = (*((Thinking(thought),) if thought else ()), *((Text(text),) if text else ()), *calls)
        tokens = data.get("outputTokens")
        self.conversation.turn(
            make_turn(blocks, "tool_use" if calls else "end_turn"),
            output_tokens=tokens if isinstance(tokens, int) else None,
        )


# Kimi CLI


def is_kimi(line: Any) -> bool:
    """A wire line: its own types, or an event within one."""
    if not isinstance(line, dict) or not isinstance(line.get("type"), str):
        return False
    return line["type"] in ("context.append_loop_event", "context.append_message", "turn.prompt") or (
        line["type"] == "metadata" and "protocol_version" in line
    )


class Kimi(Lines):
    """Takes the lines of a wire file. A turn is a step that ended."""

    format = "kimi-cli"

    def __init__(self) -> None:
        super().__init__()
        self._gathered = Gathering(self.conversation)
        self._answers: list[Result] = []
        self._steps = 0

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind = str(given.get("type"))
        if kind == "turn.prompt":
            self._said(given, "user_input", "input", "content", "text")
        elif kind == "context.append_loop_event":
            self._event(mapped(given.get("event")))
        elif kind == "context.append_message":
            message = mapped(given.get("message")) or given
            origin = mapped(given.get("origin") or message.get("origin")).get("kind")
            if origin not in (None, "user") and message.get("role") == "user":
                self.conversation.user(text_in(message.get("content")), "harness")
        elif kind == "turn.cancel":
            self.ended = "unknown", "cancelled by the user"
        elif kind == "turn.steer":
            self._said(given, "user_input", "input", "content", "text")
        elif not kind.startswith(
            (
                "metadata",
                "llm.",
                "context.",
                "turn.",
                "full_compaction",
                "config",
                "permission",
                "tools.",
                "usage",
                "session",
                "mcp",
            )
        ):
            self.conversation.skip(f"a line of no known type; its fields: {_fields(given)}")

    def _said(self, given: dict[str, Any], *names: str) -> None:
        self.ended = None
        for name in names:
            if text_in(given.get(name)):
                self.conversation.user(text_in(given[name]))
                return

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind == "step.begin":
            # A step that never ended was cancelled or failed: it is no turn.
            self._gathered = Gathering(self.conversation)
            self._steps += 1
            self._gathered.open(f"step-{self._steps}")
            self._answers = []
        elif kind == "content.part":
            part = part_of(
                event.get("part") or event.get("content") or {k: v for k, v in event.items() if k != "type"}
            )
            if isinstance(part, Text | Thinking):
                self._gathered.blocks.append(part)
        elif kind == "tool.call":
            raw = mapped(event.get("tool_call") or event.get("toolCall")) or event
            self._gathered.blocks.append(call_of(raw, len(self._gathered.blocks)))
        elif kind == "tool.result":
            self._result(event)
        elif kind == "step.end":
            self._gathered.label = event.get("finishReason") or event.get("finish_reason")
            self._gathered.usage = mapped(event.get("usage"))
            self._gathered.close()
            self.ended = None
            for result in self._answers:
                answer(self.conversation, result)
            self._answers = []

    def _result(self, event: dict[str, Any]) -> None:
        inner = mapped(event.get("result")) or event
        identity = str(
            event.get("toolCallId")
            or event.get("tool_call_id")
            or inner.get("tool_call_id")
            or event.get("id")
            or ""
        )
        text = answer_text(
            inner.get("output") or inner.get("content") or inner.get("text") or event.get("result")
        )
        flag = inner.get("isError", inner.get("is_error", event.get("isError")))
        result = Result(identity, text, flag if isinstance(flag, bool) else looks_failed(text))
        if self._gathered.name is None:
            answer(self.conversation, result)
        else:
            self._answers.append(result)


# Factory Droid


def is_droid(line: Any) -> bool:
    """A session store's header, or the lines of its streamed output."""
    if not isinstance(line, dict):
        return False
    kind = line.get("type")
    if kind == "session_start":
        return "id" in line or "session_id" in line or "title" in line
    if kind in ("tool_call", "tool_result"):
        return "toolCallId" in line or "toolId" in line
    return kind == "completion" and "finalText" in line


class Droid(Lines):
    """Takes a session: its store's messages with parents, or the lines of ``stream-json``."""

    format = "droid"

    def __init__(self) -> None:
        super().__init__()
        self._stored: list[dict[str, Any]] = []
        self._calls: list[Call] = []
        self._texts: list[str] = []

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind = given.get("type")
        if kind == "message" and isinstance(given.get("message"), dict):
            self._stored.append(given)
        elif kind == "message":
            self._streamed(given)
        elif kind == "tool_call":
            self._calls.append(
                Call(
                    str(given.get("toolCallId") or given.get("id")),
                    str(given.get("toolName")),
                    arguments_of(given.get("parameters")),
                )
            )
        elif kind == "tool_result":
            self._flush()
            text = answer_text(given.get("value"))
            flag = given.get("isError")
            self.conversation.result(
                str(given.get("toolCallId") or given.get("id")),
                text,
                flag if isinstance(flag, bool) else looks_failed(text),
            )
        elif kind == "completion":
            self._completion(text_in(given.get("finalText")))
        elif kind == "error":
            self.ended = "error", text_in(given.get("message"))[:80] or "error"
        elif kind not in ("session_start", "session_end", "system", "todo_state", "compaction_state"):
            self.conversation.skip(f"a line of no known type; its fields: {_fields(given)}")

    def _streamed(self, given: dict[str, Any]) -> None:
        text = text_in(given.get("text") or given.get("content"))
        if given.get("role") == "user":
            self._flush()
            self.conversation.user(text)
        elif text:
            self._texts.append(text)

    def _completion(self, text: str) -> None:
        if not self._calls and (not self._texts or self._texts[-1] != text):
            self._flush()
            self._texts.append(text)
        self._flush()
        self.ended = "done", "completion"

    def _flush(self) -> None:
        if self._calls or self._texts:
            blocks: tuple[Block, ...] = (*map(Text, self._texts), *self._calls)
            self.conversation.turn(make_turn(blocks, "tool_use" if self._calls else "end_turn"))
            self._calls, self._texts = [], []

    def finish(self) -> None:
        for line in chain(self._stored, "id", "parentId"):
            read_message(self.conversation, line["message"])
        self._flush()


# Grok CLI


def is_grok(line: Any) -> bool:
    """A line of ``chat_history.jsonl``: the type is the role, and the words or calls lie beside it."""
    if not isinstance(line, dict) or "message" in line or "uuid" in line or "role" in line or "data" in line:
        return False
    kind = line.get("type")
    if kind == "tool_result":
        return "tool_call_id" in line and "content" in line
    return kind in ("system", "user", "assistant", "reasoning") and (
        "content" in line or "tool_calls" in line or "encrypted_content" in line
    )


class Grok(Lines):
    """Takes the lines of a chat history."""

    format = "grok-cli"

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind = given.get("type")
        if kind == "assistant":
            self.ended = None
            read_message(self.conversation, {**given, "role": "assistant"})
        elif kind == "tool_result":
            read_message(self.conversation, {**given, "role": "tool"})
        elif kind == "user":
            if given.get("prior_turn_interrupt"):
                self.ended = "unknown", "interrupted by the user"
            own = given.get("synthetic_reason") is not None and self.conversation.last is not None
            read_message(self.conversation, {**given, "role": "user"}, "harness" if own else "user")
            self.ended = None if not own else self.ended
        elif kind == "system":
            self.conversation.system(text_in(given.get("content")))
        elif kind not in ("reasoning", "backend_tool_call"):
            self.conversation.skip(f"a line of no known type; its fields: {_fields(given)}")


# Antigravity CLI


def is_antigravity(line: Any) -> bool:
    """A step: its index, its source and its type."""
    return isinstance(line, dict) and "step_index" in line and "source" in line and "type" in line


class Antigravity(Lines):
    """Takes the steps; the model's are ``PLANNER_RESPONSE``, the other types answer its calls in order."""

    format = "antigravity"

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind, source = str(given.get("type")), given.get("source")
        if kind == "PLANNER_RESPONSE":
            self.ended = None
            calls = [
                _strung(call_of(raw, place)) for place, raw in enumerate(listed(given.get("tool_calls")))
            ]
            thought, text = text_in(given.get("thinking")), text_in(given.get("content"))
            blocks = (*((Thinking(thought),) if thought else ()), *((Text(text),) if text else ()), *calls)
            self.conversation.turn(make_turn(blocks, "tool_use" if calls else "end_turn"))
        elif source in ("USER_EXPLICIT", "USER"):
            self.ended = None
            self.conversation.user(text_in(given.get("content")))
        elif self.conversation.last is not None and self.conversation.last.turn.calls:
            text = text_in(given.get("content"))
            failed = str(given.get("status")).upper() in ("ERROR", "FAILED", "CANCELED") or looks_failed(text)
            answer(self.conversation, Result("", text, failed))
        elif not is_antigravity(given):
            self.conversation.skip(f"a line of no known type; its fields: {_fields(given)}")


def _strung(call: Call) -> Call:
    """Arguments that are JSON strings in strings, as what they say."""
    value = parse_arguments(call.arguments)
    if value is None:
        return call
    plain = {}
    for key, inner in value.items():
        read = parse_arguments(inner) if isinstance(inner, str) and inner[:1] == "{" else None
        plain[key] = inner.strip('"') if isinstance(inner, str) and read is None else (read or inner)
    return Call(call.id, call.tool, arguments_of(plain))
