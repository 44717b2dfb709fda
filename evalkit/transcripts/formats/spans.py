"""Runs written down as spans: model calls and tool calls with a start time and a parent.

A model call's span repeats the conversation before it; what is kept of it is the answer, and the messages
since the answer before, so that a trace costs its length and not its square. Model calls below a tool call
are a child agent's and are left out: its claims end only the child.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.transcripts.empty_sessions import empty_of
from evalkit.transcripts.formats.messages import is_message, read_message
from evalkit.transcripts.recording import Conversation, Ended, Unreadable
from evalkit.wire.answers import mapped, text_in

#: Model calls of a trace whose input is kept whole: which of them is the first is known at the end.
_WHOLE = 4
#: A trace is taken as whole when this many spans of others have come since its last one.
QUIET = 5_000


class ModelCall(msgspec.Struct, frozen=True):
    """One model call: the messages before it (all, for the first) and its answer, as chat messages."""

    before: list[dict[str, Any]]
    answer: dict[str, Any] | None


class ToolCall(msgspec.Struct, frozen=True):
    """One tool call, by the call's id where it is known, else by the tool's name."""

    id: str
    tool: str
    text: str
    error: bool


class Span(msgspec.Struct, frozen=True):
    """A span of interest, or one that only says who its parent is."""

    trace: str
    id: str
    parent: str
    start: str
    what: ModelCall | ToolCall | None = None
    ended: tuple[Ended, str] | None = None


class Trace:
    """The spans of one run."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.spans: list[Span] = []
        self.parents: dict[str, tuple[str, bool]] = {}
        self.ended: tuple[Ended, str] | None = None
        self.empty = 0
        self._calls = 0

    def add(self, span: Span) -> None:
        """Keep what matters of a span; one that was told before is told again."""
        if span.id in self.parents and span.what is not None:
            self.spans = [other for other in self.spans if other.id != span.id]
        self.parents[span.id] = (span.parent, isinstance(span.what, ToolCall))
        self.ended = span.ended or self.ended
        what = span.what
        if isinstance(what, ModelCall):
            if what.answer is None:
                self.empty += 1
                return
            self._calls += 1
            if self._calls > _WHOLE:
                what = ModelCall(_tail(what.before), what.answer)
            self.spans.append(msgspec.structs.replace(span, what=what))
        elif what is not None:
            self.spans.append(span)

    def _nested(self, span: Span) -> bool:
        parent, seen = span.parent, set()
        while parent and parent not in seen and parent in self.parents:
            seen.add(parent)
            parent, tool = self.parents[parent]
            if tool:
                return True
        return False

    def _wrappers(self) -> set[str]:
        """Model calls that only wrap another one: they tell its turn again."""
        models = {span.id for span in self.spans if isinstance(span.what, ModelCall)}
        found: set[str] = set()
        for name in models:
            parent, seen = self.parents[name][0], set()
            while parent and parent not in seen and parent in self.parents:
                seen.add(parent)
                if parent in models:
                    found.add(parent)
                parent, tool = self.parents[parent]
                if tool:
                    break
        return found

    def conversation(self, format: str) -> Conversation:
        """The run that the spans of a format tell. Unreadable where no model call has content."""
        conversation = Conversation()
        wrappers = self._wrappers()
        spans = sorted(
            (span for span in self.spans if span.id not in wrappers and not self._nested(span)),
            key=lambda span: span.start,
        )
        first = True
        told: set[tuple[str, str]] = set()
        for span in spans:
            if isinstance(span.what, ModelCall):
                _model_call(conversation, span.what, told, first=first)
                first = False
            elif isinstance(span.what, ToolCall):
                _tool_call(conversation, span.what)
        if first:
            raise Unreadable(
                f"its {self.empty} model calls hold no content; record messages with the spans"
                if self.empty
                else empty_of(format, "holds no model call")
            )
        return conversation


def _tail(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].get("role") in ("assistant", "model"):
            return messages[place + 1 :]
    return messages


def _model_call(
    conversation: Conversation, call: ModelCall, told: set[tuple[str, str]], *, first: bool
) -> None:
    answered = {result.id for result in conversation.last.results} if conversation.last else set()
    for message in call.before if first else _tail(call.before):
        role = str(message.get("role"))
        if role == "tool" and str(message.get("tool_call_id")) in answered:
            continue
        if role in ("system", "developer", "user", "human"):
            # What every call repeats is told once.
            said = (role, text_in(message.get("content") or message.get("parts")))
            if not first and (said in told or role in ("system", "developer")) and said[1]:
                continue
            told.add(said)
        if is_message(message):
            read_message(conversation, message)
    answer = {**mapped(call.answer), "role": "assistant"}
    if is_message(answer):
        read_message(conversation, answer)


def _tool_call(conversation: Conversation, call: ToolCall) -> None:
    step = conversation.last
    if step is None:
        return
    answered = {result.id for result in step.results}
    for asked in step.turn.calls:
        if asked.id not in answered and (asked.id == call.id or (not call.id and asked.tool == call.tool)):
            conversation.result(asked.id, call.text, call.error)
            return


class Traces:
    """The traces of a stream of spans; each is given out when it has been quiet for long, or at the end.

    ``count`` spans were taken.
    """

    def __init__(self) -> None:
        self.open: OrderedDict[str, tuple[int, Trace]] = OrderedDict()
        self.given: set[str] = set()
        self.late = 0
        self.count = 0

    def add(self, span: Span) -> Iterator[Trace]:
        """Take a span; gives out the traces that are whole now."""
        self.count += 1
        if span.trace in self.given:
            self.late += 1
            return
        _, trace = self.open.pop(span.trace, (0, None))
        trace = trace or Trace(span.trace)
        trace.add(span)
        self.open[span.trace] = (self.count, trace)
        while self.open:
            name, (touched, oldest) = next(iter(self.open.items()))
            if self.count - touched < QUIET:
                return
            del self.open[name]
            self.given.add(name)
            yield oldest

    def rest(self) -> Iterator[Trace]:
        """The traces that are still open, in the order in which they were last heard of."""
        for _, trace in self.open.values():
            yield trace
        self.open.clear()
