"""aider's chat history: Markdown, a run from each ``# aider chat started at`` on.

Edits stand in the words and are made by the harness after the turn: each answer is an end of turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalkit.core.turns import Text, make_turn
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source

START = "# aider chat started at"
_EDIT = re.compile(r"> (?:Applied edit to|Did not apply edit to) (.+)")
_TOKENS = re.compile(r"> Tokens: ([\d.,]+)(k?) sent(?:, [\d.,]+k? cache \w+)*, ([\d.,]+)(k?) received")
_RUN = re.compile(r"> (?:Run shell command\? .*: y|Running (.+))")


class _Chat:
    def __init__(self) -> None:
        self.conversation = Conversation()
        self.ended: tuple[Ended, str] | None = None
        self._words: list[str] = []
        self._acted = False
        self._asked: list[str] = []
        self._tokens: tuple[int, int] | None = None

    def add(self, line: str) -> None:
        if line.startswith("#### "):
            self._close()
            self._asked.append(line[5:].rstrip())
            return
        if self._asked and line.strip():
            self.conversation.user("\n".join(self._asked))
            self._asked, self.ended = [], None
        if line.startswith("> "):
            self._told(line)
        elif line.strip() or self._words:
            if self._tokens is not None:
                self._close()
            self._words.append(line)

    def _told(self, line: str) -> None:
        edit, tokens, run = _EDIT.match(line), _TOKENS.match(line), _RUN.match(line)
        if tokens is not None:
            self._tokens = _count(tokens[1], tokens[2]), _count(tokens[3], tokens[4])
        elif edit is not None or run is not None:
            self._acted = True
        elif line.startswith("> ^C"):
            self.ended = "unknown", "interrupted by the user"

    def _close(self) -> None:
        words = "\n".join(self._words).strip()
        if words:
            sent = self._tokens or (None, None)
            self.conversation.turn(make_turn((Text(words),), "end_turn"), "", *sent)
            if self._acted:
                # The harness made the edits that stand in the words.
                self.conversation.acted()
        self._words, self._acted, self._tokens = [], False, None

    def finish(self) -> None:
        if self._asked:
            self.conversation.user("\n".join(self._asked))
        self._close()


def _count(digits: str, thousands: str) -> int:
    return int(float(digits.replace(",", "")) * (1000 if thousands else 1))


def chats(text: str, source: Source) -> Iterator[Recording]:
    """The runs of a history that hold a turn."""
    parts = text.split(f"\n{START}") if not text.startswith(START) else ("\n" + text).split(f"\n{START}")[1:]
    for number, part in enumerate(parts, 1):
        chat = _Chat()
        for line in part.split("\n")[1:]:
            chat.add(line)
        chat.finish()
        if chat.conversation.last is not None:
            yield chat.conversation.recording(source.id(f"chat{number}"), source.file, "aider", chat.ended)
