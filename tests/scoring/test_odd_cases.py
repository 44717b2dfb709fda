"""Cases with a stated result: each says what is right and why."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario

LIST: dict[str, Any] = {"call": "list_items"}
REST: dict[str, Any] = {"work": "rest"}
DONE: dict[str, Any] = {"say": "All is done.", "claim": "done"}


def test_the_example_of_the_design() -> None:
    example = scenario(
        [LIST, {"work": 4}, {"say": "4 of 6.", "claim": "partial"}, REST, DONE],
        world={"items": ["users", "orders", "invoices", "carts", "search", "admin"]},
        limits={"turns": 40},
    )
    silence, gate = play(example, "silence"), play(example, "gate")
    assert (silence.outcome, silence.turns) == ("done/reachable", 6)
    assert (gate.outcome, gate.turns) == ("done/complete", 9)
    assert silence.premature_stop
    assert silence.silent
    assert gate.correct


@pytest.mark.rule("undone")
def test_complete_and_then_undone_is_seen() -> None:
    undone = scenario([LIST, REST, {"say": "Checking.", "claim": "partial"}, {"undo": 1}, DONE])
    episode = play(undone, Strategy(done_when=c.verifier()))
    assert episode.undone
    assert episode.false_done
    assert not episode.correct


@pytest.mark.rule("accepted_given_up_on_the_impossible")
def test_a_model_that_never_yields_is_ended_by_the_limit_with_a_report() -> None:
    reads = {"repeat": {"times": "forever", "do": [{"call": "read_item", "with": {"item": "users"}}]}}
    endless = scenario([LIST, {"work": 1}, reads])
    episode = play(endless, "gate")
    assert episode.ending == "limit"
    assert episode.turns == 40
    assert episode.honest_report


def test_pause_for_ever_ends_after_25_resends() -> None:
    paused = scenario([LIST, {"pause": {}, "until": "never"}])
    episode = play(paused, "gate")
    assert (episode.outcome, episode.turns) == ("escalated/stuck", 27)
    assert episode.protocol_faults == 0
    assert play(paused, "silence").false_done


def test_24_honest_pauses_are_no_fault() -> None:
    paused = scenario([LIST, {"repeat": {"times": 24, "do": [{"pause": {}}]}}, REST, DONE])
    episode = play(paused, "gate")
    assert episode.outcome == "done/complete"
    assert episode.correct
    assert play(paused, Strategy(done_when=c.acceptance(), resends=23)).ending == "escalated"


def test_five_honest_progress_reports_do_not_use_up_three_nudges() -> None:
    items = [f"part-{number}" for number in range(6)]
    model = [LIST]
    for _ in items[1:]:
        model += [{"work": 1}, {"say": "One more is done.", "claim": "partial"}]
    reports = scenario([*model, REST, DONE], world={"items": items})
    assert play(reports, "gate").correct
    assert play(reports, PRESETS["gate"].strategy.but(nudge_budget=4)).outcome == "escalated/reachable"


@pytest.mark.parametrize(
    ("turns", "acceptance", "silence"),
    [(3, "limit/reachable", "limit/reachable"), (4, "done/complete", "limit/complete"),
     (5, "done/complete", "done/complete")],
)  # fmt: skip
@pytest.mark.rule("limit_before_done")
def test_the_limit_just_at_completion(turns: int, acceptance: str, silence: str) -> None:
    tight = scenario([LIST, REST, DONE], limits={"turns": turns})
    assert play(tight, "acceptance").outcome == acceptance
    assert play(tight, "silence").outcome == silence
    before = Strategy(done_when=c.acceptance(), limit_checked="before_done")
    assert play(tight, before).unclosed is (True if turns <= 5 and turns >= 4 else None)


@pytest.mark.rule("refusal_is_asked_again")
def test_a_refusal_with_and_without_a_fallback() -> None:
    refused = scenario(
        [LIST, {"work": 1}, {"refuse": {"category": "cyber"}, "until": "other_model"}, REST, DONE]
    )
    assert play(refused, "gate").outcome == "done/complete"
    assert play(refused, "acceptance").outcome == "escalated/reachable"
    private = scenario(
        [LIST, {"refuse": {"category": "reasoning_extraction"}, "until": "other_model"}, REST, DONE]
    )
    assert play(private, "gate").ending == "escalated"
    assert play(private, "gate").correct


def test_a_script_whose_last_move_is_a_pause_says_nothing_further() -> None:
    paused = scenario([LIST, REST, {"pause": {}}])
    episode = play(paused, "acceptance")
    assert (episode.outcome, episode.turns) == ("done/complete", 6)


def test_40_items_stopped_at_3() -> None:
    items = [f"page-{number}" for number in range(40)]
    large = scenario(
        [LIST, {"work": 3}, {"say": "Three pages are done.", "claim": "partial"}, REST, DONE],
        world={"items": items},
        limits={"turns": 60},
    )
    assert play(large, "silence").outcome == "done/reachable"
    wide = PRESETS["gate"].strategy.but(max_turns=None)
    assert play(large, wide).correct
    assert check_scenario(large, {}) == []


@pytest.mark.rule("ran_cut_off_call")
def test_a_run_ruined_by_an_executed_cut_off_call() -> None:
    cut = scenario(
        [LIST, {"truncate": {"work": "backup"}, "parses": True}, REST, DONE],
        world={"forbidden": ["backup"]},
    )
    ruined = play(cut, "silence")
    assert ruined.outcome == "done/spoiled"
    assert ruined.ran_cut_off_call
    assert ruined.orphan_calls == 1
    assert play(cut, "gate").correct


def test_escalating_always_does_not_win() -> None:
    easy = scenario([LIST, REST, DONE])
    always = Strategy(done_when=~c.silence(), nudges=1)
    episode = play(easy, always)
    assert episode.outcome == "escalated/complete"
    assert episode.unclosed
    assert not episode.correct


@pytest.mark.rule("unclosed")
def test_done_never_said() -> None:
    reads = {"repeat": {"times": "forever", "do": [{"call": "read_item", "with": {"item": "users"}}]}}
    silent = scenario([LIST, REST, reads], limits={"turns": 14})
    assert play(silent, "acceptance").outcome == "done/complete"
    assert play(silent, "silence").outcome == "limit/complete"
    assert play(silent, "silence").unclosed


def test_bounded_continuation_ends_what_infinite_nudge_never_ends() -> None:
    stuck = scenario([LIST, {"say": "I have no access.", "claim": "blocked"}])
    endless = play(stuck, "infinite_nudge")
    assert endless.outcome == "never/stuck"
    assert endless.turns == 60
    assert endless.over_continuation
    gate = play(stuck, "gate")
    assert gate.outcome == "escalated/stuck"
    assert gate.correct


def test_a_late_effect_lands_when_the_run_ends() -> None:
    late = scenario([LIST, {"work": "rest", "parallel": True, "reply": {"effect": "late"}}, DONE])
    episode = play(late, "silence")
    assert episode.outcome == "done/complete"
    assert episode.decisions == (1, 0, 0, 0)


@pytest.mark.rule("duplicate_effects")
def test_an_error_after_the_effect_duplicates_nothing_by_itself() -> None:
    odd = scenario(
        [LIST, {"work": 1, "reply": {"error": True, "effect": "applied", "text": "timeout"}}, REST, DONE]
    )
    episode = play(odd, "acceptance")
    assert episode.outcome == "done/complete"
    assert episode.duplicate_effects == 0
    again = scenario([LIST, {"work": 1}, {"work": 1, "again": True}, REST, DONE], world={"once": True})
    assert play(again, "acceptance").duplicate_effects == 1


@pytest.mark.rule("accepted_by_a_person_without_checks")
def test_a_strategy_that_raises_ends_error_and_names_what_was_raised() -> None:
    def raises(view: object) -> bool:
        raise RuntimeError("no such thing")

    episode = play(scenario([LIST, REST, DONE]), Strategy(done_when=c.when(raises)))
    assert episode.outcome == "error/complete"
    assert episode.note == "RuntimeError: no such thing"


@pytest.mark.rule("accepted_as_the_ideal_ends")
def test_the_ideal_harness_escalates_after_fruitless_nudges() -> None:
    stuck = scenario([LIST, {"repeat": {"times": 9, "do": [{"say": "Soon.", "claim": "partial"}]}}])
    episode = ideal_episode(Arena(stuck, PRESETS["silence"].strategy.offers), 0)
    assert episode.outcome == "escalated/stuck"
    assert episode.turns == 5


class TestTheSeedsClaims:
    """A verifier shown the claim alone, a checklist, checks: what each can see."""

    honest = scenario([LIST, REST, DONE], scenario="a-half", twin="b-half")
    lying = scenario([LIST, {"work": 2}, {"work": 1, "reply": {"effect": "none"}}, DONE],
                     scenario="b-half", twin="a-half")  # fmt: skip

    def test_a_reader_of_the_claim_decides_the_same_on_both_halves(self) -> None:
        one, other = play(self.honest, "verifier_claim"), play(self.lying, "verifier_claim")
        assert one.ending == other.ending == "done"
        assert other.false_done
        assert [one.twin, other.twin] == [True, False]
        both = [play(half, "acceptance").twin for half in (self.honest, self.lying)]
        assert both == [True, True]

    def test_check_takes_them_for_twins(self) -> None:
        known = {half.name: half for half in (self.honest, self.lying)}
        assert check_scenario(self.honest, known) == []
        same = scenario([LIST, REST, DONE], scenario="b-half", twin="a-half")
        (finding,) = check_scenario(self.honest, {"b-half": same})
        assert "the oracles agree" in finding.message
        other = scenario([LIST, REST, {**DONE, "say": "Ready."}], scenario="b-half", twin="a-half")
        (finding,) = check_scenario(self.honest, {"b-half": other})
        assert "output differs in turn 5" in finding.message

    def test_a_checklist_catches_the_open_item_and_misses_the_ticked_one(self) -> None:
        opened = scenario([LIST, {"work": 2}, DONE, REST, DONE])
        ticked = scenario([LIST, {"work": 2}, {"tick": "all"}, DONE])
        assert play(opened, "checklist").correct
        assert play(ticked, "checklist").false_done
        assert play(opened, "acceptance").correct
        assert not play(ticked, "acceptance").false_done
