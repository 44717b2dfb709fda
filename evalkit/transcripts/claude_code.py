"""Claude Code sessions: one JSONL file each, as the command-line tool keeps or streams them.

Lines are read in file order. Those of child agents (``isSidechain``) are left out: their claims end only the
child. A branch that the user went back from is read where it stands.
"""

from __future__ import annotations

from typing import Any

from evalkit.core.turns import Block, make_turn
from evalkit.transcripts.messages import read_message, stop_of, tokens_in, tokens_out
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source
from evalkit.wire.answers import listed, mapped, text_in
from evalkit.wire.anthropic_messages.answers import read_blocks

_TYPES = frozenset(
    ("user", "assistant", "system", "summary", "result", "attachment", "progress", "file-history-snapshot")
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
    named = "sessionId" in line or "session_id" in line or "leafUuid" in line
    return named or ("uuid" in line and "message" in line) or line["type"] == "file-history-snapshot"


class Session:
    """Takes the lines of a session; the blocks of one message may stand on several lines."""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.ended: tuple[Ended, str] | None = None
        self._message: str | None = None
        self._blocks: list[Block] = []
        self._label: Any = None
        self._usage: dict[str, Any] = {}

    def add(self, line: Any) -> None:
        """Take one line."""
        given = mapped(line)
        kind, message = given.get("type"), mapped(given.get("message"))
        if given.get("isSidechain") or given.get("parent_tool_use_id"):
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

    def recording(self, source: Source) -> Recording:
        """The session as read."""
        self._close()
        return self.conversation.recording(source.id(), source.file, "claude-code", self.ended)
