"""Qwen Code sessions: lines like Claude Code's, messages in Gemini's ``parts``."""

from __future__ import annotations

from typing import Any

from evalkit.core.requests import Result
from evalkit.transcripts.formats.lines import Gathering, Lines
from evalkit.transcripts.formats.messages import answer, read_message
from evalkit.transcripts.formats.parts import Odd, part_of
from evalkit.transcripts.formats.tree import chain
from evalkit.wire.answers import listed, mapped, text_in

_OWN = ("notification", "hook", "reminder")


def is_qwen(line: Any) -> bool:
    """A session line whose message has ``parts``."""
    if not isinstance(line, dict) or line.get("type") not in ("user", "assistant", "tool_result"):
        return False
    return (
        "uuid" in line and "sessionId" in line and isinstance(mapped(line.get("message")).get("parts"), list)
    )


class Qwen(Lines):
    """Takes the lines of a session: the last branch; lines of one uuid are one message."""

    format = "qwen-code"

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[dict[str, Any]] = []

    def add(self, line: Any) -> None:
        if isinstance(line, dict):
            self._lines.append(line)
        else:
            self.conversation.skip(f"a {type(line).__name__} in place of a line")

    def finish(self) -> None:
        gathered = Gathering(self.conversation)
        for line in chain(self._lines, "uuid", "parentUuid"):
            kind, message = line.get("type"), mapped(line.get("message"))
            if kind == "assistant":
                self._model(gathered, line, message)
            elif kind == "tool_result":
                gathered.close()
                self._result(line, message)
            elif kind == "user":
                gathered.close()
                own = str(line.get("subtype") or "").startswith(_OWN)
                read_message(self.conversation, {**message, "role": "user"}, "harness" if own else "user")
        gathered.close()

    def _model(self, gathered: Gathering, line: dict[str, Any], message: dict[str, Any]) -> None:
        gathered.open(str(line.get("uuid")))
        for raw in listed(message.get("parts")):
            part = part_of(raw, len(gathered.blocks))
            if isinstance(part, Odd):
                self.conversation.skip(f"a part that nobody knows: {part.what}")
            elif part is not None and not isinstance(part, Result):
                gathered.blocks.append(part)
        gathered.usage = mapped(line.get("usageMetadata")) or gathered.usage
        self.conversation.model = str(line.get("model") or self.conversation.model)

    def _result(self, line: dict[str, Any], message: dict[str, Any]) -> None:
        status = mapped(line.get("toolCallResult")).get("status")
        for raw in listed(message.get("parts")):
            part = part_of(raw)
            if isinstance(part, Result):
                failed = (
                    part.error if status not in ("success", "error", "cancelled") else status != "success"
                )
                answer(self.conversation, Result(part.id, part.text, failed))
            elif text_in(raw):
                self.conversation.user(text_in(raw), "harness")
