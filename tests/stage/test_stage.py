"""The stage by itself: what it answers to a request, and what it knows from moment to moment."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from msgspec.structs import replace

from evalkit.core.decisions import Ending
from evalkit.core.events import Approves, Compacts, Crashed, UserWrites
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Limits, Offered
from evalkit.core.turns import Call, Turn
from evalkit.scenarios.moves import ApproveSpec
from evalkit.scoring.arena import Arena
from evalkit.stage.compactor import WINDOW_FULL, Compactor, compactions, means
from evalkit.stage.stage import NeverEnds, Stage
from tests.helpers import scenario

LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}
HURRY = {"user": {"text": "Hurry.", "when": "between_turns"}}


def staged(moves: list[Any], *, remembers: bool = False, crashes: bool = False, **fields: Any) -> Stage:
    stage = Arena(scenario(moves, **fields), Offered()).stage(0)
    stage.remembers, stage.crashes = remembers, crashes
    return stage


def going_on(stage: Stage, **more: Any) -> Request:
    """The request that sends the last turn back with the results of its calls."""
    turn = stage.previous.turn
    if turn is None:
        return Request(**more)
    return Request(echo=turn, results=tuple(stage.run(call) for call in turn.runnable), **more)


def on(stage: Stage, times: int = 1) -> Turn:
    for _ in range(times):
        turn = stage.ask(going_on(stage))
    return turn


def compacting(by: str, moves: list[Any], **fields: Any) -> Stage:
    loaded = scenario(moves, **fields)
    stage = Arena(loaded, Offered()).stage(0)
    stage.compactor = Compactor(means(by), compactions(loaded))
    return stage


class TestWordsForAHarnessAtWork:
    def test_are_fetched_once_when_their_moment_has_come_and_not_said_again(self) -> None:
        stage = staged([LIST, HURRY, {"work": "rest"}, DONE], remembers=True)
        assert stage.fetch() is None
        on(stage)
        assert (stage.fetch(), stage.fetch()) == ("Hurry.", None)
        assert stage.happened == ((1, UserWrites("Hurry.")),)
        on(stage, 2)
        assert stage.fetch() is None
        assert stage.unsaid == ()
        assert len(stage.happened) == 1

    def test_what_the_script_has_come_to_waits_to_be_fetched(self) -> None:
        stage = staged([LIST, HURRY, {"work": "rest"}, DONE], remembers=True)
        on(stage, 2)
        assert stage.unsaid == ("Hurry.",)
        assert (stage.fetch(), stage.fetch()) == ("Hurry.", None)

    def test_words_for_an_ending_are_not_missing_while_it_works(self) -> None:
        later = {"user": {"text": "And then?", "when": "ended"}}
        stage = staged([LIST, later, {"work": "rest"}, DONE], remembers=True)
        on(stage, 2)
        assert stage.unsaid == ()

    def test_an_answer_is_held_for_words_in_a_turn_and_for_no_others(self) -> None:
        for when, held in (("in_turn", True), ("in_tool", False)):
            words = {"user": {"text": "Hurry.", "when": when}}
            stage = staged([LIST, words, {"work": 1}, {"work": "rest"}, DONE], remembers=True)
            on(stage, 3)
            assert stage.unsaid == ("Hurry.",)
            assert stage.owes_words is held

    def test_the_user_says_one_thing_at_a_time(self) -> None:
        second = {"user": {"text": "Please.", "when": "between_turns"}}
        stage = staged([LIST, HURRY, second, {"work": "rest"}, DONE])
        on(stage)
        assert stage.happens(going_on(stage)) == (UserWrites("Hurry."),)
        on(stage)
        assert stage.happens(going_on(stage)) == (UserWrites("Please."),)

    def test_who_has_left_says_nothing_more(self) -> None:
        leaves = {"user": {"text": "Bye.", "when": "between_turns", "closes": True}}
        stage = staged([LIST, leaves, HURRY, {"work": 1}, {"work": "rest"}, DONE])
        on(stage)
        assert stage.happens(going_on(stage)) == (UserWrites("Bye.", closes=True),)
        for _ in range(2):
            on(stage)
            assert stage.happens(going_on(stage)) == ()


class TestRequestsThatNoTurnAnswers:
    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("evalkit.stage.stage.IDLE_CAP", 3)

    def test_come_to_an_end(self) -> None:
        stage = staged([{"fault": {"status": 529, "times": 9}}, DONE])
        for _ in range(3):
            assert stage.ask(Request()).kind == "failed"
            assert stage.faulted
        with pytest.raises(NeverEnds):
            stage.ask(Request())

    def test_are_counted_anew_on_a_copy(self) -> None:
        stage = staged([{"fault": {"status": 529, "times": 9}}, DONE])
        for _ in range(2):
            stage.ask(Request())
        copy = stage.fork()
        assert [copy.ask(Request()).kind for _ in range(3)] == ["failed"] * 3
        with pytest.raises(NeverEnds):
            copy.ask(Request())

    def test_come_to_an_end_where_the_window_stays_full(self) -> None:
        stage = compacting("error", [LIST, {"compact": True}, {"work": "rest"}, DONE])
        on(stage)
        assert not stage.faulted
        assert [stage.ask(going_on(stage)) for _ in range(3)] == [WINDOW_FULL] * 3
        with pytest.raises(NeverEnds):
            stage.ask(going_on(stage))
        assert stage.faulted
        assert stage.trace is not None
        stage.trace.ended(0, False, "error")
        assert [decision.ended for decision in stage.trace.decisions] == ["error"]

    def test_are_counted_anew_after_a_turn(self) -> None:
        twice = {"fault": {"status": 529, "times": 2}}
        stage = staged([twice, LIST, twice, DONE])
        assert [stage.ask(Request()).kind for _ in range(3)] == ["failed", "failed", "content"]
        assert not stage.faulted
        request = going_on(stage)
        assert [stage.ask(request).kind for _ in range(3)] == ["failed", "failed", "content"]


class TestCompactions:
    def test_one_of_the_programs_own_lands_with_a_shorter_request(self) -> None:
        stage = compacting("length:4", [LIST, {"work": 1}, {"compact": True}, {"work": "rest"}, DONE])
        on(stage, 2)
        stage.ask(going_on(stage, shortened=True))
        assert stage.compactor is not None
        assert stage.compactor.landed == 1
        assert [turns for turns, _ in stage.happened] == [2]

    def test_one_of_the_programs_own_may_be_ahead_of_the_script(self) -> None:
        stage = compacting("length:4", [LIST, {"work": 1}, {"compact": True}, {"work": "rest"}, DONE])
        on(stage)
        stage.ask(going_on(stage, shortened=True))
        assert stage.compactor is not None
        assert (stage.compactor.landed, stage.compactor.due) == (1, [])
        assert [turns for turns, _ in stage.happened] == [1]

    def test_after_another_event_it_is_summed_up_as_ever(self) -> None:
        moves = [LIST, {"approve": ["users"]}, {"compact": True}, {"work": "rest"}, DONE]
        stage = staged(moves, world={"gated": ["users"]})
        on(stage)
        first, second = stage.happens(going_on(stage))
        assert (type(first), type(second)) == (Approves, Compacts)

    def test_one_that_was_to_come_does_not_come_to_who_begins_again(self) -> None:
        stage = compacting("usage:9000", [LIST, {"work": 1}, {"compact": True}, DONE], restarts=True)
        stage.remembers = True
        on(stage, 2)
        assert stage.reports == 9000
        stage.ask(Request(lost=True))
        assert stage.reports == 0

    def test_one_may_be_what_a_move_waits_for(self) -> None:
        long: Any = {"say": "One after the other. " * 50}
        stage = staged([long, LIST, {"say": "x", "until": "shortened"}, {"compact": True}, DONE])
        on(stage, 3)
        assert [type(event) for event in stage.happens(going_on(stage))] == [Compacts]

    def test_an_answer_that_names_another_item_shows_nothing(self) -> None:
        reply = {"text": "See orders.", "effect": "applied"}
        stage = compacting("length:4", [LIST, {"work": ["users"], "reply": reply}, {"compact": True}, DONE])
        on(stage, 2)
        going_on(stage)
        assert "Done: nothing." in stage.sum_up((), "See orders.", ())

    def test_an_answer_of_a_tool_that_is_none_shows_nothing(self) -> None:
        reply = {"text": "users: done", "effect": "none"}
        finish = {"call": "finish_task", "with": {"completed": ["users"]}, "reply": reply}
        stage = compacting("length:4", [LIST, finish, {"compact": True}, {"work": "rest"}, DONE])
        on(stage, 2)
        assert [result.text for result in going_on(stage).results] == ["users: done"]

    def test_a_summary_shows_what_calls_did_and_leaves_out_what_failed(self) -> None:
        stage = staged([LIST, DONE])
        done = Call("1", "do_item", '{"item": "users"}'), Result("1", "users: done")
        failed = Call("2", "do_item", '{"item": "orders"}'), Result("2", "orders: failed", True)
        broken = Call("3", "do_item", "{"), Result("3", "")
        said = stage.sum_up([done, failed, broken], "", ())
        assert said.endswith("Done: users.\nOpen: orders, invoices.")
        assert stage.summaries == (said,)

    def test_what_a_tool_answered_shows_what_it_did_and_a_listing_does_nothing(self) -> None:
        listed: list[Any] = [
            {"call": "list_payments"},
            {"work": 1},
            {"compact": True},
            {"work": "rest"},
            DONE,
        ]
        stage = compacting("length:4", listed, world={"kind": "ledger"})
        on(stage, 2)
        answers = [stage.ran[call.id].text for call in stage.previous.turn.calls] if stage.ran else []
        request = going_on(stage)
        history = "\n ".join([*answers, *(result.text for result in request.results)])
        assert stage.sum_up((), history, ()).endswith("Done: users.\nOpen: orders, invoices.")
        other = compacting("length:4", listed, world={"kind": "ledger"})
        on(other)
        (result,) = going_on(other).results
        assert all(name in result.text for name in ("users", "orders", "invoices"))
        assert "Done: nothing." in other.sum_up((), result.text, ())


class TestApprovals:
    GATED = {"gated": ["users"]}
    ALLOWS = {"approve": {"allow": ["users"]}}

    def test_a_decision_right_after_a_turn_is_about_its_calls_and_nothing_else_is_one(self) -> None:
        moves = [LIST, HURRY, {"work": ["users"]}, self.ALLOWS, {"work": "rest"}, DONE]
        stage = staged(moves, world=self.GATED)
        on(stage)
        assert stage.decides is None
        on(stage)
        assert stage.decides == ApproveSpec(allow=("users",))

    def test_a_kill_while_it_is_waited_for_comes_before_it(self) -> None:
        killed = {"crash": {"at": "waiting"}}
        stage = staged([LIST, {"work": ["users"]}, killed, self.ALLOWS, DONE], world=self.GATED)
        on(stage, 2)
        assert stage.decides == ApproveSpec(allow=("users",))

    def test_a_call_of_no_known_tool_or_that_does_not_parse_is_answered_as_ever(self) -> None:
        stage = staged([LIST, {"work": ["users"]}, self.ALLOWS, DONE], world=self.GATED)
        on(stage, 2)
        assert stage.run(Call("x", "deploy", '{"item": "users"}')).error
        assert stage.run(Call("y", "do_item", "{")).error
        assert [result.error for result in going_on(stage).results] == [False]


class TestKills:
    def test_before_a_call_nothing_of_it_has_happened(self) -> None:
        stage = staged([LIST, {"work": 1}, {"crash": {"before": True}}, {"work": "rest"}, DONE], crashes=True)
        turn = on(stage, 2)
        with pytest.raises(Crashed):
            stage.run(turn.runnable[0])
        assert stage.world.progress() == 0
        assert stage.run(turn.runnable[0]).error is False
        assert stage.world.progress() == 1

    def test_after_a_call_its_effect_has_happened_and_nobody_was_told(self) -> None:
        stage = staged([LIST, {"work": 1}, {"crash": {"at": "tool"}}, {"work": "rest"}, DONE], crashes=True)
        turn = on(stage, 2)
        with pytest.raises(Crashed):
            stage.run(turn.runnable[0])
        assert stage.world.progress() == 1
        assert stage.ran == {}

    def test_once_the_calls_are_answered_and_before_anything_else_happens(self) -> None:
        moves = [LIST, {"work": 2, "parallel": True}, {"crash": {"at": "answered"}}, HURRY, DONE]
        stage = staged(moves, crashes=True)
        turn = on(stage, 2)
        assert not stage.crash_answered
        stage.run(turn.runnable[0])
        assert not stage.crash_answered
        request = going_on(stage)
        assert stage.crash_answered
        with pytest.raises(Crashed):
            stage.happens(request)
        assert stage.happened == ()
        assert not stage.crash_answered

    def test_come_after_a_call_only_where_its_move_is_over(self) -> None:
        waits = {"call": "do_item", "with": {"item": "users"}, "until": "named"}
        stage = staged([waits, {"crash": True}, DONE], crashes=True)
        (call,) = on(stage).runnable
        assert not stage.run(call).error

    def test_after_words_alone_what_stands_behind_it_happens_to_who_was_resumed(self) -> None:
        stage = staged(
            [LIST, {"say": "On it."}, {"crash": True}, HURRY, {"work": "rest"}, DONE], crashes=True
        )
        on(stage, 2)
        request = going_on(stage)
        assert stage.happens(request) == ()
        with pytest.raises(Crashed):
            stage.ask(request)
        assert stage.happens(request) == (UserWrites("Hurry."),)

    def test_with_an_answer_that_has_arrived(self) -> None:
        stage = staged(
            [LIST, {"crash": {"at": "reply"}}, {"work": "rest"}, DONE], remembers=True, crashes=True
        )
        on(stage)
        assert not stage.crash_delivered
        on(stage)
        assert stage.crash_delivered
        stage.killed()
        assert not stage.crash_delivered

    def test_while_a_decision_is_waited_for_is_of_who_asks_for_one(self) -> None:
        moves = [
            LIST,
            {"work": ["users"]},
            {"approve": {"allow": ["users"]}},
            {"crash": {"at": "waiting"}},
            DONE,
        ]
        stage = staged(moves, crashes=True, world={"gated": ["users"]})
        stage.asks_person = True
        on(stage)
        stage.waits()
        on(stage)
        with pytest.raises(Crashed):
            stage.waits()
        stage.waits()

    def test_who_asks_nobody_is_killed_after_the_decision(self) -> None:
        moves = [
            LIST,
            {"work": ["users"]},
            {"approve": {"allow": ["users"]}},
            {"crash": {"at": "waiting"}},
            DONE,
        ]
        stage = staged(moves, crashes=True, world={"gated": ["users"]})
        turn = on(stage, 2)
        with pytest.raises(Crashed):
            on(stage)
        assert not stage.run(turn.runnable[0]).error
        assert stage.world.progress() == 1


class TestFromTheBeginning:
    def test_what_is_made_twice_after_it_is_one_call_more(self) -> None:
        stage = staged([LIST, {"work": 1}, {"work": 1, "again": True}, DONE], remembers=True, restarts=True)
        on(stage, 2)
        assert stage.trace is not None
        (action,) = (name for name in stage.trace.called if "users" in name)
        stage.ask(Request(lost=True))
        on(stage)
        assert stage.trace.called[action] == 1
        on(stage)
        assert stage.trace.called[action] == 2

    def test_what_the_first_request_says_is_no_answer_to_a_turn(self) -> None:
        stage = staged([{"say": "x", "until": "named"}, DONE], remembers=True, restarts=True)
        on(stage)
        turn = stage.ask(Request(lost=True, text="Open: users, orders, invoices."))
        assert stage.ask(Request(echo=turn, text="Go on.")).text == "x"

    def test_what_the_user_has_written_is_not_written_again(self) -> None:
        moves = [LIST, DONE, {"user": {"text": "And then?"}}, DONE]
        stage = staged(moves, remembers=True)
        on(stage, 2)
        ending, asks = Ending("done", ""), Request(echo=stage.previous.turn)
        assert stage.after(ending, asks) == (UserWrites("And then?"),)
        stage.ask(Request(after=0))
        on(stage)
        assert stage.after(ending, asks) == ()

    def test_every_call_may_be_made_once_more_and_no_oftener(self) -> None:
        moves = [LIST, {"work": 1}, {"work": 1}, DONE]
        stage = staged(moves, remembers=True, restarts=True)
        on(stage, 3)
        assert stage.trace is not None
        before = dict(stage.trace.called)
        assert before
        stage.ask(Request(lost=True))
        on(stage, 2)
        assert stage.trace.called == before
        stage.ask(Request(lost=True))
        on(stage, 2)
        assert stage.trace.called == before


def test_a_child_agent_that_never_ends_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalkit.stage.child_agents.HELPER_CAP", 4)
    child = {"repeat": {"times": "forever", "do": [LIST]}}
    stage = staged([{"delegate": {"name": "helper", "do": [child]}}, DONE])
    turn = on(stage)
    assert stage.run(turn.runnable[0]).text == "The child agent ended without an answer."
    assert stage.helpers.turns == 4


class TestHelpers:
    TWICE = {"delegate": {"name": "helper", "do": [{"work": ["users"]}, {"say": "Users."}]}}

    def test_the_same_call_again_in_a_turn_is_answered_as_before_and_in_a_later_one_is_none_of_the_scripts(
        self,
    ) -> None:
        stage = staged([self.TWICE, LIST, DONE])
        (call,) = on(stage).runnable
        assert stage.run(call).text == "Users."
        assert stage.run(call).text == "Users."
        on(stage)
        assert stage.run(call).error

    @pytest.mark.parametrize(
        ("stop", "until"),
        [
            *(({"refuse": {}}, until) for until in ("other_model", "changed")),
            *(({"truncate": "text"}, until) for until in ("higher_limit", "changed", "shortened")),
            ({"pause": {}}, "resent"),
        ],
    )
    def test_who_calls_them_gets_past_what_is_no_answer(self, stop: Any, until: str) -> None:
        do = [{**stop, "until": until}, {"say": "Helped."}]
        stage = staged([{"delegate": {"name": "helper", "do": do}}, DONE])
        assert stage.run(on(stage).runnable[0]).text == "Helped."

    @pytest.mark.parametrize(("careful", "effects"), [(False, 2), (True, 1)])
    def test_who_is_careful_lets_them_repeat_no_effect(self, careful: bool, effects: int) -> None:
        stage = staged([{"work": ["users"]}, self.TWICE, DONE], world={"once": True})
        stage.careful = careful
        on(stage)
        (call,) = on(stage).runnable
        assert stage.run(call).text == "Users."
        assert dict(stage.world.effects) == {"do_item users": effects}

    def test_who_was_stopped_by_a_limit_goes_on_without_it(self) -> None:
        stage = staged([{"delegate": {"name": "helper", "do": [LIST, LIST, {"say": "Helped."}]}}, DONE])
        (call,) = on(stage).runnable
        stage.limits = Limits(tokens=stage.tokens + 1)
        assert stage.run(call).error
        assert stage.helpers.turns == 1
        stage.limits = Limits()
        stage.ran.clear()
        assert stage.run(call).text == "Helped."
        assert stage.helpers.turns == 3

    def test_what_is_told_without_a_word_and_without_a_finish_is_no_answer(self) -> None:
        silent = {"say": "", "finish": {"completed": "all"}}
        stage = staged([{"delegate": {"name": "helper", "do": [silent]}}, DONE])
        (call,) = on(stage).runnable
        assert stage.run(call).text == "The child agent ended without an answer."


def test_an_answer_of_the_scripts_own_does_no_item() -> None:
    reply = {"text": "nothing was done", "effect": "none"}
    stage = staged([{"call": "do_item", "with": {"item": "users"}, "reply": reply}, DONE])
    (call,) = on(stage).runnable
    with patch.object(type(stage.world), "settle_calls", side_effect=AssertionError("done all the same")):
        assert stage.run(call).text == "nothing was done"


def test_a_copy_on_which_an_answer_is_tried_is_closed() -> None:
    stage = staged([{"call": "do_item", "with": {"item": "users"}, "reply": {"effect": "none"}}, DONE])
    (call,) = on(stage).runnable
    with patch.object(type(stage.world), "close") as closed:
        assert not stage.run(call).error
    assert closed.called
    assert stage.world.progress() == 0


class TestKillsWithinATurn:
    TURN = {"turn": [{"work": ["users"]}, {"crash": True}, {"work": ["orders"]}]}

    def test_come_behind_the_calls_that_stand_before_them(self) -> None:
        stage = staged([LIST, self.TURN, DONE], crashes=True)
        first, second = on(stage, 2).runnable
        with pytest.raises(Crashed):
            stage.run(first)
        assert stage.world.progress() == 1
        assert not stage.run(second).error


@pytest.mark.parametrize(("at", "eventful"), [("answered", True), ("ended", True), ("tool", False)])
def test_a_kill_between_two_requests_is_something_from_outside(at: str, eventful: bool) -> None:
    moves = [LIST, {"crash": {"at": at}}, DONE]
    assert staged(moves, crashes=True).eventful is eventful
    assert not staged(moves).eventful


def test_who_asks_nobody_finds_approved_what_a_person_has_allowed() -> None:
    stage = staged([{"approve": ["users"]}, {"work": ["users"]}, DONE], world={"gated": ["users"]})
    assert not stage.run(on(stage).runnable[0]).error
    asking = staged([{"approve": ["users"]}, {"work": ["users"]}, DONE], world={"gated": ["users"]})
    asking.asks_person = True
    assert asking.run(on(asking).runnable[0]).error


def test_what_has_not_come_yet_is_met_by_who_begins_again() -> None:
    moves = [LIST, {"fault": {"status": 529}}, LIST, {"fault": {"status": 401}}, DONE]
    stage = staged(moves, remembers=True, restarts=True)
    assert [on(stage).kind for _ in range(2)] == ["content", "failed"]
    stage.ask(Request(lost=True))
    assert [on(stage).kind for _ in range(2)] == ["content", "failed"]


def test_what_was_met_twice_over_is_not_met_again() -> None:
    moves = [{"fault": {"status": 529, "times": 3}}, LIST, DONE]
    stage = staged(moves, remembers=True, restarts=True)
    for _ in range(3):
        # Each time from the beginning, and one of the three is behind it.
        assert stage.ask(Request(lost=True)).kind == "failed"
    assert stage.ask(Request(lost=True)).kind == "content"


def test_what_a_harness_shows_as_done_is_part_of_what_its_future_depends_on() -> None:
    keys = []
    for failed in (False, True):
        stage = staged([{"work": ["users"]}, LIST, {"work": "unseen"}, DONE])
        on(stage)
        request = going_on(stage)
        (result,) = request.results
        stage.ask(replace(request, results=(Result(result.id, result.text, failed),)))
        keys.append(stage.key())
    assert keys[0] != keys[1]


def test_who_goes_on_after_a_conversation_beside_it_has_forgotten_nothing() -> None:
    stage = staged([LIST, LIST, LIST, DONE], remembers=True)
    on(stage, 3)
    stage.ask(Request(after=1, beside=True))
    stage.ask(Request(after=3))
    assert stage.trace is not None
    assert stage.trace.rolled_back == 0


def test_how_long_a_fault_is_silent() -> None:
    stage = staged([{"fault": {"stall_s": 2.0}}, DONE])
    stage.ask(Request())
    assert stage.stall_s == 2.0
    stage.ask(Request())
    assert stage.stall_s == 0


class TestAChildOfAChild:
    def test_its_last_words_answer_the_call_of_the_child_that_handed_it_on(self) -> None:
        inner = {"delegate": {"name": "second", "do": [{"work": ["users"]}, {"say": "users are done."}]}}
        outer = {"delegate": {"name": "first", "do": [inner, {"say": "All is handed on."}]}}
        stage = staged([outer, DONE])
        (call,) = on(stage).runnable
        first = stage.child(call)
        assert first is not None
        (handed_on,) = first.ask(Request()).runnable
        second = stage.child(handed_on, first)
        assert second is not None
        second.run(second.ask(Request()).runnable[0])
        said = second.ask(Request(echo=second.previous.turn))
        assert (said.text, first.ran[handed_on.id].text) == ("users are done.", "users are done.")
        assert stage.ran == {}
        first.ask(Request(echo=first.previous.turn))
        assert stage.ran[call.id].text == "All is handed on."
        assert stage.trace is not None
        assert stage.trace.orphan_calls == 0

    def test_who_is_killed_before_the_call_begins_no_child(self) -> None:
        outer = {"delegate": {"name": "first", "do": [{"work": ["users"]}, {"say": "users are done."}]}}
        stage = staged([outer, {"crash": {"before": True}}, DONE], crashes=True)
        (call,) = on(stage).runnable
        with pytest.raises(Crashed):
            stage.child(call)

    def test_one_that_ends_without_words_has_said_what_it_said_last(self) -> None:
        begins = {"turn": [{"say": "I begin."}, {"work": ["users"]}]}
        works = {"delegate": {"name": "first", "do": [begins, {"think": "That was all."}]}}
        stage = staged([works, DONE])
        (call,) = on(stage).runnable
        assert stage.run(call).text == "I begin."
