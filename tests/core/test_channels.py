"""What a turn says: each rule, and that the rooms that need it ask the same function."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalkit.core import channels
from evalkit.core.channels import (
    finish_call,
    finish_of,
    is_decision,
    is_nudge,
    is_own,
    skip_told,
    world_calls,
)
from evalkit.core.decisions import Reissue, Reject, Send
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered
from evalkit.core.turns import Call, Finish, StopReason, Text, Turn, make_turn

NOTHING = Offered()
FINISH = Offered(finish=True)


def call(tool: str = "do_item", arguments: Any = None, id: str = "c") -> Call:
    return Call(id, tool, arguments if isinstance(arguments, str) else json.dumps(arguments or {}))


def finish(*completed: str, skipped: tuple[str, ...] = (), reason: str = "", id: str = "f") -> Call:
    told = {"items_completed": list(completed), "items_skipped": list(skipped), "reason_skipped": reason}
    return call(FINISH_TOOL, told, id)


def turn(*blocks: Any, stop: StopReason = "tool_use", told: Finish | None = None) -> Turn:
    return make_turn(tuple(blocks), stop, told=told)


class TestDecisions:
    def test_a_finish_that_is_not_offered_is_an_unknown_tool(self) -> None:
        assert is_decision(turn(finish("a")), FINISH)
        assert not is_decision(turn(finish("a")), NOTHING)
        assert not is_own(FINISH_TOOL, NOTHING)
        assert not is_own(CHECKLIST_TOOL, FINISH)
        assert is_own(CHECKLIST_TOOL, Offered(checklist=True))

    def test_only_the_agreed_word_and_only_whole(self) -> None:
        said = turn(Text("All done. OVER"), call())
        assert is_decision(said, Offered(keyword="OVER"))
        assert not is_decision(said, Offered(keyword="OVE"))
        assert not is_decision(said, NOTHING)

    def test_a_typed_output_is_none_beside_calls(self) -> None:
        output = Text('{"summary": "x", "completed": []}')
        assert is_decision(turn(output, stop="end_turn"), Offered(output=True))
        assert not is_decision(turn(output, call()), Offered(output=True))

    @pytest.mark.parametrize(
        "stop",
        ["pause_turn", "compaction", "max_tokens", "context_window", "refusal", "failed", "in_progress"],
    )
    def test_protocol_states_are_none(self, stop: StopReason) -> None:
        assert not is_decision(turn(Text("All done. OVER"), stop=stop), Offered(keyword="OVER"))


class TestFinishes:
    def test_of_several_the_last_counts(self) -> None:
        both = turn(finish("a", skipped=("b",), reason="later"), finish("a", "b", id="g"))
        assert finish_of(both, FINISH) == Finish(("a", "b"))
        assert skip_told(both, FINISH) == ()

    def test_the_last_whose_arguments_are_an_object(self) -> None:
        for broken in ('{"items_comp', "[1]", '"done"', "null"):
            mixed = turn(finish("a"), call(FINISH_TOOL, broken, "g"))
            counts = finish_call(mixed, FINISH)
            assert counts is not None
            assert counts.id == "f"
            assert finish_of(mixed, FINISH) == Finish(("a",))

    def test_arguments_that_are_no_object_are_a_finish_with_nothing_in_it(self) -> None:
        alone = turn(call(FINISH_TOOL, '{"items_comp'))
        assert finish_of(alone, FINISH) == Finish()
        assert is_decision(alone, FINISH)

    def test_what_is_not_of_the_shape_says_nothing(self) -> None:
        odd = turn(
            call(FINISH_TOOL, {"items_completed": "a", "items_skipped": [1, "b"], "reason_skipped": 7})
        )
        assert finish_of(odd, FINISH) == Finish((), ("b",), "")

    def test_words_tell_one_where_no_tool_does(self) -> None:
        told = Finish((), ("b",), "no access")
        assert finish_of(turn(Text("x"), told=told, stop="end_turn"), FINISH) == told
        assert finish_of(turn(finish("a"), told=told), FINISH) == Finish(("a",))
        assert finish_of(turn(finish("a"), told=told), NOTHING) == told


class TestSkips:
    TOLD = Finish((), ("b",), "no access")

    @pytest.mark.parametrize("stop", ["max_tokens", "context_window", "refusal", "failed"])
    def test_none_is_told_where_a_turn_was_cut_off_or_refused(self, stop: StopReason) -> None:
        assert skip_told(turn(Text("x"), stop=stop, told=self.TOLD), FINISH) == ()
        assert skip_told(turn(finish(skipped=("b",), reason="r"), stop=stop), FINISH) == ()

    def test_in_any_channel_and_beside_calls(self) -> None:
        assert skip_told(turn(Text("x"), stop="end_turn", told=self.TOLD), NOTHING) == ("b",)
        assert skip_told(turn(Text("x"), call(), told=self.TOLD), NOTHING) == ("b",)
        assert skip_told(turn(call(), finish(skipped=("b",), reason="r")), FINISH) == ("b",)

    def test_only_with_a_reason_and_through_an_offered_tool(self) -> None:
        assert skip_told(turn(Text("x"), told=Finish((), ("b",))), NOTHING) == ()
        assert skip_told(turn(finish(skipped=("b",), reason="r")), NOTHING) == ()


def test_a_limit_of_calls_counts_the_world_s() -> None:
    batch = turn(call(), finish("a"), call("nobody"), call("do_item", '{"cut', "d"))
    assert world_calls(batch, FINISH) == 2
    assert world_calls(batch, NOTHING) == 3


def test_a_nudge_is_added_after_a_decision() -> None:
    said = turn(Text("So."), stop="end_turn")
    assert is_nudge(said, Send("Continue."), NOTHING)
    assert is_nudge(turn(finish("a")), Reject("No."), FINISH)
    assert not is_nudge(said, Send(), NOTHING)
    assert not is_nudge(turn(call()), Send("Go on."), NOTHING)
    assert not is_nudge(turn(Text("So."), stop="max_tokens"), Send("Continue."), NOTHING)
    assert not is_nudge(said, Reissue("retry"), NOTHING)


def test_the_rooms_ask_the_same_function() -> None:
    from evalkit.core import trace
    from evalkit.loop import transitions
    from evalkit.scenarios import emissions
    from evalkit.scoring import ideal
    from evalkit.stage import events
    from evalkit.strategies import folds
    from evalkit.worker import attempt, telemetry

    for room in (trace, events, ideal, attempt, telemetry):
        assert vars(room)["is_decision"] is channels.is_decision, room.__name__
    for room in (emissions, folds):
        assert vars(room)["skip_told"] is channels.skip_told, room.__name__
    assert vars(transitions)["finish_of"] is channels.finish_of
