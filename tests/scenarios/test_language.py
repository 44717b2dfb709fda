"""What the moves and events of the language do to a run, in process."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.core.events import UserWrites
from evalkit.core.tasks import Offered
from evalkit.core.turns import Call
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode, run_episode
from evalkit.stage.stage import Stage
from evalkit.strategies.presets import PRESETS
from tests.helpers import play, scenario

LEDGER = {"kind": "ledger", "items": ["pay-a", "pay-b"]}
LISTS = {"call": "list_items"}
DONE = {"say": "All is done.", "claim": "done"}


def ideal(loaded: Scenario) -> Episode:
    return ideal_episode(Arena(loaded, Offered()), 0)


def staged(loaded: Scenario, strategy: str = "silence") -> tuple[Stage, Episode]:
    """The stage of an episode, and the episode."""
    stages: list[Stage] = []
    chosen = PRESETS[strategy].strategy
    episode = run_episode(Arena(loaded, chosen.offers), chosen, 0, on_stage=stages.append)
    return stages[0], episode


def calls(loaded: Scenario, strategy: str = "silence") -> list[tuple[Call, ...]]:
    """The calls of each turn."""
    seen: list[tuple[Call, ...]] = []
    chosen = PRESETS[strategy].strategy

    def watch(turn: Any, action: Any, verdict: Any, results: Any) -> None:
        if type(action).__name__ != "RunTools":
            seen.append(turn.calls)

    run_episode(Arena(loaded, chosen.offers), chosen, 0, watch=watch)
    return seen


class TestLaterQuestions:
    MODEL = (
        LISTS,
        {"work": ["users"]},
        {"say": "The first is done.", "claim": "done"},
        {"user": {"text": "Now orders and invoices.", "asks": ["orders", "invoices"]}},
        {"work": "rest"},
        DONE,
    )

    @pytest.mark.parametrize("strategy", ["silence", "gate", "checklist", "acceptance"])
    def test_each_answer_is_right_by_itself(self, strategy: str) -> None:
        episode = play(scenario(list(self.MODEL)), strategy)
        assert episode.outcome == "done/complete"
        assert episode.decisions == (2, 0, 0, 0)

    def test_what_is_asked_later_is_neither_listed_nor_worked_at_before(self) -> None:
        loaded = scenario([LISTS, {"work": "rest"}, *self.MODEL[2:4], LISTS, {"work": "rest"}, DONE])
        said = [[call.arguments for call in turn] for turn in calls(loaded)]
        assert said[1] == ['{"item":"users"}']
        assert said[4:6] == [['{"item":"orders"}'], ['{"item":"invoices"}']]
        stage = Arena(loaded, Offered()).stage(0)
        assert "orders" not in stage.world.call("list_items", {}).text
        stage.world.ask(stage.world.bits(("orders",)))
        assert "orders" in stage.world.call("list_items", {}).text

    @pytest.mark.parametrize(
        ("world", "tool"),
        [
            ({"kind": "inbox", "items": ["t-1", "t-2"]}, "list_flagged_threads"),
            ({"kind": "ledger", "items": ["t-1", "t-2"]}, "list_payments"),
            (
                {
                    "kind": "files",
                    "items": ["t-1", "t-2"],
                    "checks": {"t-1": {"exists": "a.txt"}, "t-2": {"exists": "b.txt"}},
                },
                "list_files",
            ),
        ],
    )
    def test_every_world_lists_what_was_asked_for(self, world: dict[str, Any], tool: str) -> None:
        later = {"user": {"text": "And this.", "asks": ["t-2"]}}
        stage = Arena(scenario([{"call": tool}, DONE, later, DONE], world=world), Offered()).stage(0)
        assert ("t-1" in (text := stage.world.call(tool, {}).text), "t-2" in text) == (True, False)
        stage.world.ask(stage.world.bits(("t-2",)))
        assert "t-2" in stage.world.call(tool, {}).text

    def test_a_finish_before_the_question_covers_what_was_asked(self) -> None:
        model = [*self.MODEL[:2], {"finish": {"completed": "all"}}, *self.MODEL[3:]]
        assert play(scenario(model), "validated_finish").decisions == (2, 0, 0, 0)

    def test_ids_of_later_questions_name_nothing_before(self) -> None:
        held = {"say": "Hm.", "claim": "partial", "until": "named"}
        model = [LISTS, held, {"work": ["users"]}, *self.MODEL[2:]]
        stage = Arena(scenario(model), Offered()).stage(0)
        assert not stage.player._names("Do orders.", 0, stage.state.asked)
        assert stage.player._names("Do users.", 0, stage.state.asked)


class TestWords:
    def heard(self, model: list[Any], strategy: str = "acceptance") -> list[tuple[int, str]]:
        stage, _ = staged(scenario(model), strategy)
        return [(turn, event.text) for turn, event in stage.happened if isinstance(event, UserWrites)]

    def test_between_turns_never_comes_after_an_ending(self) -> None:
        late = {"user": {"text": "Do the rest too.", "when": "between_turns"}}
        model = [LISTS, {"work": 1}, {"say": "Done.", "claim": "done"}, late, {"work": "rest"}, DONE]
        episode = play(scenario(model), "silence")
        assert (episode.outcome, episode.turns, episode.premature_stop) == ("done/reachable", 3, True)
        assert self.heard(model) == [(3, "Do the rest too.")]

    def test_they_wait_for_a_pause_to_be_over(self) -> None:
        words = {"user": {"text": "Be quick.", "when": "between_turns"}}
        model = [LISTS, {"pause": {}}, words, {"work": "rest"}, DONE]
        assert self.heard(model) == [(3, "Be quick.")]
        assert ideal(scenario(model)).protocol_faults == 0
        assert play(scenario(model), "acceptance").protocol_faults == 0

    def test_one_thing_at_a_time(self) -> None:
        two = [{"user": {"text": text, "when": "between_turns"}} for text in ("One.", "Two.")]
        assert self.heard([LISTS, *two, {"work": "rest"}, DONE]) == [(1, "One."), (2, "Two.")]

    def test_in_a_tool_is_after_the_next_call_and_in_a_turn_after_the_next_request(self) -> None:
        for when in ("in_tool", "in_turn"):
            words = {"user": {"text": "Mind.", "when": when}}
            assert self.heard([LISTS, words, {"work": "rest"}, DONE]) == [(2, "Mind.")]
        words = {"user": {"text": "Mind.", "when": "in_tool"}}
        model = [LISTS, words, {"say": "So.", "claim": "none"}, {"work": "rest"}, DONE]
        assert self.heard(model) == [(3, "Mind.")]

    def test_they_wait_for_an_end_of_turn_before_the_first_one(self) -> None:
        model = [{"user": {"text": "Thanks."}}, LISTS, {"work": "rest"}, DONE]
        assert self.heard(model, "silence") == [(5, "Thanks.")]


class TestFaultsThatStay:
    @pytest.mark.parametrize(("status", "times"), [(400, 1), (401, 1), (404, 1), (413, 1), (422, 1)])
    def test_they_come_again_whatever_times_says(self, status: int, times: int) -> None:
        loaded = scenario([LISTS, {"fault": {"status": status, "times": 2}}, {"work": "rest"}, DONE])
        assert ideal(loaded).outcome == "error/stuck"

    @pytest.mark.parametrize("status", [408, 409, 429, 500, 529])
    def test_others_pass(self, status: int) -> None:
        loaded = scenario([LISTS, {"fault": {"status": status, "times": 2}}, {"work": "rest"}, DONE])
        assert ideal(loaded).outcome == "done/complete"

    def test_one_may_be_got_past_by_what_it_says(self) -> None:
        fault = {"fault": {"status": 400}, "until": "any"}
        stage = Arena(scenario([fault, DONE]), Offered()).stage(0)
        assert stage.player.samples()[0].turn.native == "http_400"
        assert not stage.player.listens(stage.player.advance(stage.state, None, 0)[0])


class TestTargets:
    def turns(self, move: dict[str, Any]) -> set[str]:
        loaded = scenario([LISTS, {**move, "until": "never"}], limits={"turns": 5})
        return {call.arguments for turn in calls(loaded)[1:] for call in turn}

    @pytest.mark.parametrize(
        "move",
        [{"work": 1}, {"turn": [{"think": "Next."}, {"work": 1}]}, {"turn": [{"say": "Next."}, {"work": 1}]}],
    )
    def test_a_move_played_again_has_the_same(self, move: dict[str, Any]) -> None:
        assert self.turns(move) == {'{"item":"users"}'}

    def test_a_helper_sent_again_does_the_same(self) -> None:
        helper = {"delegate": {"name": "helper", "do": [{"work": 1}, {"say": "Done."}]}, "until": "never"}
        stage, _ = staged(scenario([LISTS, helper], limits={"turns": 5}))
        assert stage.world.effects == {"do_item users": 4}

    def test_a_turn_without_any_target_is_none(self) -> None:
        empty = {"turn": [{"work": 1}, {"tick": 1}, {"undo": 1}]}
        loaded = scenario([LISTS, {"work": "rest"}, {"undo": "all"}, empty, DONE])
        plain = scenario([LISTS, {"work": "rest"}, {"turn": [{"work": 1}]}, DONE])
        assert play(plain, "silence").turns == 5
        assert play(loaded, "silence").turns == 7

    def test_a_call_in_a_cut_off_turn_is_no_attempt(self) -> None:
        cut = {"turn": [{"work": 1}, {"truncate": "text"}], "until": "higher_limit"}
        assert ideal(scenario([LISTS, cut, {"work": "rest"}, DONE])).outcome == "done/complete"


class TestHelpers:
    WORDS = "All of it is done."

    def test_its_tokens_are_the_run_s_and_its_turns_are_not(self) -> None:
        helper = {"delegate": {"name": "helper", "do": [{"work": "rest"}, {"say": self.WORDS}]}}
        stage, episode = staged(scenario([LISTS, helper, DONE]))
        assert episode.outcome == "done/complete"
        assert (episode.turns, stage.helpers.turns) == (3, 4)
        alone = play(scenario([LISTS, DONE]), "silence").tokens
        assert episode.tokens > alone + stage.helpers.input_tokens

    def test_a_limit_stops_it_within_the_call_and_the_driver_goes_on(self) -> None:
        helper = {"delegate": {"name": "helper", "do": [{"work": "rest"}, {"say": self.WORDS}]}}
        loaded = scenario([LISTS, helper, DONE], limits={"tokens": 70})
        stage, episode = staged(loaded)
        assert (episode.ending, episode.truth) == ("limit", "reachable")
        assert 0 < stage.world.done.bit_count() < 3

    def test_a_strategy_s_own_limit_binds_it_too(self) -> None:
        helper = {"delegate": {"name": "helper", "do": [{"work": "rest"}, {"say": self.WORDS}]}}
        loaded = scenario([LISTS, helper, DONE])
        episode = play(loaded, PRESETS["silence"].strategy.but(max_tokens=70))
        assert (episode.ending, episode.truth) == ("limit", "reachable")

    @pytest.mark.parametrize(
        "move",
        [
            {"truncate": "text", "until": "higher_limit"},
            {"truncate": {"work": "users"}},
            {"fault": {"status": 500, "times": 3}},
            {"turn": [{"say": "Beside a call."}, {"call": "list_items"}]},
            {"tick": "all"},
            {"pause": {}},
            {"refuse": {}, "until": "other_model"},
            {"repeat": {"times": 2, "do": [{"call": "list_items"}]}},
            {"wait": {"item": "users", "polls": 2}},
            {"delegate": {"name": "inner", "do": [{"work": 1}, {"say": "One."}]}},
            {"background": {"polls": 2}},
            {"raw": {"content": [{"text": "So"}, {"work": "orders"}]}},
        ],
    )
    def test_it_may_do_anything(self, move: dict[str, Any]) -> None:
        do = [move, {"work": "rest"}, {"say": self.WORDS, "claim": "done"}]
        loaded = scenario([LISTS, {"delegate": {"name": "helper", "do": do}}, DONE])
        for strategy in ("silence", "acceptance"):
            episode = play(loaded, strategy)
            assert (episode.outcome, episode.duplicate_effects) == ("done/complete", 0)

    def test_its_claim_ends_only_itself(self) -> None:
        helper = {"delegate": {"name": "helper", "do": [DONE, {"work": "rest"}]}}
        stage, episode = staged(scenario([LISTS, helper, {"work": "rest"}, DONE]))
        assert (episode.outcome, episode.turns, stage.helpers.turns) == ("done/complete", 6, 1)

    def test_choices_within_go_on_from_those_before(self) -> None:
        rare = {"either": [{"p": 0.5, "do": [{"call": "list_items"}]}]}
        helper = {"delegate": {"name": "helper", "do": [rare, {"say": "So."}]}}
        loaded = scenario([{"repeat": {"times": 8, "do": [helper]}}, {"work": "rest"}, DONE])
        arena = Arena(loaded, Offered())
        spent = set()
        for seed in range(8):
            stages: list[Stage] = []
            run_episode(arena, PRESETS["silence"].strategy, seed, on_stage=stages.append)
            spent.add(stages[0].helpers.turns)
        assert len(spent) > 2


class TestKeysAndReplies:
    def test_a_posting_made_twice_in_a_batch_has_two_keys(self) -> None:
        batch = {"work": ["pay-a", "pay-b", "pay-a"], "parallel": True}
        loaded = scenario([{"call": "list_payments"}, batch, DONE], world=LEDGER)
        assert play(loaded, "silence").spoiled
        assert play(loaded, "gate").outcome == "done/complete"
        keys = [call.arguments for call in calls(loaded)[1]]
        assert len(set(keys)) == 3

    @pytest.mark.parametrize(("lands", "turns"), [(1, 1), (2, 2), (4, 4)])
    def test_a_late_effect_lands_at_its_request(self, lands: int, turns: int) -> None:
        late = {"work": ["users"], "reply": {"effect": "late", "lands": lands, "text": "accepted"}}
        reads = [{"call": "read_item", "with": {"item": "users"}}] * 6
        loaded = scenario([late, *reads, DONE])
        told: list[str] = []

        def watch(turn: Any, action: Any, verdict: Any, results: Any) -> None:
            if type(action).__name__ != "RunTools":
                told.extend(result.text for result in results)

        strategy = PRESETS["silence"].strategy
        run_episode(Arena(loaded, strategy.offers), strategy, 0, watch=watch)
        assert told[1:].index("users: done") == turns - 1

    def test_one_that_never_lands_is_lost(self) -> None:
        lost = {"work": "rest", "reply": {"effect": "late", "lands": "never", "text": "accepted"}}
        assert play(scenario([LISTS, lost, DONE]), "silence").truth == "stuck"


class TestRareChoices:
    def test_no_guard_cuts_them_off(self) -> None:
        rare = {"either": [{"p": 0.05, "do": [LISTS]}]}
        loaded = scenario([{"repeat": {"times": 50, "do": [rare]}}, {"work": "rest"}, DONE])
        strategy = PRESETS["silence"].strategy
        arena = Arena(loaded, strategy.offers)
        read = [run_episode(arena, strategy, seed).turns - 4 for seed in range(400)]
        assert 2.2 < sum(read) / 400 < 2.8
        assert 15 < read.count(0) < 50

    @pytest.mark.parametrize(
        "body",
        [[{"work": "rest"}], [{"either": [{"p": 0.0, "do": [LISTS]}]}], [{"turn": [{"undo": 1}]}]],
    )
    def test_a_loop_that_can_bring_no_turn_is_left(self, body: list[Any]) -> None:
        loaded = scenario([{"work": "rest"}, {"undo": "all"}, {"repeat": {"times": "forever", "do": body}}])
        assert play(loaded, "silence").turns >= 4

    def test_a_rare_turn_of_an_endless_loop_comes(self) -> None:
        rare = {"either": [{"p": 0.002, "do": [LISTS]}]}
        loaded = scenario([{"repeat": {"times": "forever", "do": [rare]}}], limits={"turns": 3})
        assert play(loaded, "silence").turns == 3


class TestSummaries:
    def seen(self, compact: Any) -> list[list[str]]:
        model = [LISTS, {"work": 2}, {"compact": compact}, {"work": "unseen"}, DONE]
        return [[call.arguments for call in turn] for turn in calls(scenario(model))[3:-1]]

    def test_a_model_that_reads_repeats_what_the_summary_forgot(self) -> None:
        users, orders, invoices = ([f'{{"item":"{name}"}}'] for name in ("users", "orders", "invoices"))
        # The last turn and its result stand beside a summary.
        assert self.seen(True) == [invoices]
        assert self.seen({"forgets": ["users"]}) == [users, invoices]
        assert self.seen({"summary": "empty"}) == [users, invoices]
        assert self.seen({"summary": "Done: users"}) == [invoices]
        assert self.seen({"summary": "users is done."}) == [invoices]
        assert self.seen({"summary": "empty", "times": 3}) == [users, invoices]
        assert orders not in self.seen(True)

    def test_what_it_repeats_then_is_done_twice_and_the_call_counts_once(self) -> None:
        model = [LISTS, {"work": 2}, {"compact": {"summary": "empty"}}, {"work": "unseen"}, DONE]
        episode = play(scenario(model), "silence")
        assert (episode.truth, episode.duplicate_effects) == ("complete", 1)

    def test_a_nudge_that_names_what_is_open_shows_nothing_as_done(self) -> None:
        held = {"say": "So far.", "claim": "partial"}
        model = [LISTS, {"work": ["users"]}, held, {"work": "unseen"}, DONE]
        said = [[call.arguments for call in turn] for turn in calls(scenario(model), "acceptance")]
        assert said[3:5] == [['{"item":"orders"}'], ['{"item":"invoices"}']]


class TestApprovals:
    GATED = {"gated": ["users", "orders"]}

    def run(self, approve: Any, **fields: Any) -> tuple[Stage, Episode]:
        model = [LISTS, {"work": "rest", "parallel": True}, {"approve": approve}, DONE]
        return staged(scenario(model, world=self.GATED, **fields))

    def test_right_after_the_calls_it_answers_them(self) -> None:
        assert self.run("none")[1].truth == "stuck"
        assert self.run({"allow": "all"})[1].outcome == "done/complete"
        assert self.run(["users"])[0].world.done == 0b101
        stage, _ = self.run({"allow": ["orders"], "refuse": ["users"], "message": "Not today."})
        assert stage.world.done == 0b110

    def test_a_change_puts_another_id_into_the_call(self) -> None:
        stage, _ = self.run({"change": {"users": "orders"}})
        assert stage.world.done == 0b110

    def test_where_none_follows_the_world_refuses(self) -> None:
        model = [LISTS, {"work": "rest"}, {"say": "May I?", "claim": "blocked"}, {"approve": ["users"]}]
        stage, _ = staged(scenario(model, world=self.GATED))
        assert stage.world.done == 0b100


class TestManyQuestions:
    def test_a_population_answers_question_by_question(self) -> None:
        loaded = scenario({"persona": "many_questions", "slips": 0.0, "returns": 0.0, "thanks": 0.0})
        for strategy in ("silence", "gate"):
            assert play(loaded, strategy).decisions == (3, 0, 0, 0)

    def test_a_slip_is_a_false_claim_of_its_question(self) -> None:
        loaded = scenario({"persona": "many_questions", "slips": 1.0, "returns": 0.0, "thanks": 0.0})
        assert play(loaded, "silence").decisions == (0, 3, 0, 0)
