"""Cursor agent transcripts: a message a line, blocks like Anthropic's, calls mostly without answers."""

from __future__ import annotations

import re
from typing import Any

from evalkit.transcripts.formats.lines import Lines
from evalkit.transcripts.formats.messages import read_message
from evalkit.wire.answers import listed, mapped

_QUERY = re.compile(r"\s*<user_query>\s*(.*?)\s*</user_query>\s*", re.DOTALL)
_HIDDEN = "[REDACTED]"


def is_cursor(line: Any) -> bool:
    """A line with a role whose words lie in ``message.content``, and no type of its own."""
    return (
        isinstance(line, dict)
        and line.get("role") in ("user", "assistant")
        and "content" not in line
        and "type" not in line
        and isinstance(mapped(line.get("message")).get("content"), list | str)
    )


class Cursor(Lines):
    """Takes the lines. Calls have no ids and often no answers: what is followed by a turn was answered."""

    format = "cursor"

    def add(self, line: Any) -> None:
        given = mapped(line)
        if is_cursor(given):
            content = given["message"]["content"]
            if isinstance(content, list):
                content = [_numbered(raw, place) for place, raw in enumerate(content) if not _hidden(raw)]
            self.ended = None
            read_message(self.conversation, {"role": given["role"], "content": _words(content)})
        elif given.get("type") == "turn_ended":
            status = str(given.get("status") or "")
            if status not in ("success", "completed"):
                self.ended = ("error" if status == "error" else "unknown"), f"turn ended: {status}"
        else:
            self.conversation.skip(
                f"a line of no known type; its fields: {', '.join(list(map(str, given))[:6])}"
            )


def _numbered(raw: Any, place: int) -> Any:
    if (
        isinstance(raw, dict)
        and raw.get("type") in ("tool_use", "tool_call", "tool-call")
        and not raw.get("id")
    ):
        return {**raw, "id": f"call-{place}"}
    return raw


def _hidden(raw: Any) -> bool:
    return isinstance(raw, dict) and str(raw.get("text") or raw.get("thinking") or "").strip() == _HIDDEN


def _words(content: Any) -> Any:
    if isinstance(content, str):
        return _QUERY.sub(r"\1", content)
    return [
        {**raw, "text": _QUERY.sub(r"\1", raw["text"])}
        if isinstance(raw, dict) and isinstance(raw.get("text"), str)
        else raw
        for raw in listed(content)
    ]
