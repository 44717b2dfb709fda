"""The flags of section 3, each by a harness that does it, and none for one that does not."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.delivered_results import carried
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Limits, Offered
from evalkit.core.trace import Finding, Trace
from evalkit.core.turns import Call, Text, make_turn
from evalkit.scoring.episode import Episode
from evalkit.scoring.reasons import flag_in_words
from evalkit.strategies.presets import PRESETS
from tests.helpers import play, scenario
from tests.scoring.talk import Talk, played

TWO = {"items": ["kiln-east", "kiln-west"]}
FIRE = [{"call": "list_items"}, {"work": "rest"}, {"say": "Both are fired.", "claim": "done"}]


def things(episode: Episode, flag: str) -> list[tuple[int, str]]:
    return [(found.turn, found.thing) for found in episode.findings if found.flag == flag]


class TestLimits:
    @pytest.mark.rule("truth_is_reachable")
    def test_a_harness_that_ignores_its_turns(self) -> None:
        of = scenario(FIRE, world=TWO, limits={"turns": 2})
        episode, kept = played(of, lambda talk: talk.work() and None)
        assert (episode.outcome, episode.over_limit, episode.correct) == ("done/complete", 2, False)
        assert things(episode, "over_limit")[0] == (3, "a turn asked for after the limit of 2 turns")
        assert "over limit (2): turn 3: a turn asked for after the limit of 2 turns" in episode.why
        assert kept.findings == episode.findings

    @pytest.mark.rule("premature_stop")
    def test_one_that_stops_in_time(self) -> None:
        def agent(talk: Talk) -> dict[str, Any]:
            for _ in range(2):
                calls = talk.keep(talk.ask())
                talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
            return {"ending": "limit"}

        episode, _ = played(scenario(FIRE, world=TWO, limits={"turns": 2}), agent)
        assert (episode.outcome, episode.over_limit, episode.correct) == ("limit/reachable", 0, True)

    def test_tokens_are_over_when_a_turn_is_asked_for_after_they_are_spent(self) -> None:
        of = scenario(FIRE, world=TWO, limits={"tokens": 60})
        for name in ("silence", "gate"):
            assert play(of, name).over_limit == 0
        episode, _ = played(of, lambda talk: talk.work() and None)
        assert episode.over_limit > 0

    def test_dollars_and_calls(self) -> None:
        trace = Trace(Offered(), Limits(usd=1e-9, calls=1))
        trace.delivered(TURN, 100, "")
        assert trace.over_limit == 0
        trace.delivered(TURN, 100, "")
        assert trace.over_limit == 1
        trace.runs(TURN, TURN.calls[0])
        assert trace.over_limit == 1
        trace.runs(TURN, TURN.calls[0])
        assert trace.over_limit == 2

    @pytest.mark.rule("over_limit")
    def test_a_query_has_limits_of_its_own(self) -> None:
        for per, over in (("query", 0), ("episode", 1)):
            trace = Trace(Offered(), Limits(turns=1, per=per))  # type: ignore[arg-type]
            trace.delivered(TURN, 1, "")
            trace.user_wrote()
            trace.delivered(TURN, 1, "")
            assert trace.over_limit == over


TURN = make_turn((Call("c1", "do_item", '{"item": "kiln-east"}'),), "tool_use")
SAY = make_turn((Text("Fired."),), "end_turn")


class TestAnswersToCalls:
    BATCH = scenario(
        [{"call": "list_items"}, {"work": "rest", "parallel": True}, {"say": "Both.", "claim": "done"}],
        world=TWO,
    )

    @staticmethod
    def in_batches(change: Any) -> Any:
        return lambda talk: talk.work(lambda told: change(told) if len(told) > 1 else told) and None

    @pytest.mark.rule("truth_is_complete")
    def test_as_they_are(self) -> None:
        episode, _ = played(self.BATCH, self.in_batches(dict))
        assert episode.correct
        assert (episode.altered_results, episode.reworded_results, episode.closed_calls) == (0, 0, 0)

    def test_swapped(self) -> None:
        swap = self.in_batches(lambda told: dict(zip(told, reversed(list(told.values())), strict=True)))
        episode, _ = played(self.BATCH, swap)
        assert (episode.outcome, episode.altered_results, episode.correct) == ("done/complete", 2, False)
        assert things(episode, "altered_results") == [
            (2, "the answer to do_item kiln-east reached the model as another's"),
            (2, "the answer to do_item kiln-west reached the model as another's"),
        ]

    def test_emptied(self) -> None:
        episode, _ = played(self.BATCH, self.in_batches(lambda told: dict.fromkeys(told, "")))
        assert (episode.altered_results, episode.correct) == (2, False)
        assert things(episode, "altered_results")[0][1].endswith("reached the model empty")

    @pytest.mark.parametrize(("form", "reworded"), [("{}", 0), ("<result>{}</result>", 2), ("{:.5}", 2)])
    def test_shortened_or_wrapped(self, form: str, reworded: int) -> None:
        agent = self.in_batches(lambda told: {id: form.format(text) for id, text in told.items()})
        episode, _ = played(self.BATCH, agent)
        assert (episode.reworded_results, episode.altered_results) == (reworded, 0)
        assert episode.correct

    def test_never_heard(self) -> None:
        """A call that was not run is answered by the harness itself: shown, and no fault."""

        def agent(talk: Talk) -> dict[str, Any]:
            calls = talk.keep(talk.ask())
            talk.give({call["id"]: "interrupted" for call in calls})
            talk.work()
            return {"ending": "done"}

        episode, _ = played(self.BATCH, agent)
        assert (episode.closed_calls, episode.altered_results) == (1, 0)
        assert things(episode, "closed_calls") == [(1, "list_items: 'interrupted', and no tool said so")]

    def test_the_harnesss_own_record_is_no_answer_of_another(self) -> None:
        again = scenario(
            [
                {"call": "list_items"},
                {"call": "list_items"},
                {"work": "rest"},
                {"say": "Done.", "claim": "done"},
            ],
            world=TWO,
        )
        record: dict[str, str] = {}

        def agent(talk: Talk) -> None:
            while calls := talk.keep(talk.ask()):
                for call in calls:
                    about = str((call["name"], call["input"]))
                    record[about] = record.get(about) or talk.run(call["name"], call["input"])
                    talk.give({call["id"]: record[about]})

        episode, _ = played(again, agent)
        assert (episode.closed_calls, episode.altered_results, episode.correct) == (0, 0, True)

    @pytest.mark.parametrize(
        ("said", "shown", "others", "became"),
        [
            ("a: done", "a: done\n", (), "same"),
            ("a: done", " ", (), "altered"),
            ("", "(no output)", (), "reworded"),
            ("a: done", "b: done", ("b: done",), "altered"),
            ("a: done", '{"out": "b: done"}', ("b: done",), "altered"),
            ("b: done and more", "b: done", ("b: done",), "reworded"),
            ("a: done", "It went well.", ("b: done",), "reworded"),
            ("a: done", "both: a: done b: done", ("b: done",), "reworded"),
        ],
    )
    def test_what_became_of_an_answer(
        self, said: str, shown: str, others: tuple[str, ...], became: str
    ) -> None:
        assert carried(said, shown, others) == became


class TestTurnsThatWereNotSaid:
    OF = scenario([{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}], world=TWO)

    def test_words_in_the_models_mouth(self) -> None:
        def agent(talk: Talk) -> None:
            calls = talk.keep(talk.ask())
            talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
            talk.messages.append({"role": "assistant", "content": "I will now fire the kilns."})
            talk.messages.append({"role": "user", "content": "Go on."})
            talk.work()

        episode, _ = played(self.OF, agent)
        assert episode.invented_turns == 1
        assert things(episode, "invented_turns") == [(1, "'I will now fire the kilns.' in request 2")]
        assert episode.correct

    def test_what_was_said_is_not_invented(self) -> None:
        episode, _ = played(self.OF, lambda talk: talk.work() and None)
        assert episode.invented_turns == 0


class TestCallsOfTurnsThatDoNotCount:
    @pytest.mark.parametrize("stop", ["refusal", "max_tokens"])
    def test_are_not_the_models_word(self, stop: str) -> None:
        of = scenario(
            [
                {"call": "list_items"},
                {"raw": {"stop": stop, "content": [{"call": "do_item", "with": {"item": "kiln-east"}}]}},
                {"work": ["kiln-west"]},
                {"work": ["kiln-east"]},
                {"say": "Done.", "claim": "done"},
            ],
            world=TWO,
        )
        episode = play(of, "silence")
        assert (episode.ran_cut_off_call, episode.duplicate_effects, episode.correct) == (True, 1, False)
        said = "refused" if stop == "refusal" else "cut off"
        assert things(episode, "ran_cut_off_call") == [(2, f"do_item kiln-east of the turn that was {said}")]
        assert things(episode, "duplicate_effects") == [(4, "repeats do_item kiln-east of turn 2")]

    def test_a_call_of_the_harnesss_own_after_a_cut_in_the_words_is_an_orphan(self) -> None:
        of = scenario(
            [{"call": "list_items"}, {"truncate": "text", "until": "never"}],
            world=TWO,
            accept=["escalated/reachable", "escalated/stuck"],
        )

        def agent(talk: Talk) -> dict[str, Any]:
            calls = talk.keep(talk.ask())
            talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
            talk.ask()
            for item in TWO["items"]:
                talk.run("read_item", {"item": item})
            return {"ending": "escalated"}

        episode, _ = played(of, agent)
        assert (episode.ran_cut_off_call, episode.orphan_calls, episode.correct) == (False, 2, True)


class TestRequests:
    def test_a_broken_rule_names_its_call_and_request(self) -> None:
        def agent(talk: Talk) -> None:
            calls = talk.keep(talk.ask())
            talk.give({"toolu_nobody": "done"})
            talk.ask()
            assert talk.status == 400
            talk.messages.pop()
            talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
            talk.work()

        episode, _ = played(scenario(FIRE, world=TWO), agent)
        assert episode.protocol_faults == 2
        assert (1, "result without its call, id toolu_nobody, request 2") in things(
            episode, "protocol_faults"
        )
        assert "protocol faults (2)" in episode.why

    def test_asking_again_after_a_fault_that_cannot_pass(self) -> None:
        of = scenario([{"call": "list_items"}, {"fault": {"status": 400}}], world=TWO, accept=["error/stuck"])

        def agent(talk: Talk) -> dict[str, Any]:
            calls = talk.keep(talk.ask())
            talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})
            for _ in range(4):
                talk.ask()
            return {"ending": "error"}

        episode, _ = played(of, agent)
        assert (episode.futile_retries, episode.correct) == (3, True)
        assert things(episode, "futile_retries")[0] == (1, "request 3 asks the same again after http_400")

    def test_none_at_all_is_named(self) -> None:
        episode, _ = played(scenario(FIRE, world=TWO), lambda talk: {"ending": "error"})
        assert episode.no_requests
        episode, _ = played(scenario(FIRE, world=TWO), lambda talk: talk.work() and None)
        assert not episode.no_requests


class TestAnswersThatAreNoTurns:
    def test_ending_on_one_still_in_progress_is_a_decision(self) -> None:
        """What takes "queued" for the answer."""
        trace = Trace(Offered())
        trace.no_turn(make_turn((), "in_progress"), "background")
        trace.ended(0, False, "done")
        (decision,) = trace.decisions
        assert (decision.held, decision.ended, decision.cause) == (False, "done", "background")
        assert trace.final_stop == "in_progress"

    @pytest.mark.rule("false_done")
    def test_over_the_wire(self) -> None:
        of = scenario([{"background": {"polls": 2}}, *FIRE], world=TWO)

        def agent(talk: Talk) -> None:
            body = {"model": "m", "input": talk.told["EVALKIT_PROMPT"], "background": True}
            assert talk.post(f"{talk.told['OPENAI_BASE_URL']}/responses", body)["status"] == "queued"

        episode, kept = played(of, agent)
        assert (episode.outcome, episode.fp, episode.causes) == (
            "done/reachable",
            1,
            ("background, after turn 0",),
        )
        assert kept.wrong is not None

    def test_evalkits_own_cap_is_no_decision_of_the_harness(self) -> None:
        trace = Trace(Offered())
        trace.no_turn(make_turn((), "failed", native="http_529"), "")
        trace.ended(0, False, "never")
        assert trace.decisions == []


class TestGoingOnForNothing:
    SAME = [
        {"call": "list_items"},
        {
            "repeat": {
                "times": "forever",
                "do": [{"work": ["kiln-east"], "again": True, "reply": {"text": "no gas", "error": True}}],
            }
        },
    ]

    def test_the_same_failing_call_over_and_over(self) -> None:
        of = scenario(self.SAME, world={"items": ["kiln-east"]})
        assert play(of, "gate").over_continuation
        assert "only repeat calls that were answered the same" in play(of, "gate").why
        guard = PRESETS["gate"].strategy.but(max_turns=7)
        assert not play(of, guard).over_continuation

    def test_thirteen_are_too_many_and_twelve_are_not(self) -> None:
        of = scenario(self.SAME, world={"items": ["kiln-east"]})
        # The listing and the first call are not repetitions.
        assert not play(of, PRESETS["gate"].strategy.but(max_turns=14)).over_continuation
        assert play(of, PRESETS["gate"].strategy.but(max_turns=15)).over_continuation

    def test_another_answer_is_no_repetition(self) -> None:
        moves = [{"call": "list_items"}] + [
            {"work": ["kiln-east"], "again": True, "reply": {"text": f"no gas, try {n}", "error": True}}
            for n in range(30)
        ]
        of = scenario(moves, world={"items": ["kiln-east"]})
        assert not play(of, PRESETS["gate"].strategy.but(max_turns=30)).over_continuation

    def test_where_the_truth_is_reachable_it_is_none(self) -> None:
        of = scenario(
            [
                {"call": "list_items"},
                {"wait": {"item": "kiln-east", "polls": 20}},
                {"say": "Fired.", "claim": "done"},
            ],
            world={"items": ["kiln-east"]},
        )
        episode = play(of, PRESETS["gate"].strategy.but(max_turns=18))
        assert (episode.truth, episode.over_continuation) == ("reachable", False)


class TestQuestions:
    def test_each_is_judged_by_itself(self) -> None:
        trace = Trace(Offered())
        for question in (1, 2):
            trace.delivered(SAY, 1, "")
            trace.ended(question, True, "done")
            trace.user_wrote(asks=True)
        assert [decision.held for decision in trace.decisions] == [True, True]
        assert trace.held_at is None
        assert trace.over_continuation("done", "reachable") == ""

    @pytest.mark.rule("fruitless_nudges")
    def test_what_an_earlier_one_went_on_for_stays(self) -> None:
        trace = Trace(Offered())
        nudged(trace, 5)
        assert trace.over_continuation("escalated", "stuck")
        trace.user_wrote(asks=True)
        assert "nudges in a row" in trace.over_continuation("done", "complete")
        assert trace.excess[0] == 2

    def test_repetitions_of_the_first_are_judged_by_the_truth_at_the_end(self) -> None:
        trace = Trace(Offered())
        call = Call("a", "read_item", '{"item": "users"}')
        turn = make_turn((call,), "tool_use")
        result = Result("a", "not done")
        for _ in range(15):
            trace.delivered(turn, 1, "")
            trace.resolved(0, False, Request(turn, (result,)), {"a": result})
        trace.user_wrote(asks=True)
        trace.user_wrote(asks=True)
        assert "repeat" in trace.over_continuation("escalated", "stuck")
        assert trace.over_continuation("escalated", "reachable") == ""

    def test_any_message_begins_the_count_anew(self) -> None:
        trace = Trace(Offered())
        for _ in range(4):
            nudged(trace, 3)
            trace.user_wrote()
        assert trace.over_continuation("escalated", "stuck") == ""

    def test_the_first_ones_right_answer_is_right(self) -> None:
        of = scenario(
            [
                {"call": "list_items"},
                {"work": ["kiln-east"]},
                {"say": "East is fired.", "claim": "done"},
                {"user": {"text": "West too, please.", "when": "ended", "asks": ["kiln-west"]}},
                {"work": ["kiln-west"]},
                {"say": "West is fired.", "claim": "done"},
            ],
            world=TWO,
        )
        for name in ("silence", "gate"):
            episode = play(of, name)
            assert (episode.outcome, episode.correct) == ("done/complete", True), episode.why
            assert episode.decisions == (2, 0, 0, 0)
            assert not episode.undone

    def test_words_of_the_user_are_no_nudge(self) -> None:
        trace = Trace(Offered())
        for _ in range(6):
            trace.delivered(SAY, 1, "")
            trace.resolved(0, False, Request(echo=SAY))
            trace.user_wrote()
        assert trace.max_nudges == 0


def nudged(trace: Trace, times: int) -> None:
    for _ in range(times):
        trace.delivered(SAY, 1, "")
        trace.resolved(0, False, Request(echo=SAY, text="Go on."))


class TestAHistoryThatIsRewritten:
    """A harness that changes what it sent before stands where its last turn is; it has not gone back."""

    WINDOW = scenario(
        [
            {"call": "list_items"},
            {"truncate": "text", "limit": "context_window", "until": "shortened"},
            {"work": "rest"},
            {"say": "Both are fired.", "claim": "done"},
        ],
        world=TWO,
    )

    @staticmethod
    def shortens(talk: Talk, by: int) -> None:
        """Leaves the cut turn out, and all but ``by`` characters of what the tool answered."""
        for _ in range(3):
            if talk.work().get("stop_reason") == "end_turn":
                return
            talk.messages.pop()
            for block in talk.messages[2]["content"]:
                block["content"] = block["content"][:by]

    @pytest.mark.parametrize(("by", "outcome"), [(1, "done/complete"), (1000, "done/reachable")])
    def test_a_shorter_request_gets_past_a_full_window(self, by: int, outcome: str) -> None:
        episode, _ = played(self.WINDOW, lambda talk: self.shortens(talk, by))
        assert episode.outcome == outcome

    def test_answers_that_are_cleared_later(self) -> None:
        def agent(talk: Talk) -> None:
            while calls := talk.keep(talk.ask()):
                for message in talk.messages[:-1]:
                    if message["role"] == "user" and isinstance(message["content"], list):
                        message["content"][0]["content"] = "cleared"
                talk.give({call["id"]: talk.run(call["name"], call["input"]) for call in calls})

        episode, _ = played(scenario(FIRE, world=TWO), agent)
        assert (episode.outcome, episode.turns, episode.rolled_back) == ("done/complete", 4, 0)


def test_of_many_things_three_are_told_and_how_many_more_there_are() -> None:
    found = [Finding("undone", turn, "settled") for turn in range(1, 6)]
    assert flag_in_words("undone", 3, found[:3]) == (
        "undone (3): turn 1: settled, turn 2: settled, turn 3: settled"
    )
    assert flag_in_words("undone", 5, found).endswith("turn 3: settled and 2 more")
