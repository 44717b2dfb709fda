"""Each policy for each stop reason, and the order in which they are asked."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.decisions import Action, End, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.events import UserWrites
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import FINISH_TOOL, Offered, Tool
from evalkit.core.turns import Block, Call, Finish, ServerCall, Text, Thinking, Turn, make_turn
from evalkit.drivers.in_process import LoopMind, StageInstruments, drive, next_request, run_call
from evalkit.loop.state import Loop, State, bind, binding_limits, start
from evalkit.loop.transitions import on_event, on_results, on_turn
from evalkit.scenarios.scenario import make_task
from evalkit.scoring.arena import Arena
from evalkit.strategies import conditions as c
from evalkit.strategies.folds import Ran
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from evalkit.worlds import make_world
from tests.helpers import play, scenario


class Bench:
    """A loop without a model: turns are put to it, actions come back."""

    def __init__(self, strategy: Strategy, **fields: Any) -> None:
        loaded = scenario([{"say": "x"}], **fields)
        self.world = make_world(loaded.world)
        self.task = make_task(loaded, self.world)
        self.loop = Loop(strategy, self.task)
        self.state: State = start(strategy, self.task)
        self.tokens, self.usd = 0, 0.0
        self.last_turn: Turn | None = None
        self.asked = 0

    def checks(self) -> Verdict:
        self.asked += 1
        return self.world.check(self.task.checks)

    def artifact(self) -> bool:
        return self.world.artifact()

    def replays(self, item: str) -> bool:
        return self.world.reads_done(item)

    def put(self, turn: Turn) -> Action:
        self.state, action, _ = on_turn(self.loop, self.state, turn, self)
        if turn.kind not in ("failed", "in_progress"):
            self.last_turn = turn
        if isinstance(action, RunTools):
            ran = []
            for call in action.calls:
                tool = self.task.tools.get(call.tool)
                name = call.arguments.split('"')[3] if tool and tool.item else ""
                if tool:
                    self.world.perform(call.tool, {"item": name})
                ran.append(Ran(call, Result(call.id, name), tool, self.task.vocabulary.get(name, 0)))
            self.state = on_results(self.loop, self.state, tuple(ran))
            self.state, action, _ = on_turn(self.loop, self.state, turn, self)
        return action


def say(text: str = "x", **fields: Any) -> Turn:
    return make_turn((Text(text),), fields.pop("stop", "end_turn"), **fields)


def do(item: str, stop: Any = "tool_use", *blocks: Block) -> Turn:
    return make_turn((*blocks, Call("c", "do_item", f'{{"item":"{item}"}}')), stop)


PAUSED = make_turn((ServerCall("s", "web_search"),), "pause_turn")
CUT = make_turn((Text("and then"),), "max_tokens")
CUT_CALL = do("users", "max_tokens")
REFUSED = make_turn((), "refusal", category="cyber")
FAILED = make_turn((), "failed", native="http_529")
NEVER = ~(c.silence() | ~c.silence())


def ended(action: Action) -> str:
    assert isinstance(action, End), action
    return action.ending.kind


class TestPauses:
    @pytest.mark.rule("pause_is_sent_back")
    def test_resent_unchanged_25_times_in_a_row(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        actions = [bench.put(PAUSED) for _ in range(26)]
        assert all(isinstance(action, Resend) for action in actions[:25])
        assert ended(actions[25]) == "escalated"

    def test_another_turn_starts_the_count_again(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, resends=1, max_turns=None))
        for item in ("users", "orders", "invoices"):
            assert isinstance(bench.put(PAUSED), Resend)
            assert isinstance(bench.put(do(item)), Send)

    @pytest.mark.rule("resends_are_spent")
    def test_what_a_paused_turn_says_is_heard_when_no_more_are_resent(self) -> None:
        bench = Bench(Strategy(done_when=c.keyword("HALT"), resends=1))
        paused = make_turn((Text("HALT"), ServerCall("s", "web_search")), "pause_turn")
        assert isinstance(bench.put(paused), Resend)
        assert ended(bench.put(paused)) == "done"

    def test_as_content_and_stop(self) -> None:
        assert ended(Bench(Strategy(done_when=c.silence(), pause="as_content")).put(PAUSED)) == "done"
        stopped = Bench(Strategy(done_when=NEVER, pause="stop")).put(PAUSED)
        assert ended(stopped) == "error"
        assert isinstance(stopped, End)
        assert stopped.ending.native == "stopped:pause_turn"

    def test_a_pause_label_over_a_client_call_runs_the_call(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        assert isinstance(bench.put(do("users", "pause_turn")), Send)
        assert bench.world.done


class TestCutOffs:
    @pytest.mark.rule("cut_off_asks_with_a_larger_limit", "cut_offs_are_spent")
    def test_a_larger_limit_three_times_in_a_row(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        actions = [bench.put(CUT) for _ in range(4)]
        assert actions[:3] == [Reissue("limit")] * 3
        assert ended(actions[3]) == "escalated"

    @pytest.mark.parametrize("policy", ["raise_limit", "continue", "fail_calls", "stop"])
    def test_a_cut_off_call_is_not_run(self, policy: Any) -> None:
        bench = Bench(Strategy(done_when=NEVER, cut_off=policy))
        bench.put(CUT_CALL)
        assert bench.world.done == 0

    @pytest.mark.rule("cut_off_calls_fail", "cut_off_is_continued")
    def test_the_other_policies(self) -> None:
        assert Bench(Strategy(done_when=NEVER, cut_off="continue")).put(CUT) == Send("Continue.")
        assert Bench(Strategy(done_when=NEVER, cut_off="fail_calls")).put(CUT_CALL) == Send()
        assert Bench(Strategy(done_when=NEVER, cut_off="fail_calls")).put(CUT) == Send("Continue.")
        assert ended(Bench(Strategy(done_when=NEVER, cut_off="stop")).put(CUT)) == "error"
        ran = Bench(Strategy(done_when=NEVER, cut_off="as_content"))
        assert isinstance(ran.put(CUT_CALL), Send)
        assert ran.world.done
        assert ended(Bench(Strategy(done_when=c.silence(), cut_off="as_content")).put(CUT)) == "done"

    def test_a_call_that_does_not_parse_is_answered_and_the_loop_goes_on(self) -> None:
        broken = make_turn((Call("c", "do_item", '{"it'),), "max_tokens")
        bench = Bench(Strategy(done_when=c.silence(), cut_off="as_content"))
        assert bench.put(broken) == Send()
        assert bench.world.done == 0

    def test_another_turn_starts_their_count_again(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, cut_offs=1))
        for item in ("users", "orders", "invoices"):
            assert isinstance(bench.put(CUT), Reissue)
            assert isinstance(bench.put(do(item)), Send)


class TestRefusals:
    @pytest.mark.rule("refusal_stops")
    def test_each_policy(self) -> None:
        assert ended(Bench(Strategy(done_when=NEVER)).put(REFUSED)) == "escalated"
        assert ended(Bench(Strategy(done_when=NEVER, refusal="stop")).put(REFUSED)) == "error"
        assert ended(Bench(Strategy(done_when=c.silence(), refusal="as_content")).put(REFUSED)) == "done"

    @pytest.mark.rule("refusal_goes_to_a_person")
    def test_one_fallback_and_then_a_person(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, refusal="fallback"))
        assert bench.put(REFUSED) == Reissue("model")
        assert ended(bench.put(REFUSED)) == "escalated"

    @pytest.mark.rule("refused_reasoning_has_no_fallback")
    def test_reasoning_extraction_is_not_asked_of_a_fallback(self) -> None:
        turn = make_turn((), "refusal", category="reasoning_extraction")
        assert ended(Bench(Strategy(done_when=NEVER, refusal="fallback")).put(turn)) == "escalated"

    def test_retries_are_bounded(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, refusal="retry"))
        assert [bench.put(REFUSED) for _ in range(3)] == [Reissue("retry")] * 3
        assert ended(bench.put(REFUSED)) == "escalated"


class TestFaults:
    @pytest.mark.rule("fault_is_asked_again")
    def test_five_identical_retries_then_error(self) -> None:
        bench = Bench(Strategy(done_when=c.silence()))
        assert [bench.put(FAILED) for _ in range(5)] == [Reissue("retry")] * 5
        action = bench.put(FAILED)
        assert ended(action) == "error"
        assert isinstance(action, End)
        assert action.ending.native == "fault:http_529"

    def test_a_turn_between_starts_the_count_again(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        for item in ("users", "orders"):
            assert [bench.put(FAILED) for _ in range(5)] == [Reissue("retry")] * 5
            assert isinstance(bench.put(do(item)), Send)

    @pytest.mark.rule("fault_ends")
    def test_fail_asks_done_when_with_the_last_turn(self) -> None:
        bench = Bench(Strategy(done_when=c.acceptance(), faults="fail"), world={"items": ["users"]})
        bench.put(do("users"))
        assert ended(bench.put(FAILED)) == "done"
        early = Bench(Strategy(done_when=c.silence(), faults="fail"))
        early.put(do("users"))
        assert ended(early.put(FAILED)) == "error"

    @pytest.mark.rule("answer_in_progress_is_polled")
    def test_a_pending_answer_is_polled(self) -> None:
        pending = make_turn((), "in_progress")
        assert Bench(Strategy(done_when=NEVER)).put(pending) == Reissue("poll")


class TestUnknownAndEmpty:
    @pytest.mark.rule("unknown_reason_stops")
    def test_unknown_labels(self) -> None:
        turn = say(stop="unknown", native="brand_new")
        assert ended(Bench(Strategy(done_when=c.silence())).put(turn)) == "done"
        assert Bench(Strategy(done_when=NEVER, unknown="nudge")).put(turn) == Send("Continue.")
        assert ended(Bench(Strategy(done_when=NEVER, unknown="stop")).put(turn)) == "error"

    def test_when_the_user_has_left_an_unknown_label_is_an_end_of_turn_too(self) -> None:
        turn = say(stop="unknown", native="brand_new")
        bench = Bench(Strategy(done_when=NEVER, unknown="nudge"))
        bench.state = on_event(bench.loop, bench.state, UserWrites("Bye.", closes=True), bench)
        action = bench.put(turn)
        assert isinstance(action, End)
        assert (action.ending.kind, action.ending.native) == ("limit", "user_gone")

    def test_done_when_is_asked_first_where_an_unknown_label_is_nudged(self) -> None:
        turn = say(stop="unknown", native="brand_new")
        assert ended(Bench(Strategy(done_when=c.silence(), unknown="nudge")).put(turn)) == "done"

    @pytest.mark.rule("empty_turn_stops")
    def test_empty_comes_after_done_when(self) -> None:
        for turn in (make_turn((), "end_turn"), make_turn((Thinking("hm"),), "end_turn"), say("  ")):
            assert Bench(Strategy(done_when=NEVER)).put(turn) == Send("Continue.")
            assert ended(Bench(Strategy(done_when=NEVER, empty="stop")).put(turn)) == "error"
            assert ended(Bench(Strategy(done_when=c.silence(), empty="stop")).put(turn)) == "done"

    @pytest.mark.rule("done_when_is_met")
    def test_the_label_does_not_win_over_the_content(self) -> None:
        assert isinstance(Bench(Strategy(done_when=c.silence())).put(do("users", "end_turn")), Send)
        assert ended(Bench(Strategy(done_when=c.silence())).put(say(stop="tool_use"))) == "done"

    @pytest.mark.rule("first_block_is_not_text")
    def test_read_text_fails_where_the_first_block_is_not_text(self) -> None:
        strategy = PRESETS["read_text"].strategy
        thinks = make_turn((Thinking("hm"), Text("Done.")), "end_turn")
        assert ended(Bench(strategy).put(thinks)) == "error"
        assert ended(Bench(strategy).put(say())) == "done"


class TestLimitsAndNudges:
    def test_the_smaller_limit_binds(self) -> None:
        loaded = scenario([{"say": "x"}], limits={"turns": 7, "tokens": 100})
        limits = binding_limits(Strategy(done_when=NEVER, max_turns=9, max_usd=1.5), loaded.limits)
        assert (limits.turns, limits.tokens, limits.usd) == (7, 100, 1.5)

    def test_calls_of_the_last_allowed_turn_are_run(self) -> None:
        bench = Bench(Strategy(done_when=c.acceptance(), max_turns=1), world={"items": ["users"]})
        assert ended(bench.put(do("users"))) == "done"
        short = Bench(Strategy(done_when=c.acceptance(), max_turns=1))
        action = short.put(do("users"))
        assert ended(action) == "limit"
        assert short.world.done
        assert isinstance(action, End)
        assert action.ending.report.outstanding == ("orders", "invoices")

    @pytest.mark.rule("nudges_are_spent")
    def test_done_when_then_limit_then_nudge_cap(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, max_turns=2, nudges=1))
        bench.put(say())
        assert ended(bench.put(say())) == "limit"
        capped = Bench(Strategy(done_when=NEVER, nudges=1, then="limit"))
        capped.put(say())
        action = capped.put(say())
        assert ended(action) == "limit"
        assert isinstance(action, End)
        assert action.ending.native == "nudges"

    @pytest.mark.rule("new_effect_resets_nudges", "nudge")
    def test_only_a_new_effect_resets_the_nudges(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, nudges=1))
        bench.put(say())
        bench.put(make_turn((Call("c", "list_items", "{}"),), "tool_use"))
        assert bench.state.nudges == 1
        bench.put(do("users"))
        assert bench.state.nudges == 0
        bench.put(say())
        bench.put(do("users"))
        assert bench.state.nudges == 1

    def test_so_does_one_of_a_tool_that_the_task_does_not_have(self) -> None:
        """The tools of a recording are not the task's."""
        bench = Bench(Strategy(done_when=NEVER, nudges=1))
        bench.put(say())
        record = Ran(Call("c", "deploy", "{}"), Result("c", "ok"), Tool("deploy", "Deploys."), 1)
        assert on_results(bench.loop, bench.state, (record,)).nudges == 0

    def test_without_a_cap_on_nudges_effects_are_taken_down_all_the_same(self) -> None:
        bench = Bench(Strategy(done_when=c.certificate(), nudges=None), world={"skippable": ["users"]})
        skip = Finish(skipped=("users",), reason="It is not there.")
        bench.put(make_turn((Text("Leaving one out."),), "end_turn", told=skip))
        before = bench.state
        bench.put(do("orders"))
        assert bench.state.skips == before.skips
        bench.put(do("users"))
        assert bench.state.skips == ()

    def test_a_budget_in_all(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, nudge_budget=2))
        for item in ("users", "orders"):
            assert bench.put(say()) == Send("Continue.")
            bench.put(do(item))
        assert ended(bench.put(say())) == "escalated"

    @pytest.mark.rule("nudge_names_what_is_open")
    def test_a_nudge_names_every_item_of_a_gap(self) -> None:
        action = Bench(Strategy(done_when=c.acceptance())).put(say())
        assert isinstance(action, Send)
        assert action.text is not None
        assert "users, orders, invoices" in action.text

    def test_tokens_and_money(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, max_tokens=10))
        bench.tokens = 10
        assert ended(bench.put(do("users"))) == "limit"
        money = Bench(Strategy(done_when=NEVER, max_usd=0.01))
        money.usd = 0.02
        assert ended(money.put(say())) == "limit"

    @pytest.mark.rule("asked_at_each_turn")
    def test_each_tool_turn(self) -> None:
        strategy = Strategy(done_when=c.acceptance(), check="each_tool_turn")
        bench = Bench(strategy, world={"items": ["users", "orders"]})
        assert bench.put(do("users")) == Send()
        assert ended(bench.put(do("orders"))) == "done"

    @pytest.mark.rule("given_up_at_a_turn_with_calls")
    def test_each_tool_turn_asks_whether_to_give_up_too(self) -> None:
        patient = Strategy(done_when=c.acceptance(), check="each_tool_turn", give_up_when=c.no_progress(1))
        bench = Bench(patient, world={"items": ["users", "orders"]})
        assert bench.put(do("users")) == Send()
        action = bench.put(make_turn((Call("c", "read_item", '{"item":"users"}'),), "tool_use"))
        assert isinstance(action, End)
        assert (action.ending.kind, action.ending.native) == ("escalated", "give_up_when")

    @pytest.mark.rule("loop_guard")
    def test_the_loop_guard_lets_the_second_block_for_the_same_gaps_through(self) -> None:
        strategy = PRESETS["stop_hook"].strategy
        bench = Bench(strategy, task={"items": "given"})
        assert isinstance(bench.put(say(claim="done")), Send)
        assert ended(bench.put(say(claim="done"))) == "done"
        honest = Bench(strategy, task={"items": "given"})
        honest.put(say())
        assert ended(honest.put(say())) == "escalated"
        works = Bench(strategy, task={"items": "given"})
        works.put(say())
        works.put(do("users"))
        assert isinstance(works.put(say()), Send)


class TestFinish:
    def finish(self, completed: str, skipped: str = "", reason: str = "") -> Turn:
        import json

        arguments = {
            "items_completed": completed.split(),
            "items_skipped": skipped.split(),
            "reason_skipped": reason,
        }
        return make_turn((Call("f", FINISH_TOOL, json.dumps(arguments)),), "tool_use")

    @pytest.mark.rule("finish_is_rejected", "rejection_names_what_is_open")
    def test_a_finish_that_leaves_items_out_is_rejected_with_their_names(self) -> None:
        bench = Bench(Strategy(done_when=c.finish(validate=True)), task={"items": "given"})
        action = bench.put(self.finish("users"))
        assert isinstance(action, Reject)
        assert action.text.startswith("2 items unaccounted for: orders, invoices.")
        assert isinstance(bench.put(self.finish("users", "orders invoices")), Reject)
        assert ended(bench.put(self.finish("users orders invoices"))) == "done"

    @pytest.mark.rule("rejection_without_names")
    def test_a_rejection_names_nothing_where_nudges_only_say_to_continue(self) -> None:
        strategy = Strategy(done_when=c.finish(validate=True), nudge_says="continue")
        assert Bench(strategy, task={"items": "given"}).put(self.finish("users")) == Reject("Not accepted.")

    def test_with_no_items_known_it_is_rejected(self) -> None:
        action = Bench(Strategy(done_when=c.finish(validate=True))).put(self.finish("users"))
        assert action == Reject("Not accepted: no items known: list them before finishing.")

    @pytest.mark.rule(
        "a_skip_that_is_not_allowed_is_partial", "what_was_skipped_without_a_reason_is_outstanding"
    )
    def test_skips_make_it_done_or_partial(self) -> None:
        turn = self.finish("users orders", "invoices", "no rule")
        allowed = Bench(Strategy(done_when=c.finish()), world={"skippable": ["invoices"]}).put(turn)
        refused = Bench(Strategy(done_when=c.finish())).put(turn)
        assert ended(allowed) == "done"
        assert ended(refused) == "partial"
        assert isinstance(refused, End)
        assert refused.ending.report.outstanding == ("invoices",)

    def test_text_told_skips_are_recorded_where_a_condition_reads_them(self) -> None:
        told = Finish(("users",), ("orders", "invoices"), "no access")
        bench = Bench(Strategy(done_when=c.checklist()), task={"items": "given"})
        bench.put(say(told=told))
        assert bench.task.names(int(bench.state.folds[2])) == ("orders", "invoices")  # type: ignore[call-overload]


def test_exhausted_or_clean_the_report_has_one_shape() -> None:
    model = [{"call": "list_items"}, {"work": 1}, {"say": "Stuck.", "claim": "blocked"}]
    for limits in ({"turns": 2}, {"turns": 40}, {"tokens": 60}):
        episode = play(scenario(model, limits=limits), "gate")
        assert episode.ending in ("limit", "escalated")
        assert episode.honest_report
        assert episode.over_reported == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"pause": "wait"}, "pause must be one of resend, as_content, stop; got 'wait'"),
        ({"max_turns": 0}, "max_turns must be above 0, or None for none; got 0"),
        ({"nudges": -1}, "nudges must be above 0"),
        ({"done_when": "silence"}, "done_when: expected a condition"),
    ],
)
def test_a_field_that_cannot_be_is_named(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Strategy(**{"done_when": c.silence(), **fields})


def test_a_rejected_finish_is_answered_with_an_error_and_its_other_calls_as_they_ran() -> None:
    made = Arena(scenario([{"finish": {"completed": "all"}}]), Offered(finish=True)).stage(0)
    turn = made.ask(Request())
    sent = next_request(Reject("Not accepted."), made, Request())
    assert sent.echo is turn
    assert [(answer.text, answer.error) for answer in sent.results] == [("Not accepted.", True)]


def test_what_is_bound_is_kept_for_the_same_strategy_and_task_alone() -> None:
    plain = scenario([{"work": "rest"}])
    task, other = Arena(plain, Offered()).task(0), Arena(plain, Offered()).task(0)
    strategy, equal = Strategy(done_when=c.silence()), Strategy(done_when=c.silence())
    first = bind(strategy, task)
    assert bind(strategy, task) is first
    for pair in ((equal, task), (strategy, other), (strategy, task)):
        loop = bind(*pair)
        assert (loop.strategy, loop.task) == pair
        assert loop.strategy is pair[0]
        assert loop.task is pair[1]


def test_a_call_is_about_an_item_only_where_its_tool_names_one() -> None:
    stage = Arena(scenario([{"say": "x"}]), Offered()).stage(0)
    assert run_call(stage, stage.task, Call("c", "list_items", '{"": "users"}')).item == 0
    assert run_call(stage, stage.task, Call("c", "do_item", '{"item": "users"}')).item == 1


def test_a_run_that_is_taken_up_begins_with_the_request_that_it_had_to_make() -> None:
    arena = Arena(scenario([{"truncate": "text", "until": "higher_limit"}, {"say": "Done."}]), Offered())
    stage = arena.stage(0)
    cut = stage.ask(Request())
    mind = LoopMind(Strategy(done_when=c.silence()), stage.task, StageInstruments(stage))
    ending = drive(mind, stage, request=Request(limit=stage.previous.limit * 2))
    assert cut.kind == "cut_off"
    assert (ending.kind, stage.turns) == ("done", 2)


def test_a_request_that_is_made_shorter_asks_something_else() -> None:
    stage = Arena(scenario([{"say": "x"}]), Offered()).stage(0)
    last = Request(text="Go on.", again=True, poll=True)
    assert next_request(Reissue("shorten"), stage, last) == Request(text="Go on.", shortened=True)


def test_a_call_needs_no_text_before_it() -> None:
    reads_first = Strategy(done_when=c.finish(), text="first_block")
    model = [{"call": "list_items"}, {"work": "rest"}, {"finish": {"completed": "all"}}]
    assert play(scenario(model), reads_first).outcome == "done/complete"


@pytest.mark.parametrize(("misses", "counted"), [(0.0, False), (0.5, True)])
def test_turns_are_counted_where_a_limit_or_chance_asks_for_it(misses: float, counted: bool) -> None:
    errs = Strategy(done_when=c.verifier(sees="evidence", misses=misses), max_turns=None)
    assert Bench(errs).loop.counts_turns is counted
    assert Bench(errs.but(max_turns=9)).loop.counts_turns
