"""Policies of section 5 that need a conversation: full windows, keys, faults that stay, calls, questions."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.decisions import End, Reissue, Send
from evalkit.core.events import UserWrites
from evalkit.core.tasks import FINISH_TOOL
from evalkit.core.turns import Finish, Text, make_turn
from evalkit.loop.state import binding_limits
from evalkit.loop.transitions import _with_undo, on_event, out_of_turns
from evalkit.strategies import Strategy
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from tests.helpers import play, scenario
from tests.loop.test_loop import NEVER, Bench, do, ended, say

LIST: dict[str, Any] = {"call": "list_items"}
DONE: dict[str, Any] = {"say": "All of it is done.", "claim": "done"}
FULL = make_turn((Text("The next"),), "context_window")
FULL_400 = make_turn((), "failed", native="http_400_window_full")


class TestFullWindow:
    @pytest.mark.rule("full_window_is_compacted")
    def test_asked_again_with_less_and_full_again_at_once_is_the_end(self) -> None:
        for full in (FULL, FULL_400):
            bench = Bench(Strategy(done_when=NEVER))
            assert bench.put(full) == Reissue("shorten")
            action = bench.put(full)
            assert isinstance(action, End)
            assert (action.ending.kind, action.ending.native) == ("escalated", "overflow")

    @pytest.mark.rule("full_window_and_no_room")
    def test_a_fault_that_says_so_after_a_turn_asks_done_when_before_the_end(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        bench.put(do("users"))
        assert bench.put(FULL_400) == Reissue("shorten")
        assert ended(bench.put(FULL_400)) == "escalated"

    def test_a_turn_between_makes_room_again(self) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        for item in ("users", "orders", "invoices"):
            assert bench.put(FULL) == Reissue("shorten")
            assert isinstance(bench.put(do(item)), Send)

    def test_what_only_the_conversation_holds_is_forgotten(self) -> None:
        bench = Bench(Strategy(done_when=c.verifier(sees="transcript")), task={"items": "given"})
        bench.put(do("users"))
        before = dict(zip(bench.loop.names, bench.state.folds, strict=True))
        bench.put(FULL)
        after = dict(zip(bench.loop.names, bench.state.folds, strict=True))
        assert (before["shown"], after["shown"]) == (1, 0)
        assert after["known"] == before["known"] == 7

    @pytest.mark.rule("full_window_asks_with_a_larger_limit", "full_window_stops")
    def test_the_other_policies(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, overflow="raise_limit"))
        assert [bench.put(FULL) for _ in range(3)] == [Reissue("limit")] * 3
        assert ended(bench.put(FULL)) == "escalated"
        bench = Bench(Strategy(done_when=NEVER, overflow="raise_limit", cut_offs=None))
        assert [bench.put(FULL) for _ in range(9)] == [Reissue("limit")] * 9
        stopped = Bench(Strategy(done_when=NEVER, overflow="stop")).put(FULL)
        assert isinstance(stopped, End)
        assert (stopped.ending.kind, stopped.ending.native) == ("error", "stopped:context_window")
        assert ended(Bench(Strategy(done_when=c.silence(), overflow="as_content")).put(FULL)) == "done"

    @pytest.mark.parametrize("overflow", ["stop", "as_content"])
    def test_without_a_policy_that_makes_room_a_400_is_a_fault(self, overflow: Any) -> None:
        action = Bench(Strategy(done_when=NEVER, overflow=overflow)).put(FULL_400)
        assert isinstance(action, End)
        assert (action.ending.kind, action.ending.native) == ("error", "fault:http_400_window_full")

    def test_before_any_turn_there_is_nothing_to_ask_done_when_about(self) -> None:
        bench = Bench(Strategy(done_when=c.acceptance(), overflow="compact", then="error"))
        bench.put(FULL_400)
        assert ended(bench.put(FULL_400)) == "error"

    def test_the_presets(self) -> None:
        window = {"truncate": "text", "limit": "context_window", "until": "changed"}
        loaded = scenario([LIST, window, {"work": "rest"}, DONE])
        assert play(loaded, "silence").turns == 2
        assert PRESETS["turn_cap"].strategy.overflow == "as_content"
        assert PRESETS["gate"].strategy.overflow == "compact"


class TestFaultsThatStay:
    @pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
    def test_asked_once(self, status: int) -> None:
        bench = Bench(Strategy(done_when=NEVER))
        action = bench.put(make_turn((), "failed", native=f"http_{status}"))
        assert isinstance(action, End)
        assert (action.ending.kind, action.ending.native) == ("error", f"fault:http_{status}")

    @pytest.mark.parametrize("native", ["http_408", "http_409", "http_429", "http_500", "cut_mid_stream"])
    def test_others_are_retried(self, native: str) -> None:
        assert Bench(Strategy(done_when=NEVER)).put(make_turn((), "failed", native=native)) == Reissue(
            "retry"
        )

    @pytest.mark.rule("done_before_a_limit")
    def test_done_when_is_asked_before(self) -> None:
        bench = Bench(Strategy(done_when=c.acceptance()), world={"items": ["users"]})
        bench.put(do("users"))
        assert ended(bench.put(make_turn((), "failed", native="http_403"))) == "done"


def ledger(moves: list[Any], **fields: Any) -> Any:
    return scenario(moves, world={"kind": "ledger", "items": ["rent", "power"]}, **fields)


class TestOwnKeys:
    OWN = Strategy(done_when=c.acceptance(), repeats="own_key")
    LISTS: dict[str, Any] = {"call": "list_payments"}

    def post(self, *items: str, **more: Any) -> dict[str, Any]:
        return {"work": list(items), "again": True, **more}

    def test_an_undone_action_has_a_key_of_its_own_each_time(self) -> None:
        once = _with_undo((), "undo_item", 1)
        assert once == (("undo_item", 1, 1),)
        assert _with_undo(_with_undo(once, "undo_item", 1), "undo_item", 2) == (
            ("undo_item", 1, 2),
            ("undo_item", 2, 1),
        )

    def test_a_repetition_is_made_once(self) -> None:
        loaded = ledger([self.LISTS, {"work": "rest"}, self.post("rent"), DONE])
        assert play(loaded, "acceptance").truth != "complete"
        episode = play(loaded, self.OWN)
        assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 0)

    def test_in_one_batch_too(self) -> None:
        twice = [{"call": "post_payment", "with": {"payment": "rent", "key": key}} for key in ("k1", "k2")]
        loaded = ledger([self.LISTS, {"turn": twice}, {"work": ["power"]}, DONE])
        assert play(loaded, "acceptance").truth != "complete"
        assert play(loaded, self.OWN).outcome == "done/complete"

    def test_what_was_undone_is_done_anew(self) -> None:
        undone = [
            self.LISTS,
            {"work": "rest"},
            {"undo": ["rent"]},
            self.post("rent"),
            self.post("rent"),
            DONE,
        ]
        assert play(ledger(undone), self.OWN).outcome == "done/complete"
        batch = [
            {"call": "post_payment", "with": {"payment": "rent", "key": "k1"}},
            {"call": "refund_payment", "with": {"payment": "rent"}},
            {"call": "post_payment", "with": {"payment": "rent", "key": "k2"}},
        ]
        for after in ([], [self.post("rent")]):
            loaded = ledger([self.LISTS, {"turn": batch}, {"work": ["power"]}, *after, DONE])
            assert play(loaded, self.OWN).outcome == "done/complete"

    def test_without_a_cap_on_nudges_too(self) -> None:
        uncapped = self.OWN.but(nudges=None)
        undone = [
            self.LISTS,
            {"work": "rest"},
            {"undo": ["rent"]},
            self.post("rent"),
            self.post("rent"),
            DONE,
        ]
        assert play(ledger(undone), uncapped).outcome == "done/complete"

    def test_only_where_a_tool_takes_a_key(self) -> None:
        assert not Bench(self.OWN).loop.keyed
        assert Bench(self.OWN, world={"kind": "ledger"}).loop.keyed

    def test_an_undo_that_failed_begins_nothing(self) -> None:
        refund = {"call": "refund_payment", "with": {"payment": "power"}}
        loaded = ledger(
            [self.LISTS, {"turn": [refund, {"work": ["power"]}]}, self.post("power"), self.post("rent"), DONE]
        )
        assert play(loaded, self.OWN).outcome == "done/complete"

    def test_gate_sets_them_and_the_others_do_not(self) -> None:
        own = [name for name, preset in PRESETS.items() if preset.strategy.repeats == "own_key"]
        assert own == ["gate"]


class TestCalls:
    def test_looked_at_before_a_batch_is_run(self) -> None:
        loaded = scenario([LIST, {"work": 1}, {"work": "rest", "parallel": True}, DONE], limits={"calls": 3})
        episode = play(loaded, "silence")
        assert (episode.ending, episode.native, episode.truth) == ("limit", "max_calls", "reachable")
        enough = scenario([LIST, {"work": 1}, {"work": "rest", "parallel": True}, DONE], limits={"calls": 4})
        assert play(enough, "silence").outcome == "done/complete"

    def test_the_harness_s_own_are_not_counted(self) -> None:
        loaded = scenario([LIST, {"work": "rest"}, {"finish": {"completed": "all"}}], limits={"calls": 4})
        assert play(loaded, "validated_finish").outcome == "done/complete"

    @pytest.mark.rule("limit_of_calls")
    def test_they_bind_every_strategy(self) -> None:
        loaded = scenario([{"repeat": {"times": "forever", "do": [LIST]}}], limits={"calls": 5})
        for name, preset in PRESETS.items():
            assert binding_limits(preset.strategy, loaded.limits).calls == 5
            episode = play(loaded, name)
            assert (episode.native, episode.turns) == ("max_calls", 6)


class TestMessages:
    @pytest.mark.rule("user_resets_nudges")
    def test_the_nudges_begin_anew(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, nudges=2))
        for _ in range(3):
            assert [bench.put(say()), bench.put(say())] == [Send("Continue.")] * 2
            bench.state = on_event(bench.loop, bench.state, UserWrites("And?"), bench)
        bench.put(say())
        bench.put(say())
        assert ended(bench.put(say())) == "escalated"

    def test_a_budget_in_all_does_not(self) -> None:
        bench = Bench(Strategy(done_when=NEVER, nudges=None, nudge_budget=2))
        bench.put(say())
        bench.state = on_event(bench.loop, bench.state, UserWrites("And?"), bench)
        bench.put(say())
        assert ended(bench.put(say())) == "escalated"

    def test_what_is_asked_for_is_known(self) -> None:
        for given in ("given", "listed"):
            bench = Bench(Strategy(done_when=c.checklist()), task={"items": given})
            bench.state = on_event(bench.loop, bench.state, UserWrites("orders too", asks=2), bench)
            assert bench.state.folds[0] in (2, 7)

    @pytest.mark.rule("limit_behind_calls", "limits_of_a_query_begin_anew")
    def test_limits_of_a_query_begin_anew(self) -> None:
        limits = {"turns": 2, "tokens": 100, "calls": 2, "per": "query"}
        bench = Bench(Strategy(done_when=NEVER, nudges=None), limits=limits)
        assert isinstance(bench.put(do("users")), Send)
        bench.tokens = 90
        bench.state = on_event(bench.loop, bench.state, UserWrites("And?"), bench)
        bench.tokens = 120
        assert isinstance(bench.put(do("orders")), Send)
        assert out_of_turns(bench.loop, bench.state, do("orders"), bench) is None
        bench.tokens = 200
        assert ended(bench.put(do("invoices"))) == "limit"

    @pytest.mark.rule("limit_at_a_decision")
    def test_limits_of_an_episode_do_not(self) -> None:
        bench = Bench(Strategy(done_when=NEVER), limits={"turns": 1})
        assert ended(bench.put(say())) == "limit"
        bench.state = on_event(bench.loop, bench.state, UserWrites("And?", asks=1), bench)
        ending = out_of_turns(bench.loop, bench.state, say(), bench)
        assert ending is not None
        assert (ending.kind, ending.native) == ("limit", "max_turns")

    def test_a_message_that_finds_the_limit_reached_brings_no_turn(self) -> None:
        limits, world = {"turns": 3}, {"items": ["users", "orders"]}
        first: list[Any] = [LIST, {"work": ["users"]}, DONE]
        asks = {"user": {"text": "Orders too.", "asks": ["orders"]}}
        more = play(
            scenario([*first, asks, {"work": ["orders"]}, DONE], world=world, limits=limits), "acceptance"
        )
        assert (more.outcome, more.native, more.turns) == ("limit/reachable", "max_turns", 3)
        thanks = {"user": {"text": "Thanks."}}
        alone = play(
            scenario([*first, thanks, DONE], world={"items": ["users"]}, limits=limits), "acceptance"
        )
        assert (alone.outcome, alone.turns) == ("done/complete", 3)


class TestWhatIsNotHeard:
    CLAIM = "All is done. TERMINATE"

    @pytest.mark.parametrize("stop", ["max_tokens", "context_window", "refusal"])
    def test_a_cut_off_or_refused_turn_claims_nothing(self, stop: Any) -> None:
        told = make_turn((Text(self.CLAIM),), stop, claim="done")
        ends: dict[str, Any] = {"cut_off": "stop", "overflow": "stop", "refusal": "stop"}
        for met in (c.keyword(), c.verifier(sees="claim")):
            assert ended(Bench(Strategy(done_when=met, **ends)).put(told)) == "error"
            read = dict.fromkeys(ends, "as_content")
            assert ended(Bench(Strategy(done_when=met, **read)).put(told)) == "done"

    @pytest.mark.rule("cut_off_stops")
    def test_nor_is_its_finish_call_one(self) -> None:
        bench = Bench(Strategy(done_when=c.finish(), cut_off="stop"))
        turn = make_turn((do("users").calls[0], _finish('{"items_completed": ["users"]}')), "max_tokens")
        assert ended(bench.put(turn)) == "error"


def _finish(arguments: str) -> Any:
    from evalkit.core.turns import Call

    return Call("f", FINISH_TOOL, arguments)


class TestReports:
    @pytest.mark.rule("dishonest_report", "over_reported")
    def test_a_finish_in_words_reports_only_the_skips_that_it_names(self) -> None:
        for name in ("checklist", "unattended"):
            silent = play(scenario([{"work": ["users"]}, {"finish": {"completed": ["users"]}}]), name)
            assert silent.honest_report is None
        skips = {
            "say": "One is left.",
            "claim": "partial",
            "finish": {"skipped": ["users"], "reason": "none"},
        }
        assert play(scenario([{"work": 2}, skips]), "checklist").honest_report is not None

    def test_a_validated_finish_without_known_items_is_none(self) -> None:
        loaded = scenario([{"finish": {"completed": "all"}}])
        assert play(loaded, "validated_finish").honest_report is None
        assert play(loaded, "finish_tool").honest_report is False

    def test_the_last_finish_makes_ending_and_report(self) -> None:
        first = {"finish": {"completed": ["users"], "skipped": ["orders", "invoices"], "reason": "later"}}
        loaded = scenario([LIST, {"work": 1}, {"turn": [first, {"finish": {"completed": "all"}}]}])
        episode = play(loaded, "finish_tool")
        assert episode.ending == "done"
        assert episode.false_done
        bench = Bench(Strategy(done_when=c.finish()))
        both = make_turn(
            (_finish('{"items_skipped": ["users"], "reason_skipped": "r"}'), _finish("{}")), "tool_use"
        )
        action = bench.put(both)
        assert isinstance(action, End)
        assert (action.ending.kind, action.ending.report.outstanding) == ("done", ())

    def test_a_finish_with_nothing_in_it_is_a_finish(self) -> None:
        bench = Bench(Strategy(done_when=c.finish()))
        assert ended(bench.put(make_turn((_finish('{"items_compl'),), "tool_use"))) == "done"


def test_a_skip_beside_a_call_is_known_to_everybody() -> None:
    skip = {"say": "One can be left.", "claim": "partial", "channel": "text"}
    skip["finish"] = {"completed": [], "skipped": ["invoices"], "reason": "not needed"}  # type: ignore[assignment]
    loaded = scenario(
        [LIST, {"turn": [skip, {"work": 2, "parallel": True}]}, DONE], world={"skippable": ["invoices"]}
    )
    for name in ("checklist", "verifier_evidence", "verifier_transcript", "certificate", "gate"):
        assert play(loaded, name).outcome == "done/complete", name
    cut = {**skip, "claim": "done", "stop": "max_tokens"}
    late = scenario([LIST, {"work": 2}, cut, DONE], world={"skippable": ["invoices"]})
    for name in ("checklist", "verifier_evidence", "gate", "acceptance"):
        assert play(late, name).ending == "escalated", name


def test_an_item_that_is_forbidden_can_only_be_skipped() -> None:
    world = {"items": ["users", "backup"], "skippable": ["backup"], "forbidden": ["backup"]}
    done = scenario([LIST, {"work": "rest"}, DONE], world=world)
    assert play(done, "silence").outcome == "done/stuck"
    assert play(done, "silence").false_done
    for name in ("acceptance", "gate"):
        assert play(done, name).outcome == "escalated/stuck"
    leaves = {
        "say": "Backup stays.",
        "claim": "done",
        "finish": {"completed": ["users"], "skipped": ["backup"], "reason": "no"},
    }
    skipped = scenario([LIST, {"work": ["users"]}, leaves], world=world)
    for name in ("acceptance", "gate", "checklist"):
        assert play(skipped, name).outcome == "done/complete", name


def test_a_forbidden_item_that_was_done_stays_broken_when_it_is_skipped() -> None:
    world = {"items": ["users", "backup"], "skippable": ["backup"], "forbidden": ["backup"]}
    told = {"completed": ["users"], "skipped": ["backup"], "reason": "not ours"}
    leaves = {"say": "Backup stays.", "claim": "done", "finish": told}
    assert play(scenario([LIST, {"work": "rest"}, leaves], world=world), "checklist").false_done


def test_a_listing_that_names_what_is_forbidden_makes_no_item_of_it() -> None:
    world = {"forbidden": ["payroll"], "noise": "payroll is not yours"}
    loaded = scenario([LIST, {"work": "rest"}, DONE], world=world)
    for name in ("checklist", "verifier_evidence", "certificate", "gate"):
        assert play(loaded, name).outcome == "done/complete", name


def test_given_items_are_items_alone() -> None:
    fields: dict[str, Any] = {"task": {"items": "given"}}
    model = [{"work": ["users"]}, {"say": "So.", "claim": "partial"}, {"work": "rest"}, DONE]
    plain = scenario(model, **fields)
    fenced = scenario(model, world={"forbidden": ["payroll"]}, **fields)
    bench = Bench(Strategy(done_when=c.checklist()), world={"forbidden": ["payroll"]}, **fields)
    assert "payroll" not in str(bench.put(say()))
    for name in PRESETS:
        assert play(fenced, name).outcome == play(plain, name).outcome, name


def test_a_finish_that_nobody_offered_ends_nothing() -> None:
    calls = {"call": FINISH_TOOL, "with": {"items_completed": ["users", "orders", "invoices"]}}
    loaded = scenario([LIST, {"work": 1}, {"repeat": {"times": 6, "do": [calls]}}, DONE])
    episode = play(loaded, "silence")
    assert (episode.ending, episode.turns, episode.false_done) == ("done", 9, True)
    assert episode.decisions == (0, 1, 0, 0)
    assert play(loaded, "checklist").honest_report


@pytest.mark.parametrize("answer", [1, "yes", None, [], 0.5])
def test_a_plain_function_answers_with_a_bool_or_a_verdict(answer: Any) -> None:
    bench = Bench(Strategy(done_when=c.when(lambda view: answer, name="mine")))
    with pytest.raises(TypeError, match="mine must answer with a bool or a Verdict, got"):
        bench.put(say(told=Finish()))


def test_the_answer_to_a_finish_that_nobody_offered_is_no_change() -> None:
    calls = {"call": FINISH_TOOL, "with": {"items_completed": ["users"]}, "until": "changed"}
    loaded = scenario([LIST, calls, {"work": "rest"}, DONE], limits={"turns": 6})
    assert play(loaded, "silence").native == "max_turns"
    assert play(loaded, "validated_finish").outcome == "done/complete"
