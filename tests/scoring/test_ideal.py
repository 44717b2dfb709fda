"""The ideal driver and the ideal harness: when they go on, what they never do twice, when they give up."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import pytest

from evalkit.core.requests import Request
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode
from evalkit.stage.stage import Stage
from evalkit.strategies import conditions as c
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario

LIST: dict[str, Any] = {"call": "list_items"}
REST: dict[str, Any] = {"work": "rest"}
DONE: dict[str, Any] = {"say": "All is done.", "claim": "done"}
READS: dict[str, Any] = {"call": "read_item", "with": {"item": "users"}}
BILLS: dict[str, Any] = {"kind": "ledger", "items": ["bill-a", "bill-b"]}


def ideal(model: list[Any], offered: Offered = Offered(), **fields: Any) -> Any:  # noqa: B008
    return ideal_episode(Arena(scenario(model, **fields), offered), 0)


@contextmanager
def few_requests(most: int) -> Iterator[None]:
    """No more requests than so many, those of copies included."""
    asked = count(1)
    ask = Stage.ask

    def counted(stage: Stage, request: Request) -> Turn:
        assert next(asked) < most, "it does not come to an end"
        return ask(stage, request)

    with patch.object(Stage, "ask", counted):
        yield


class TestGoesOnWhileTheScriptComesNearerToItsEnd:
    def test_through_a_finite_repeat_of_any_length(self) -> None:
        sixty = [LIST, {"repeat": {"times": 60, "do": [READS]}}, REST, DONE]
        assert (ideal(sixty).outcome, ideal(sixty).turns) == ("done/complete", 65)
        assert (
            play(scenario(sixty), Strategy(done_when=c.silence(), max_turns=5)).outcome == "limit/reachable"
        )

    def test_through_repeats_within_repeats_and_moves_of_many_turns(self) -> None:
        inner = {"repeat": {"times": 9, "do": [READS, {"wait": {"item": "users", "polls": 3}}]}}
        assert ideal([LIST, {"repeat": {"times": 4, "do": [inner]}}, REST, DONE]).outcome == "done/complete"

    def test_through_pauses_which_are_no_turns_of_its_patience(self) -> None:
        # More than the turns in which nothing is settled that it waits for at most.
        paused = [LIST, {"repeat": {"times": 205, "do": [{"pause": {}, "until": "resent"}]}}, REST, DONE]
        assert ideal(paused).truth == "complete"

    def test_until_a_round_of_an_endless_repeat_leaves_all_as_it_was(self) -> None:
        inner = {"repeat": {"times": 1, "do": [READS]}}
        endless = [
            LIST,
            {"repeat": {"times": "forever", "do": [{**READS, "with": {"item": "orders"}}, inner]}},
        ]
        assert (ideal(endless).outcome, ideal(endless).turns) == ("escalated/stuck", 1 + 2 + 1)

    def test_of_no_turn_too_many_behind_a_fault(self) -> None:
        names = ["users", "orders", "invoices"]
        readings = [{**READS, "with": {"item": name}} for name in names]
        # Twelve turns after a decision: another is one too many, and comes with the second request.
        waits = [LIST, {"work": 1}, {"say": "On it."}, *readings * 4, {"fault": {"status": 529}}, *readings]
        run = ideal(waits)
        assert (run.outcome, run.turns, run.over_continuation) == ("escalated/stuck", 15, False)
        # So it has not met the fault, and whoever ends there is wrong.
        assert not Arena(scenario(waits), Offered()).accepts(0, "error", "stuck", None, 9)

    def test_not_within_a_repeat_without_end(self) -> None:
        names = ["users", "orders", "invoices"]
        readings = [{"repeat": {"times": 9, "do": [{**READS, "with": {"item": name}}]}} for name in names]
        endless = [LIST, {"work": 1}, {"repeat": {"times": "forever", "do": readings}}]
        # The round after the first leaves everything as it was, but 25 turns are over before.
        assert (ideal(endless).outcome, ideal(endless).turns) == ("escalated/stuck", 2 + 25)

    @pytest.mark.long
    @pytest.mark.parametrize("when", ["ended", "between_turns"])
    @pytest.mark.parametrize(
        "move",
        [
            {"call": "do_item"},
            {"pause": {}},
            {"fault": {"status": 400}},
            {"fault": {"status": 529}},
            {"wait": {"item": "users", "polls": 1}},
            {"either": [{"p": 0.5, "do": [READS]}]},
        ],
        ids=lambda move: next(iter(move)),
    )
    def test_not_for_a_user_who_writes_for_ever(self, move: Any, when: str) -> None:
        endless = {"repeat": {"times": "forever", "do": [{"user": {"text": "Go on.", "when": when}}, move]}}
        with few_requests(10_000):
            assert ideal([endless]).truth == "stuck"

    def test_from_each_turn_anew_only_where_going_on_would_be_in_vain(self) -> None:
        polled: Any = {"wait": {"item": "bill-a", "polls": 1}}
        words = {"user": {"text": "Go on.", "when": "between_turns"}}
        endless = {"repeat": {"times": "forever", "do": [words, polled]}}
        with few_requests(2_000):
            assert ideal([endless], world={**BILLS, "once": True}).truth == "stuck"

    @pytest.mark.rule("truth_is_spoiled_or_stuck")
    def test_not_for_a_move_that_is_played_again(self) -> None:
        assert ideal([LIST, {**READS, "until": "never"}, REST, DONE]).outcome == "escalated/stuck"

    @pytest.mark.rule("protocol_faults")
    def test_its_place_grows_turn_by_turn_and_round_by_round(self) -> None:
        stage = Arena(
            scenario([LIST, {"repeat": {"times": 2, "do": [READS, {"work": 2}]}}, DONE]), Offered()
        ).stage(0)
        places = []
        for _ in range(8):
            turn = stage.ask(Request(stage.previous.turn))
            places.append(stage.place())
            assert turn.kind == "content"
        assert places[:6] == sorted(set(places[:6]))
        assert places[6] == places[7]


class TestMakesNoEffectTwice:
    @pytest.mark.parametrize(
        "again",
        [{"work": ["bill-a"], "again": True}, {"work": ["bill-a", "bill-b", "bill-a"], "parallel": True}],
        ids=["in a turn of its own", "in one batch"],
    )
    def test_in_a_ledger(self, again: Any) -> None:
        model = [{"call": "list_payments"}, {"work": 1}, again, REST, DONE]
        run = ideal(model, world=BILLS)
        assert (run.outcome, run.duplicate_effects, run.spoiled) == ("done/complete", 0, False)
        assert play(scenario(model, world=BILLS), "silence").outcome == "done/spoiled"

    def test_of_what_was_accepted_and_will_have_it(self) -> None:
        late = {"work": ["bill-a"], "reply": {"effect": "late", "error": True, "text": "timed out"}}
        model = [{"call": "list_payments"}, late, {"work": ["bill-a"], "again": True}, REST, DONE]
        assert ideal(model, world=BILLS).outcome == "done/complete"
        assert play(scenario(model, world=BILLS), "silence").truth == "spoiled"

    def test_but_of_what_was_undone(self) -> None:
        model = [
            {"call": "list_payments"},
            REST,
            {"undo": ["bill-a"]},
            {"work": ["bill-a"], "again": True},
            DONE,
        ]
        assert ideal(model, world=BILLS).outcome == "done/complete"

    def test_where_every_repetition_counts(self) -> None:
        model = [LIST, {"work": 1}, {"work": ["users"], "again": True}, REST, DONE]
        once = ideal(model, world={"once": True})
        assert (once.outcome, once.duplicate_effects, once.correct) == ("done/complete", 0, True)
        assert play(scenario(model, world={"once": True}), "silence").duplicate_effects == 1

    def test_by_a_child(self) -> None:
        child = {"delegate": {"name": "clerk", "do": [{"work": ["bill-a"], "again": True}]}}
        model = [{"call": "list_payments"}, {"work": 1}, child, REST, DONE]
        assert ideal(model, world=BILLS).outcome == "done/complete"

    @pytest.mark.rule("spoiled")
    def test_of_a_reply_that_was_sent(self) -> None:
        mail = {"kind": "inbox", "items": ["t-1", "t-2"], "replies": ["t-1"]}
        model = [{"call": "list_flagged_threads"}, {"work": 1}, {"work": ["t-1"], "again": True}, REST, DONE]
        assert ideal(model, world=mail).outcome == "done/complete"
        assert play(scenario(model, world=mail), "silence").truth == "spoiled"


class TestFaults:
    @pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
    def test_that_can_pass_are_retried(self, status: int) -> None:
        assert ideal([LIST, {"fault": {"status": status, "times": 9}}, REST, DONE]).outcome == "done/complete"

    @pytest.mark.parametrize("status", [400, 401, 404, 422])
    def test_that_cannot_end_it_at_once(self, status: int) -> None:
        run = ideal([LIST, REST, {"fault": {"status": status}}, DONE], limits={"turns": 9})
        # What is finished is closed all the same.
        assert (run.outcome, run.turns) == ("done/complete", 4)
        early = ideal([LIST, {"fault": {"status": status, "times": 1}}, REST, DONE])
        assert (early.outcome, early.native, early.turns) == ("error/stuck", f"fault:http_{status}", 1)

    @pytest.mark.rule("accepted_error_at_a_fault")
    def test_error_is_accepted_where_the_wall_is_a_fault(self) -> None:
        down = scenario([LIST, {"fault": {"status": 503, "times": 900}, "until": "never"}, REST, DONE])
        assert play(down, "acceptance").outcome == "error/stuck"
        assert play(down, "acceptance").correct
        silent = scenario([LIST, {**READS, "until": "never"}, REST, DONE])
        arena = Arena(silent, Offered())
        assert not arena.accepts(0, "error", "stuck", None, 0)
        assert arena.accepts(0, "limit", "stuck", None, 0)


@pytest.mark.rule("accepted_as_written")
def test_what_a_scenario_says_that_it_accepts_is_what_it_accepts() -> None:
    arena = Arena(scenario([LIST, REST, DONE], accept=["limit/stuck", "done/complete"]), Offered())
    assert arena.accepted(0, None, 0) == ("limit/stuck", "done/complete")
    assert arena.accepts(0, "limit", "stuck", None, 0)
    assert not arena.accepts(0, "escalated", "stuck", None, 0)


class TestGivingUp:
    def test_on_what_could_be_reached_takes_as_many_nudges(self) -> None:
        shy = scenario([LIST, {"repeat": {"times": 5, "do": [{"say": "Shall I?"}]}}, REST, DONE])
        assert ideal_episode(Arena(shy, Offered()), 0).outcome == "escalated/reachable"
        for nudges, right in ((1, False), (2, False), (3, True)):
            given_up = play(shy, Strategy(done_when=c.acceptance(), nudges=nudges))
            assert (given_up.outcome, given_up.correct) == ("escalated/reachable", right), nudges

    def test_before_its_own_run_would_be_over_continuation(self) -> None:
        names = ["users", "orders", "invoices"]
        readings = [{"repeat": {"times": 20, "do": [{**READS, "with": {"item": name}}]}} for name in names]
        wandering = [LIST, {"work": 1}, {"say": "One is done.", "claim": "partial"}, *readings, DONE]
        run = ideal(wandering)
        assert (run.outcome, run.over_continuation, run.correct) == ("escalated/stuck", False, True)
        # Twelve turns since the decision are none too many, the thirteenth would be.
        assert (run.turns, run.native) == (3 + 12, "nothing would come of it")

    def test_before_it_repeats_itself_too_often(self) -> None:
        rounds = {"repeat": {"times": 4, "do": [{"wait": {"item": "users", "polls": 4}}]}}
        run = ideal([LIST, {"repeat": {"times": "forever", "do": [rounds]}}])
        # The fourth reading finds it done; the fifth is the first that says so.
        assert (run.outcome, run.turns, run.over_continuation) == ("escalated/stuck", 1 + 4 + 1 + 11, False)

    def test_not_where_the_driver_gets_there(self) -> None:
        readings = {"repeat": {"times": 20, "do": [READS]}}
        slow = [LIST, {"work": 1}, {"say": "One is done.", "claim": "partial"}, readings, REST, DONE]
        assert ideal(slow).outcome == "done/complete"


def test_a_finish_that_nobody_offered_is_no_finish() -> None:
    stray = [LIST, {"call": "finish_task", "with": {"items_completed": []}}, REST, DONE]
    assert ideal(stray).outcome == "done/complete"
