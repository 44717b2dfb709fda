"""What the observer counts, at the numbers from which on going on is for nothing."""

from __future__ import annotations

import pytest

from evalkit.core import thresholds
from evalkit.core.prices import cost
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Limits, Offered
from evalkit.core.trace import FINDINGS_KEPT, Trace
from evalkit.core.turns import Call, Text, Turn, make_turn

SAY = make_turn((Text("Here I am."),), "end_turn")
CALL = Call("c1", "read_item", '{"item": "users"}')
WORK = make_turn((CALL,), "tool_use")
PAUSE = make_turn((Text("Wait."),), "pause_turn")
ANSWER = Result("c1", "users: open")
FINISHED = Result("f1", "Not accepted.", True)
FINISH = make_turn((Call("f1", "finish_task", "{}"),), "tool_use")


def heard(
    trace: Trace, turn: Turn, times: int = 1, *, settled: int = 0, held: bool = False, text: str | None = None
) -> None:
    """So many turns, each answered as a harness would: calls with their results, a pause with its echo."""
    for _ in range(times):
        results = (ANSWER,) if turn is WORK else ()
        trace.delivered(turn, 10, "a move")
        trace.resolved(settled, held, Request(turn, results, text), {"c1": ANSWER} if turn is WORK else {})


def differing(trace: Trace, times: int, *, settled: int = 0, held: bool = False) -> None:
    """So many turns with a call that is answered anew each time."""
    for number in range(trace.turns, trace.turns + times):
        answer = Result("c1", f"users: {number} seconds")
        trace.delivered(WORK, 10, "a move")
        trace.resolved(settled, held, Request(WORK, (answer,)), {"c1": answer})


def over(trace: Trace) -> str:
    return trace.over_continuation("escalated", "stuck")


class TestTheNumbersOfGoingOnForNothing:
    @pytest.mark.rule("turns_after_completion")
    def test_turns_after_a_decision_at_which_the_work_was_complete(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, held=True, settled=1)
        heard(trace, SAY, thresholds.TURNS_AFTER_COMPLETION, held=True, settled=1)
        assert over(trace) == ""
        heard(trace, SAY, held=True, settled=1)
        assert over(trace) == "4 turns after the decision of turn 1, at which the work was complete"
        assert trace.excess == (4, 40)

    @pytest.mark.rule("turns_held_undecided")
    def test_turns_without_a_decision_while_the_work_was_complete(self) -> None:
        trace = Trace(Offered())
        differing(trace, 1, held=True, settled=1)
        differing(trace, thresholds.TURNS_HELD_UNDECIDED, held=True, settled=1)
        assert over(trace) == ""
        differing(trace, 1, held=True, settled=1)
        assert over(trace) == "13 turns without a decision while the work was complete"

    def test_which_a_decision_or_broken_work_ends(self) -> None:
        for stop in (lambda t: heard(t, SAY, settled=1), lambda t: differing(t, 1, settled=1)):
            trace = Trace(Offered())
            differing(trace, 12, held=True, settled=1)
            stop(trace)
            differing(trace, 13, held=True, settled=1)
            assert trace.max_held <= 12

    def test_and_which_the_first_turn_after_a_message_is_none_of(self) -> None:
        trace = Trace(Offered())
        trace.user_wrote()
        differing(trace, 1 + thresholds.TURNS_HELD_UNDECIDED, held=True, settled=1)
        assert over(trace) == ""
        assert trace.max_held == 12

    @pytest.mark.parametrize("turn", [SAY, FINISH])
    def test_nudges(self, turn: Turn) -> None:
        def nudged(times: int) -> None:
            for _ in range(times):
                trace.delivered(turn, 10, "a move")
                answered = Request(turn, (FINISHED,)) if turn is FINISH else Request(turn, (), "Go on.")
                trace.resolved(0, False, answered)

        trace = Trace(Offered(finish=True))
        nudged(thresholds.FRUITLESS_NUDGES)
        assert (over(trace), trace.nudges) == ("", 3)
        assert trace.nudged_out == (3, 30)
        nudged(1)
        assert over(trace) == "4 nudges in a row without progress"
        assert trace.excess == (1, 10)

    def test_nudges_that_progress_came_between(self) -> None:
        trace = Trace(Offered())
        for settled in (0, 1, 2):
            differing(trace, 1, settled=settled)
            heard(trace, SAY, 2, settled=settled, text="Go on.")
        assert (over(trace), trace.nudges, trace.max_nudges) == ("", 2, 2)
        assert trace.nudged_out is None

    def test_excess_is_forgotten_where_progress_came_after_all(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, 5, text="Go on.")
        assert trace.excess == (2, 20)
        differing(trace, 1, settled=1)
        assert trace.excess == (0, 0)

    def test_a_going_on_without_words_is_no_nudge(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, 5)
        assert trace.nudges == 0

    @pytest.mark.rule("turns_since_a_decision")
    def test_turns_since_a_decision(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY)
        differing(trace, thresholds.TURNS_SINCE_DECISION)
        assert over(trace) == ""
        differing(trace, 1)
        assert over(trace) == "13 turns in a row without progress since a decision"

    def test_which_progress_begins_anew(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY)
        differing(trace, 12)
        differing(trace, 20, settled=1)
        assert (over(trace), trace.max_since_decision) == ("", 12)

    @pytest.mark.rule("turns_undecided")
    def test_turns_without_any_decision(self) -> None:
        trace = Trace(Offered())
        differing(trace, thresholds.TURNS_UNDECIDED)
        assert over(trace) == ""
        differing(trace, 1)
        assert over(trace) == "41 turns in a row without progress and without a decision"

    @pytest.mark.rule("repeating_turns")
    def test_turns_that_only_repeat(self) -> None:
        trace = Trace(Offered())
        heard(trace, WORK, 1 + thresholds.REPEATING_TURNS)
        assert over(trace) == ""
        heard(trace, WORK)
        assert over(trace) == "13 turns in a row that only repeat calls that were answered the same"
        assert trace.over_continuation("escalated", "reachable") == ""

    def test_which_another_answer_ends(self) -> None:
        trace = Trace(Offered())
        heard(trace, WORK, 10)
        differing(trace, 1)
        heard(trace, WORK, 10)
        assert trace.max_repeating == 9

    def test_which_a_change_of_the_world_ends(self) -> None:
        trace = Trace(Offered())
        heard(trace, WORK, 10)
        trace.had_effect("do users", 1)
        heard(trace, WORK, 10)
        assert trace.max_repeating == 9

    def test_the_longest_stretch_counts_whatever_came_after(self) -> None:
        trace = Trace(Offered())
        differing(trace, thresholds.TURNS_UNDECIDED + 1)
        differing(trace, 3, settled=1)
        assert over(trace).endswith("turns in a row without progress and without a decision")
        repeating = Trace(Offered())
        heard(repeating, WORK, 5)
        longest = repeating.max_repeating
        differing(repeating, 2)
        heard(repeating, WORK, 2)
        assert repeating.max_repeating == longest > 1

    def test_resends_in_a_row(self) -> None:
        trace = Trace(Offered())
        heard(trace, PAUSE, thresholds.RESENDS)
        assert (over(trace), trace.max_resends) == ("", 30)
        heard(trace, SAY, settled=1)
        heard(trace, PAUSE, thresholds.RESENDS + 1)
        assert trace.max_resends == 31

    @pytest.mark.rule("resends_in_a_row")
    def test_resends_alone(self) -> None:
        trace = Trace(Offered())
        heard(trace, PAUSE, thresholds.RESENDS + 1)
        assert over(trace) == "31 resends of paused turns in a row"

    @pytest.mark.rule("never_ended")
    def test_a_run_that_never_ended(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, 2, held=True, settled=1)
        assert trace.over_continuation("never", "complete") == "never ended: 2 turns"


class TestLimits:
    def test_a_turn_beyond_each_is_told(self) -> None:
        usd = cost(8, 2)
        for limits, said in (
            (Limits(turns=2), "2 turns"),
            (Limits(tokens=20), "20 tokens"),
            (Limits(usd=2 * usd), f"{2 * usd:g} dollars"),
        ):
            trace = Trace(Offered(), limits)
            for _ in range(3):
                trace.delivered(SAY, 10, "a move", output=2)
                trace.resolved(0, False, Request(SAY))
            assert trace.over_limit == 1, said
            (found,) = trace.findings
            assert (found.turn, found.thing) == (3, f"a turn asked for after the limit of {said}")

    def test_of_a_query_begin_anew_with_a_message_and_those_of_an_episode_do_not(self) -> None:
        for per, beyond in (("query", 0), ("episode", 2)):
            trace = Trace(Offered(), Limits(turns=2, tokens=1000, calls=2, per=per))
            heard(trace, SAY, 2)
            for _ in range(2):
                trace.runs(WORK, CALL)
            trace.user_wrote()
            trace.delivered(WORK, 10, "a move")
            trace.runs(WORK, CALL)
            assert trace.over_limit == beyond, per

    def test_so_do_the_dollars_of_a_query(self) -> None:
        spent = cost(8, 2)
        for per, beyond in (("query", 0), ("episode", 2)):
            trace = Trace(Offered(), Limits(usd=2 * spent, per=per))
            for _ in range(2):
                trace.delivered(SAY, 10, "a move", output=2)
                trace.resolved(0, False, Request(SAY))
            trace.user_wrote()
            for _ in range(2):
                trace.delivered(SAY, 10, "a move", output=2)
                trace.resolved(0, False, Request(SAY))
            assert trace.over_limit == beyond, per

    @pytest.mark.rule("over_limit_of_calls")
    def test_calls_are_counted_as_they_are_run(self) -> None:
        trace = Trace(Offered(), Limits(calls=2))
        for _ in range(3):
            trace.runs(WORK, CALL)
        assert trace.over_limit == 1
        assert trace.findings[0].thing == "read_item users, a call beyond the limit of 2 calls"


class TestWhatIsCounted:
    def test_stops_tokens_and_the_last_stop(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, 2)
        heard(trace, WORK)
        assert trace.stops == {"end_turn": 2, "tool_use": 1}
        assert (trace.turns, trace.tokens, trace.final_stop) == (3, 30, "tool_use")

    def test_helpers_are_part_of_the_run_and_told_apart(self) -> None:
        trace = Trace(Offered())
        trace.helped(7, 3)
        assert (trace.helper_turns, trace.helper_tokens, trace.tokens, trace.output_tokens) == (1, 10, 10, 3)

    def test_open_stops_are_ends_of_turn_without_a_call(self) -> None:
        trace = Trace(Offered())
        heard(trace, SAY, 2)
        heard(trace, SAY, held=True, settled=1)
        heard(trace, WORK)
        assert trace.open_stops == 2

    def test_rules_of_requests_are_looked_at_where_there_are_calls_pauses_or_results(self) -> None:
        for turn, request, rule in (
            (WORK, Request(WORK), "call_without_result"),
            (PAUSE, Request(PAUSE, text="Go on."), "pause_followed"),
            (SAY, Request(SAY, (ANSWER,)), "result_without_call"),
        ):
            trace = Trace(Offered())
            trace.delivered(turn, 1, "a move")
            trace.resolved(0, False, request)
            assert trace.protocol_faults == [rule]

    @pytest.mark.rule("altered_results")
    def test_an_answer_that_reaches_the_model_as_another_is_altered(self) -> None:
        trace = Trace(Offered())
        trace.delivered(WORK, 1, "a move")
        trace.resolved(0, False, Request(WORK, (Result("c1", ""),)), {"c1": ANSWER})
        assert (trace.altered_results, trace.reworded_results) == (1, 0)

    @pytest.mark.rule("reworded_results")
    def test_an_answer_that_is_cut_short_is_reworded(self) -> None:
        trace = Trace(Offered())
        trace.delivered(WORK, 1, "a move")
        trace.resolved(0, False, Request(WORK, (Result("c1", "users: o ... (truncated)"),)), {"c1": ANSWER})
        assert (trace.altered_results, trace.reworded_results) == (0, 1)

    @pytest.mark.rule("closed_calls")
    def test_an_answer_that_no_tool_gave_closes_the_call(self) -> None:
        trace = Trace(Offered())
        trace.delivered(WORK, 1, "a move")
        trace.resolved(0, False, Request(WORK, (ANSWER,)))
        assert trace.closed_calls == 1

    def test_what_was_made_up_once_is_made_up_again_and_a_tools_own_words_are_not(self) -> None:
        trace = Trace(Offered())
        for ran in ({}, {}, {"c1": ANSWER}, {}):
            trace.delivered(WORK, 1, "a move")
            given = ANSWER if trace.turns > 2 else Result("c1", "interrupted")
            trace.resolved(0, False, Request(WORK, (given,)), ran)
        assert trace.closed_calls == 2

    @pytest.mark.rule("futile_retries")
    def test_asking_the_same_again_after_a_fault_that_cannot_pass_is_futile(self) -> None:
        trace = Trace(Offered())
        trace.no_turn(make_turn((), "failed", native="http_400"), "a fault")
        trace.asked_anew(Request(again=True))
        assert trace.futile_retries == 1

    @pytest.mark.rule("orphan_calls")
    def test_a_call_that_the_model_did_not_make_is_an_orphan(self) -> None:
        trace = Trace(Offered())
        trace.delivered(WORK, 1, "a move")
        trace.runs(WORK, CALL)
        assert trace.orphan_calls == 0
        trace.runs(WORK, Call("c9", "read_item", '{"item": "orders"}'))
        assert trace.orphan_calls == 1

    def test_findings_are_kept_up_to_a_number(self) -> None:
        trace = Trace(Offered())
        for number in range(FINDINGS_KEPT + 5):
            trace.found("a flag", str(number))
        assert len(trace.findings) == FINDINGS_KEPT == 60
        assert trace.findings[-1].thing == "59"

    def test_what_a_harness_does_once_is_counted_once_and_found(self) -> None:
        trace = Trace(Offered())
        trace.broke_dialect("a rule")
        trace.invented("Me.")
        trace.branched(1)
        trace.began_anew()
        counts = trace.dialect_faults, trace.invented_turns, trace.concurrent_runs, trace.amnesia
        assert counts == (1, 1, 1, 1)
        flags = ["dialect_faults", "invented_turns", "concurrent_runs", "amnesia"]
        assert [found.flag for found in trace.findings] == flags

    def test_a_call_is_told_in_eighty_characters(self) -> None:
        trace = Trace(Offered(), Limits(calls=1))
        for _ in range(2):
            trace.runs(WORK, Call("c1", "read_item", f'{{"item": "{"x" * 200}"}}'))
        beyond = [found.thing for found in trace.findings if found.flag == "over_limit"]
        assert beyond == [f"read_item {'x' * 70}, a call beyond the limit of 1 calls"]

    def test_a_decision_about_no_turn_names_the_turn_before(self) -> None:
        trace = Trace(Offered())
        heard(trace, WORK)
        trace.no_turn(make_turn((), "failed", native="http_500"), "")
        trace.ended(0, False, "error")
        (decision,) = trace.decisions
        assert (decision.told, decision.answered, decision.ended) == ("fault, after turn 1", False, "error")
        assert trace.final_stop == "failed"

    def test_a_fork_goes_its_own_way(self) -> None:
        trace = Trace(Offered())
        heard(trace, WORK)
        twin = trace.fork()
        heard(twin, SAY, 3, text="Go on.")
        twin.found("a flag", "of the twin")
        assert (trace.turns, trace.nudges, trace.findings, trace.decisions) == (1, 0, [], [])
        assert (trace.stops, twin.stops) == ({"tool_use": 1}, {"tool_use": 1, "end_turn": 3})

    @pytest.mark.rule("rolled_back")
    def test_going_back_is_found_only_where_something_was_forgotten(self) -> None:
        trace = Trace(Offered())
        trace.went_back(2, 0)
        assert (trace.rolled_back, trace.findings) == (0, [])
        trace.went_back(2, 3)
        assert trace.rolled_back == 3
        assert trace.findings[0].thing == "request 0 goes on from turn 2"
