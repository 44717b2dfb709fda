"""What happens from outside: the user writes, the conversation is compacted, a person approves."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.events import Approves, Compacts, Event, UserWrites, with_words
from evalkit.core.requests import Request
from evalkit.drivers.in_process import LoopMind, StageInstruments, drive
from evalkit.loop.state import SUPPORTED_EVENTS, Loop, start
from evalkit.loop.transitions import on_event
from evalkit.media.medium import Medium, unplayable
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.stage.stage import Stage
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario

LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}


def staged(loaded: Scenario, strategy: Strategy) -> tuple[Episode, Stage]:
    """An episode, and the stage that it was played on."""
    stages: list[Stage] = []
    episode = run_episode(Arena(loaded, strategy.offers), strategy, 0, on_stage=stages.append)
    return episode, stages[0]


class TestApprovals:
    MOVES = [
        LIST,
        {"work": "rest"},
        {"say": "The last one needs approval.", "claim": "blocked"},
        {"approve": ["invoices"]},
        {"work": ["invoices"]},
        DONE,
    ]

    def test_gated_items_are_approved_when_the_event_comes(self) -> None:
        loaded = scenario(self.MOVES, world={"gated": ["invoices"]})
        episode, stage = staged(loaded, PRESETS["gate"].strategy)
        assert episode.outcome == "done/complete"
        assert stage.happened == ((5, Approves(0b100)),)

    def test_a_run_that_ended_before_has_none_of_it(self) -> None:
        loaded = scenario(self.MOVES, world={"gated": ["invoices"]})
        assert play(loaded, "silence").outcome == "done/reachable"

    def test_none_approves_nothing(self) -> None:
        moves = [{"approve": "none"} if "approve" in move else move for move in self.MOVES[:-1]]
        moves.append({"say": "Still not approved.", "claim": "blocked"})
        assert play(scenario(moves, world={"gated": ["invoices"]}), "gate").outcome == "escalated/stuck"


class TestTheUserWrites:
    def test_after_the_harness_has_ended_and_the_run_goes_on(self) -> None:
        moves = [LIST, {"work": 2}, DONE, {"user": {"text": "invoices is missing."}}, {"work": "rest"}, DONE]
        episode, stage = staged(scenario(moves), PRESETS["silence"].strategy)
        assert episode.outcome == "done/complete"
        assert episode.correct
        assert stage.happened == ((4, UserWrites("invoices is missing.")),)
        # The first ending stands as a decision.
        assert episode.decisions == (1, 1, 0, 0)

    def test_at_an_end_of_turn_that_the_harness_continues(self) -> None:
        moves = [LIST, {"work": 2}, DONE, {"user": {"text": "invoices is missing."}}, {"work": "rest"}, DONE]
        episode, stage = staged(scenario(moves), PRESETS["gate"].strategy)
        assert episode.outcome == "done/complete"
        assert [event for _, event in stage.happened] == [UserWrites("invoices is missing.")]
        assert episode.decisions == (1, 0, 1, 0)

    def test_the_words_may_be_what_the_model_waits_for(self) -> None:
        waits = {"say": "Half of it.", "claim": "partial", "until": "named"}
        moves = [LIST, {"work": 2}, waits, {"user": {"text": "Do invoices, please."}}, {"work": "rest"}, DONE]
        # This one says only "Continue.", which names nothing.
        assert play(scenario(moves), "infinite_nudge").outcome == "done/complete"
        without = [move for move in moves if "user" not in move]
        assert play(scenario(without), "infinite_nudge").ending == "never"

    def test_between_turns_the_words_come_with_the_next_request(self) -> None:
        moves = [
            LIST,
            {"work": 1},
            {"user": {"text": "Hurry.", "when": "between_turns"}},
            {"work": "rest"},
            DONE,
        ]
        episode, stage = staged(scenario(moves), PRESETS["gate"].strategy)
        assert stage.happened == ((2, UserWrites("Hurry.")),)
        assert episode.correct
        quiet = play(scenario([move for move in moves if "user" not in move]), "gate")
        assert episode.turns == quiet.turns
        assert episode.tokens > quiet.tokens
        assert episode.decisions == quiet.decisions

    def test_they_may_come_before_the_first_turn(self) -> None:
        moves = [{"user": {"text": "Hurry.", "when": "between_turns"}}, LIST, {"work": "rest"}, DONE]
        episode, stage = staged(scenario(moves), PRESETS["gate"].strategy)
        assert stage.happened == ((0, UserWrites("Hurry.")),)
        assert episode.correct

    def test_a_word_for_the_end_waits_for_an_end_of_turn(self) -> None:
        moves = [
            LIST,
            {"user": {"text": "And then?"}},
            {"work": "rest"},
            DONE,
            {"say": "Nothing more.", "claim": "done"},
        ]
        episode, stage = staged(scenario(moves), PRESETS["silence"].strategy)
        assert stage.happened == ((5, UserWrites("And then?")),)
        assert episode.outcome == "done/complete"

    def test_turns_that_the_user_asked_for_are_no_over_continuation(self) -> None:
        asks = {"user": {"text": "Show me again."}}
        shows = [
            asks,
            {"call": "read_item", "with": {"item": "users"}},
            {"call": "read_item", "with": {"item": "orders"}},
        ]
        moves = [LIST, {"work": "rest"}, DONE, *shows, DONE, *shows, DONE]
        episode = play(scenario(moves), "silence")
        assert episode.turns == 11
        assert not episode.over_continuation
        assert episode.excess_turns == 0
        # Turns that the harness adds of its own are.
        again = [
            LIST,
            {"work": "rest"},
            {"say": "Hm."},
            {"say": "Hm, hm."},
            {"repeat": {"times": 4, "do": [{"say": "So."}]}},
        ]
        nags = play(scenario([*again, asks, DONE]), Strategy(done_when=c.verifier(sees="claim"), nudges=None))
        assert nags.over_continuation

    def test_what_was_asked_last_is_answered_and_the_user_is_gone(self) -> None:
        closes = {"user": {"text": "I have to leave.", "when": "between_turns", "closes": True}}
        report = {"say": "Two of three.", "claim": "partial"}
        loaded = scenario([LIST, {"work": 1}, closes, {"work": 1}, report, {"work": "rest"}, DONE])
        for name in ("gate", "infinite_nudge"):
            episode = play(loaded, name)
            assert (episode.ending, episode.native, episode.truth, episode.turns) == (
                "limit",
                "user_gone",
                "reachable",
                4,
            )
        # What is done before that end of turn counts.
        answered = [LIST, {"work": 1}, closes, {"work": "rest"}, DONE]
        assert play(scenario(answered), "acceptance").outcome == "done/complete"

    def test_a_user_who_is_gone_writes_no_more(self) -> None:
        closes = {"user": {"text": "Bye.", "closes": True}}
        moves = [
            LIST,
            {"work": 1},
            {"say": "One."},
            closes,
            {"say": "Bye."},
            {"user": {"text": "Wait."}},
            DONE,
        ]
        episode, stage = staged(scenario(moves), PRESETS["silence"].strategy)
        assert [event for _, event in stage.happened] == [UserWrites("Bye.", True)]
        assert episode.turns == 4

    def test_a_failed_request_is_made_again_with_the_words(self) -> None:
        fault = {"fault": {"status": 500}}
        moves = [LIST, {"work": "rest"}, fault, {"user": {"text": "Still there?"}}, DONE]
        brittle = Strategy(done_when=c.silence(), faults="fail")
        episode, stage = staged(scenario(moves), brittle)
        assert episode.outcome == "done/complete"
        assert len(stage.happened) == 1

    @pytest.mark.rule("pause_stops")
    def test_words_after_a_paused_turn_leave_it_out(self) -> None:
        moves = [LIST, {"work": "rest"}, {"pause": {}}, {"user": {"text": "Go on."}}, DONE]
        stops = Strategy(done_when=c.silence(), pause="stop")
        episode = play(scenario(moves), stops)
        assert episode.outcome == "done/complete"
        assert episode.protocol_faults == 0


class TestCompaction:
    MOVES = [LIST, {"work": "rest"}, {"compact": True}, DONE]

    def test_evidence_that_only_the_conversation_held_is_lost(self) -> None:
        loaded = scenario(self.MOVES)
        assert play(loaded, "verifier_evidence").outcome == "done/complete"
        assert play(loaded, "checklist").outcome == "done/complete"
        assert play(loaded, "verifier_transcript").outcome == "escalated/complete"
        without = scenario([move for move in self.MOVES if "compact" not in move])
        assert play(without, "verifier_transcript").outcome == "done/complete"

    def test_so_is_an_error(self) -> None:
        moves = [
            LIST,
            {"work": 2},
            {"work": 1, "reply": {"error": True, "effect": "applied"}},
            {"compact": True},
            {"work": "rest", "again": True},
            DONE,
        ]
        assert play(scenario(moves), "verifier_transcript").outcome == "done/complete"

    def test_a_checklist_in_the_conversation_is_what_the_model_writes_anew(self) -> None:
        loop, conversation = (
            Strategy(done_when=c.checklist()),
            Strategy(done_when=c.checklist(kept="conversation")),
        )
        early = {**DONE, "until": "named"}
        moves = [LIST, {"work": 1}, {"compact": True}, {"work": 1}, early, {"work": "rest"}, DONE]
        assert play(scenario(moves), conversation).outcome == "done/reachable"
        assert play(scenario(moves), loop).outcome == "done/complete"
        kept = scenario([move for move in moves if "compact" not in move])
        assert play(kept, conversation).outcome == play(kept, loop).outcome == "done/complete"
        with pytest.raises(ValueError, match="kept is loop or conversation"):
            c.checklist(kept="paper")  # type: ignore[arg-type]

    def test_given_items_stand_in_the_prompt_and_are_forgotten_by_the_list_alone(self) -> None:
        loaded = scenario([{"compact": True}, {"work": "rest"}, DONE], task={"items": "given"})
        assert play(loaded, Strategy(done_when=c.checklist(kept="conversation"))).outcome == "done/complete"
        assert play(loaded, "checklist").outcome == "done/complete"

    def test_the_conversation_costs_less_afterwards(self) -> None:
        long = [LIST, {"work": "rest"}, DONE]
        short = [LIST, {"work": "rest"}, {"compact": True}, DONE]
        assert play(scenario(short), "silence").tokens < play(scenario(long), "silence").tokens


class TestTheLoop:
    @pytest.mark.parametrize("event", [UserWrites("users"), UserWrites("bye", True), Compacts(), Approves(1)])
    @pytest.mark.parametrize("name", list(PRESETS))
    def test_an_event_leaves_a_hashable_state(self, name: str, event: Event) -> None:
        strategy = PRESETS[name].strategy
        stage = Arena(scenario([DONE]), strategy.offers).stage(0)
        loop, state = Loop(strategy, stage.task), start(strategy, stage.task)
        place = StageInstruments(stage)
        after = on_event(loop, state, event, place)
        assert hash(after) == hash(on_event(loop, state, event, place))
        assert state == start(strategy, stage.task)

    def test_a_fold_of_ones_own_needs_no_notion_of_compaction(self) -> None:
        class Counts:
            name = "counts"

            def start(self, task: Any) -> int:
                return 0

            def after_turn(self, memory: int, turn: Any, task: Any) -> int:
                return min(memory + 1, 9)

            def after_results(self, memory: int, ran: Any, task: Any) -> int:
                return memory

        class Enough(c.Condition):
            folds = (Counts(),)

            def __call__(self, view: Any) -> Any:
                return c.Verdict(view.memory["counts"] >= 4, "counted")

        moves = [LIST, {"work": 2}, {"compact": True}, DONE]
        assert play(scenario(moves), Strategy(done_when=Enough())).turns == 4

    def test_words_are_added_and_make_a_repetition_a_new_request(self) -> None:
        asked = with_words(
            Request(text="Continue.", again=True), (UserWrites("a"), Compacts(), UserWrites("b"))
        )
        assert asked.text == "Continue.\na\nb"
        assert not asked.again
        same = Request(again=True)
        assert with_words(same, (Compacts(),)) is same

    def test_without_events_nothing_is_asked_of_the_outside(self) -> None:
        loaded = scenario([LIST, {"work": "rest"}, DONE])
        stage = Arena(loaded, PRESETS["gate"].strategy.offers).stage(0)
        assert not stage.eventful
        assert drive(LoopMind(PRESETS["gate"].strategy, stage.task, stage), stage).kind == "done"


class TestWhoHasTheNotion:
    def test_a_loop_measures_with_the_instruments_that_it_is_given(self) -> None:
        strategy = PRESETS["gate"].strategy
        stage = Arena(scenario([LIST, DONE]), strategy.offers).stage(0)
        given = StageInstruments(stage)
        assert LoopMind(strategy, stage.task, stage, given).instruments is given

    def test_the_loop_has_three_where_somebody_can_tell_it(self) -> None:
        assert {"user", "compact", "approve"} == SUPPORTED_EVENTS
        for event in ({"user": {"text": "x"}}, {"compact": True}, {"approve": "none"}):
            loaded = scenario([event, DONE])
            assert unplayable(Medium(), loaded, ()) == ""
            assert unplayable(Medium(dialect="anthropic"), loaded, ()) == ""
            assert unplayable(Medium(dialect="anthropic", replay="x"), loaded, ()).startswith("in replay, ")
        assert "crash" in unplayable(Medium(), scenario([{"crash": True}, DONE]), ())


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ([{"compact": True, "until": "named"}], "model[0].until: compact is an event and no turn"),
        ([{"user": {"text": "x"}, "stop": "end_turn"}], "model[0].stop: user is an event and no turn"),
        ([{"repeat": {"times": "forever", "do": [{"compact": True}]}}], "holds events only"),
        ([{"approve": ["carts"]}], "unknown item 'carts'"),
        ([{"turn": [{"compact": True}, DONE]}], "not allowed here"),
    ],
)
def test_events_that_cannot_be(moves: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        scenario(moves)
    assert message in str(error.value)
