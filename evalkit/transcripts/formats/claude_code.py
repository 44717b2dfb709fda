"""Claude Code sessions: one JSONL file each, as the command-line tool keeps or streams them; its web export.

Lines are read in file order. Those of child agents (``isSidechain``) are runs of their own below their
parent: their claims end only the child. In a child's own file every line is one; then it is the run. A branch
that the user went back from is read where it stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.core.turns import Block, make_turn
from evalkit.transcripts.formats.messages import read_message, stop_of, tokens_in, tokens_out
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.anthropic_messages.answers import read_blocks

_TYPES = frozenset(
    (
        *("user", "assistant", "system", "summary", "result", "attachment", "progress"),
        *("file-history-snapshot", "queue-operation", "permission-mode", "custom-title", "last-prompt"),
        *(
            "agent-name",
            "rate_limit_event",
            "stream_event",
            "tool_progress",
            "auth_status",
            "mode",
            "ai-title",
        ),
    )
)
#: User lines that the tool writes itself.
_OWN_WORDS = ("Stop hook feedback", "[Your previous response had no visible output", "Output token limit hit")
_INTERRUPTED = "[Request interrupted by user"

#: ``subtype`` of a result line (the SDK's ``ResultMessage``).
_ENDS: dict[str, Ended] = {
    "success": "done",
    "error_max_turns": "limit",
    "error_max_budget_usd": "limit",
    "error_during_execution": "error",
    "error_max_structured_output_retries": "error",
}


def is_claude_code(line: Any) -> bool:
    """Whether a line is one of a session."""
    if not isinstance(line, dict) or not isinstance(line.get("type"), str) or line["type"] not in _TYPES:
        return False
    if isinstance(mapped(line.get("message")).get("parts"), list):
        # Qwen Code writes the same lines around other messages.
        return False
    named = "sessionId" in line or "session_id" in line or "leafUuid" in line
    if line["type"] in ("user", "assistant"):
        return isinstance(line.get("message"), dict) and (named or "uuid" in line)
    return named or line["type"] == "file-history-snapshot"


def is_web_export(record: Any) -> bool:
    """A session as the web keeps it: one object with its lines."""
    lines = listed(mapped(record).get("loglines"))
    return bool(lines) and any(
        mapped(line).get("type") in ("user", "assistant") and "message" in mapped(line) for line in lines
    )


def web_export(record: dict[str, Any], source: Source) -> Recording:
    """One session of the web."""
    session = Session()
    for line in record["loglines"]:
        session.add(line)
    return next(iter(session.recordings(source)))


class Session:
    """Takes the lines of a session; the blocks of one message may stand on several lines."""

    def __init__(self, *, child: bool = False) -> None:
        self.conversation = Conversation()
        self.ended: tuple[Ended, str] | None = None
        self._child = child
        self._children: dict[str, Session] = {}
        self._roots: dict[str, str] = {}
        self._message: str | None = None
        self._blocks: list[Block] = []
        self._label: Any = None
        self._usage: dict[str, Any] = {}

    def add(self, line: Any) -> None:
        """Take one line."""
        given = mapped(line)
        kind, message = given.get("type"), mapped(given.get("message"))
        if not self._child and (given.get("isSidechain") or given.get("parent_tool_use_id")):
            self._children.setdefault(self._name_of(given), Session(child=True)).add(given)
            return
        if kind == "assistant":
            self._assistant(given, message)
        elif kind == "user":
            self._close()
            self._user(given, message)
        elif kind == "result":
            self._close()
            subtype = str(given.get("subtype"))
            native = str(given.get("terminal_reason") or subtype)
            self.ended = (
                (
                    "error"
                    if given.get("is_error") and subtype == "success"
                    else _ENDS.get(subtype, "unknown")
                ),
                native,
            )
        elif kind == "system" and given.get("subtype") == "init":
            for tool in listed(given.get("tools")):
                self.conversation.tools[str(tool)] = None
        elif kind not in _TYPES:
            self.conversation.skip(f"a line of no known type: {kind or ', '.join(list(map(str, given))[:6])}")

    def _name_of(self, line: dict[str, Any]) -> str:
        """Which child a line is of: by its agent's name, its call, or the line that it goes back to."""
        named = line.get("agentId") or line.get("parent_tool_use_id")
        if named:
            return str(named)
        own, parent = str(line.get("uuid")), str(line.get("parentUuid") or "")
        self._roots[own] = self._roots.get(parent, own)
        return self._roots[own]

    def _assistant(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        if line.get("isApiErrorMessage") or message.get("model") == "<synthetic>":
            self._close()
            self.ended = "error", text_in(message.get("content"))[:80]
            return
        self.ended = None
        name = str(message.get("id") or line.get("uuid"))
        if name != self._message:
            self._close()
            self._message = name
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": text_in(content)}]
        self._blocks += read_blocks([block for block in blocks if isinstance(block, dict)])
        self._label = message.get("stop_reason") or self._label
        self._usage = mapped(message.get("usage")) or self._usage
        self.conversation.model = str(message.get("model") or self.conversation.model)

    def _user(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        text = text_in(message.get("content"))
        if _INTERRUPTED in text[:200]:
            self.ended = "unknown", "interrupted by the user"
            return
        own = line.get("isMeta") or line.get("isCompactSummary") or text.startswith(_OWN_WORDS)
        if own and self.conversation.last is None:
            self.conversation.system(text)
            return
        if not own:
            self.ended = None
        read_message(self.conversation, {**message, "role": "user"}, "harness" if own else "user")

    def _close(self) -> None:
        if self._message is None:
            return
        called = any(type(block).__name__ == "Call" for block in self._blocks)
        stop, native = stop_of(self._label, called)
        self.conversation.turn(
            make_turn(tuple(self._blocks), stop, native=native),
            input_tokens=tokens_in(self._usage),
            output_tokens=tokens_out(self._usage),
        )
        self._message, self._blocks, self._label, self._usage = None, [], None, {}

    def recordings(self, source: Source) -> Iterator[Recording]:
        """The session as read, then its children; a file of one child alone is that run."""
        self._close()
        name = source.id()
        if self.conversation.last is None and self.ended is None and len(self._children) == 1:
            (child,) = self._children.values()
            yield from child.recordings(source)
            return
        yield self.conversation.recording(name, source.file, "claude-code", self.ended)
        for place, child in enumerate(self._children.values(), 1):
            child._close()
            if child.conversation.last is not None:
                inner = f"agent{place}" if not source.place else f"{source.place}.agent{place}"
                read = child.conversation.recording(source.id(inner), source.file, "claude-code", child.ended)
                yield msgspec.structs.replace(read, parent=name)
