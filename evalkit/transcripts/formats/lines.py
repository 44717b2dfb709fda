"""What readers of sessions share: a run told line by line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from evalkit.core.turns import Block, Call, make_turn
from evalkit.transcripts.formats.messages import stop_of, tokens_in, tokens_out
from evalkit.transcripts.recording import Conversation, Ended, Recording
from evalkit.transcripts.source import Source


class Lines:
    """Takes the lines of one session; ``recordings`` gives the runs in it when all were taken."""

    #: The format's name.
    format: ClassVar[str] = ""

    def __init__(self) -> None:
        self.conversation = Conversation()
        self.ended: tuple[Ended, str] | None = None

    def add(self, line: Any) -> None:
        """Take one line."""
        raise NotImplementedError

    def finish(self) -> None:
        """All lines were taken."""

    def recordings(self, source: Source) -> Iterator[Recording]:
        """The runs as read."""
        self.finish()
        yield self.conversation.recording(source.id(), source.file, self.format, self.ended)


class Gathering:
    """One model response that stands on several lines: its blocks so far."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.name: str | None = None
        self.blocks: list[Block] = []
        self.label: Any = None
        self.usage: dict[str, Any] = {}

    def open(self, name: str) -> None:
        """A response of this name; another one that is open is closed."""
        if name != self.name:
            self.close()
            self.name = name

    def close(self) -> None:
        """The response is whole."""
        if self.name is not None and (self.blocks or self.label):
            called = any(isinstance(block, Call) for block in self.blocks)
            stop, native = stop_of(self.label, called)
            self.conversation.turn(
                make_turn(tuple(self.blocks), stop, native=native),
                input_tokens=tokens_in(self.usage) if self.usage else None,
                output_tokens=tokens_out(self.usage) if self.usage else None,
            )
        self.name, self.blocks, self.label, self.usage = None, [], None, {}
