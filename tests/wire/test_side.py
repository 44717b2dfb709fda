"""Side requests: recognised by rule, answered the same every time, counted apart."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.side_requests import REPLY, Side
from tests.wire.wire import Talk, episode, post, read, stage

TITLE = {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]}
HOOK = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["ok"],
}
OTHER = {"type": "object", "properties": {"verdict": {"type": "string"}}, "required": ["verdict"]}


def body(dialect: Dialect, schema: dict[str, Any] | None, system: str = "Name it.") -> dict[str, Any]:
    said = [{"role": "user", "content": "go"}]
    if dialect == "anthropic":
        asked = {"output_config": {"format": {"type": "json_schema", "schema": schema}}} if schema else {}
        return {"model": "small", "max_tokens": 50, "messages": said, "system": system, **asked}
    if dialect == "responses":
        form = {"text": {"format": {"type": "json_schema", "name": "n", "schema": schema}}} if schema else {}
        return {"model": "small", "input": said, "instructions": system, **form}
    shape = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}}
    messages = [{"role": "system", "content": system}, *said]
    return {"model": "small", "messages": messages, **(shape if schema else {})}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("kind", "schema"), [("title", TITLE), ("hook", HOOK)])
def test_titles_and_hooks_do_not_move_the_script(dialect: Dialect, kind: str, schema: dict[str, Any]) -> None:
    played = episode()
    first, second = (read(dialect, post(played, dialect, body(dialect, schema))).turn for _ in range(2))
    assert first == second
    value = json.loads(first.text)
    assert value == ({"title": REPLY} if kind == "title" else {"ok": True})
    assert played.seen.side == {kind: 2}
    assert (played.turns, played.seen.amnesia) == (0, 0)
    assert Talk(played, dialect).ask().turn.calls[0].tool == "list_items"


def test_a_structured_answer_without_tools_is_beside_a_conversation_that_has_some() -> None:
    played = episode()
    talk = Talk(played, tools=[{"name": "do_item", "input_schema": {"type": "object"}}])
    talk.ask()
    assert post(played, "anthropic", body("anthropic", OTHER)).said == "side request: structured"
    assert talk.on().turn.calls[0].tool == "do_item"
    assert played.seen.side == {"structured": 1}


def test_a_task_without_tools_may_ask_for_typed_output() -> None:
    played = episode([{"output": {"verdict": "done"}}])
    assert post(played, "chat", body("chat", OTHER)).said == "turn 1: end_turn"
    assert not played.seen.side


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_harness_names_its_own(dialect: Dialect) -> None:
    played = WireEpisode(stage([{"say": "Done."}]), sides=(Side("verifier", "You judge whether"),))
    reply = post(played, dialect, body(dialect, None, "You judge whether the work is over."))
    assert read(dialect, reply).turn.text == REPLY
    assert played.seen.side == {"verifier": 1}


def test_a_warm_up_asks_for_nothing() -> None:
    played = episode()
    warm = {"model": "m", "max_tokens": 0, "messages": [{"role": "user", "content": "go"}]}
    assert read("anthropic", post(played, "anthropic", warm)).turn.content == ()
    assert played.seen.side == {"warm-up": 1}


@pytest.mark.parametrize(
    ("dialect", "said"),
    [("anthropic", {"messages": [{"role": "user", "content": "1234"}]}), ("responses", {"input": "1234"})],
)
def test_counting_tokens_is_no_turn(dialect: Dialect, said: dict[str, Any]) -> None:
    played = episode()
    reply = played.count_tokens(dialect, json.dumps({"model": "m", **said}).encode())
    assert json.loads(reply.body)["input_tokens"] == 1
    assert played.seen.side == {"token count": 1}
    assert played.turns == 0
    assert played.count_tokens(dialect, b"{").status == 400
