"""pi and what descends from it: sessions of lines with parents; OpenClaw's telemetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalkit.transcripts.formats.lines import Lines
from evalkit.transcripts.formats.messages import read_message
from evalkit.transcripts.formats.tree import chain
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in

_TYPES = frozenset(
    (
        "session",
        "message",
        "model_change",
        "thinking_level_change",
        "compaction",
        "branch_summary",
        "custom",
        "custom_message",
        "label",
        "session_info",
    )
)
_ROLES = ("user", "assistant", "toolResult", "tool_result", "bashExecution", "custom")


def is_pi(line: Any) -> bool:
    """A session's header of a version, or a message line with a parent and a role."""
    if not isinstance(line, dict):
        return False
    if line.get("type") == "session":
        return "version" in line and "id" in line
    return (
        line.get("type") == "message"
        and "parentId" in line
        and mapped(line.get("message")).get("role") in _ROLES
        and "timestamp" in line
    )


class Pi(Lines):
    """Takes the lines of a session; the run is the chain up from the last line."""

    format = "pi"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[dict[str, Any]] = []

    def add(self, line: Any) -> None:
        if isinstance(line, dict) and line.get("type") in _TYPES:
            self._lines.append(line)
        else:
            self.conversation.skip(
                f"a line of no known type; its fields: {', '.join(list(map(str, mapped(line)))[:6])}"
            )

    def finish(self) -> None:
        for line in chain([line for line in self._lines if line["type"] != "session"], "id", "parentId"):
            if line["type"] == "message":
                self.ended = read_pi_message(self.conversation, mapped(line.get("message")))
            elif line["type"] == "custom_message":
                self.conversation.user(text_in(line.get("content")), "harness")


def read_pi_message(conversation: Conversation, message: dict[str, Any]) -> tuple[Ended, str] | None:
    """Add a message; how the run ended if it was the last one."""
    role = message.get("role")
    if role in ("toolResult", "tool_result"):
        read_message(conversation, {**message, "role": "toolResult", "name": message.get("toolName")})
        return None
    if role == "assistant":
        conversation.model = str(message.get("model") or conversation.model)
        stop = message.get("stopReason")
        content = message.get("content")
        if stop in ("error", "aborted"):
            if content:
                read_message(conversation, message)
            why = text_in(message.get("errorMessage"))[:80]
            return ("error", why or "error") if stop == "error" else ("unknown", "aborted")
        read_message(conversation, message)
    elif role == "user":
        read_message(conversation, message)
    return None


_TELEMETRY = ("agent.start", "agent.end", "message.in", "message.out", "tool.start", "tool.end", "llm.usage")


def is_openclaw_event(line: Any) -> bool:
    """A line of OpenClaw's telemetry."""
    return (
        isinstance(line, dict)
        and line.get("type", line.get("event")) in _TELEMETRY
        and ("sessionKey" in line or "ts" in line or "runId" in line)
    )


class OpenClaw(Lines):
    """Takes telemetry: each ``agent.end`` has its run's whole conversation. ``success``: it ran."""

    format = "openclaw"

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, dict[str, Any]] = {}

    def add(self, line: Any) -> None:
        given = mapped(line)
        kind = given.get("type", given.get("event"))
        if kind == "agent.end" and isinstance(given.get("messages"), list):
            # A later end of a session holds the earlier ones' messages.
            name = str(given.get("sessionKey") or given.get("runId") or len(self._runs))
            self._runs[name] = given
        elif kind not in _TELEMETRY:
            self.conversation.skip(
                f"a line of no known type; its fields: {', '.join(list(map(str, given))[:6])}"
            )

    def recordings(self, source: Source) -> Iterator[Recording]:
        for name, end in self._runs.items():
            conversation = Conversation()
            conversation.odd, conversation.odd_count = self.conversation.odd, self.conversation.odd_count
            ended = None
            for message in listed(end["messages"]):
                ended = read_pi_message(conversation, mapped(message))
            if end.get("success") is False and ended is None:
                ended = "error", text_in(end.get("error"))[:80] or "agent.end without success"
            yield conversation.recording(source.id(name), source.file, self.format, ended)
        if not self._runs:
            yield self.conversation.recording(source.id(), source.file, self.format, None)
