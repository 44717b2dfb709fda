"""Streams that break within a call, and right behind one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalkit.core.tasks import Offered
from evalkit.wire.dialects import DIALECTS, Dialect
from evalkit.wire.expressible import not_expressible
from tests.helpers import scenario
from tests.wire.wire import Talk, episode

BOTH = pytest.mark.parametrize("dialect", DIALECTS)


def model(cut: str) -> list[Any]:
    return [{"call": "list_items"}, {"fault": {"cut": cut}}, {"work": "rest"}, {"say": "Done."}]


def broken(dialect: Dialect, cut: str) -> tuple[Talk, str]:
    """A client whose second answer breaks off, and what of it has come."""
    talk = Talk(episode(model(cut)), dialect, stream=True)
    talk.ask()
    talk.back()
    talk.results()
    reply = talk.played.post(dialect, json.dumps(talk.body()).encode())
    assert (reply.cut, reply.turn) == ("mid", 0)
    assert reply.stream is not None
    return talk, b"".join(reply.stream).decode()


def arguments(text: str) -> str:
    """The call's arguments as far as they have come, in whatever parts."""
    found = ""
    for line in text.splitlines():
        if line.startswith("data: {"):
            data = json.loads(line[6:])
            delta = data.get("delta")
            if isinstance(delta, dict):
                found += delta.get("partial_json", "")
            elif isinstance(delta, str) and "arguments" in data["type"]:
                found += delta
            for choice in data.get("choices", ()):
                for call in choice["delta"].get("tool_calls", ()):
                    found += call["function"].get("arguments", "")
    return found


@BOTH
def test_after_a_call_the_call_is_whole_and_nothing_ends_the_stream(dialect: Dialect) -> None:
    _, text = broken(dialect, "after_call")
    assert json.loads(arguments(text)) == {"item": "users"}
    assert not any(end in text for end in ("message_stop", "response.completed", "[DONE]"))


@BOTH
def test_in_a_call_its_arguments_are_cut(dialect: Dialect) -> None:
    _, text = broken(dialect, "in_call")
    assert "users" not in arguments(text)
    with pytest.raises(json.JSONDecodeError):
        json.loads(arguments(text))


@BOTH
def test_a_harness_that_runs_the_call_all_the_same_is_seen(dialect: Dialect) -> None:
    talk, _ = broken(dialect, "after_call")
    talk.played.run_tool("do_item", {"item": "users"})
    observed = talk.played.script.trace
    assert observed is not None
    assert observed.ran_cut_off_call
    assert observed.orphan_calls == 1


@BOTH
def test_one_that_asks_again_is_answered(dialect: Dialect) -> None:
    talk, _ = broken(dialect, "after_call")
    assert [call.tool for call in talk.ask().turn.calls] == ["do_item"]
    talk.played.run_tool("do_item", {"item": "users"})
    observed = talk.played.script.trace
    assert observed is not None
    assert not observed.ran_cut_off_call


@BOTH
@pytest.mark.parametrize("cut", ["in_call", "after_call"])
def test_only_a_stream_can_break_so(dialect: Dialect, cut: str) -> None:
    loaded = scenario(model(cut))
    reason = not_expressible(loaded, dialect, streamed=False, offered=[Offered()])
    assert reason is not None
    assert "only a stream can break so" in reason
    assert not_expressible(loaded, dialect, streamed=True, offered=[Offered()]) is None
