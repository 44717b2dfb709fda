"""Episodes on the wire, without a network: bodies in, replies out."""

from __future__ import annotations

import json
from typing import Any

from evalkit.core.tasks import Offered
from evalkit.scoring.arena import Arena
from evalkit.stage.stage import Stage
from evalkit.wire.answers import Answer, failed
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.dialects import Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.replies import Reply
from tests.helpers import scenario

WORK = [
    {"call": "list_items"},
    {"work": 1},
    {"say": "One of three is done.", "claim": "partial"},
    {"work": "rest"},
    {"say": "All is done.", "claim": "done"},
]


def stage(model: Any, offered: Offered | None = None, **fields: Any) -> Stage:
    """A stage of a scenario, observed."""
    return Arena(scenario(model, **fields), offered or Offered()).stage(0)


def episode(model: Any = WORK, **fields: Any) -> WireEpisode:
    """An episode of a scenario."""
    return WireEpisode(stage(model, **fields))


def post(played: WireEpisode, dialect: Dialect, body: dict[str, Any], *, retried: bool = False) -> Reply:
    """A request for a turn; its answer arrives."""
    reply = played.post(dialect, json.dumps(body).encode(), retried=retried)
    played.delivered(reply.turn)
    return reply


def read(dialect: Dialect, reply: Reply) -> Answer:
    """What an answer says."""
    if reply.stream is None:
        return CODECS[dialect].decode(json.loads(reply.body))
    lines = b"".join(reply.stream).decode().splitlines()
    data = [line[6:] for line in lines if line.startswith("data: ") and line != "data: [DONE]"]
    return decode_stream(dialect, [json.loads(text) for text in data])


class Talk:
    """A client of a dialect that keeps its conversation as a careful one does."""

    def __init__(self, played: WireEpisode, dialect: Dialect = "anthropic", **fields: Any) -> None:
        self.played = played
        self.dialect: Dialect = dialect
        self.fields = fields
        self.said: list[dict[str, Any]] = [{"role": "user", "content": "Do every item."}]
        self.reply = Reply()
        self.answer = failed("nothing asked yet")

    def body(self, **fields: Any) -> dict[str, Any]:
        """The body of the next request."""
        name = "input" if self.dialect == "responses" else "messages"
        limit = {"max_tokens": 100} if self.dialect == "anthropic" else {}
        return {"model": "m", name: self.said, **limit, **self.fields, **fields}

    def ask(self, *, retried: bool = False, **fields: Any) -> Answer:
        """Ask; the answer is read and remembered."""
        self.reply = post(self.played, self.dialect, self.body(**fields), retried=retried)
        answer = read(self.dialect, self.reply)
        if answer.turn.kind != "failed":
            self.answer = answer
        return answer

    def back(self) -> None:
        """Send the last answer back."""
        raw = self.answer.raw
        if self.dialect == "anthropic":
            self.said.append({"role": "assistant", "content": raw})
        elif self.dialect == "responses":
            self.said.extend(raw)
        else:
            self.said.append(raw)

    def results(self, text: str = "ok") -> None:
        """Answer the calls of the last answer."""
        calls = self.answer.turn.calls
        if self.dialect == "anthropic":
            content = [{"type": "tool_result", "tool_use_id": call.id, "content": text} for call in calls]
            self.said.append({"role": "user", "content": content})
        elif self.dialect == "responses":
            self.said.extend(
                {"type": "function_call_output", "call_id": call.id, "output": text} for call in calls
            )
        else:
            self.said.extend({"role": "tool", "tool_call_id": call.id, "content": text} for call in calls)

    def user(self, text: str) -> None:
        """A user message."""
        self.said.append({"role": "user", "content": text})

    def on(self) -> Answer:
        """Send the last answer back with its results, and ask."""
        self.back()
        if self.answer.turn.calls:
            self.results()
        return self.ask()
