"""Conditions that end hopeless runs, and when the loop asks them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from evalkit.search.proofs.prove import prove
from evalkit.strategies import conditions as c
from evalkit.strategies.registry import StrategyError, read_strategy
from evalkit.strategies.strategy import Strategy
from tests.helpers import play, scenario

READS = {"call": "read_item", "with": {"item": "users"}}
FAILS = {"call": "do_item", "with": {"item": "nobody"}}
DONE = {"say": "Done.", "claim": "done"}


def patient(condition: c.Condition | None, **more: object) -> Strategy:
    fields = {"done_when": c.acceptance(), "nudges": None, "max_turns": 30, "give_up_when": condition, **more}
    return Strategy(name="patient", **fields)  # type: ignore[arg-type]


def test_without_one_it_goes_on_to_its_limit() -> None:
    assert play(scenario([READS, DONE]), patient(None)).turns == 30


def test_no_progress_counts_turns_since_an_effect() -> None:
    of = scenario([{"call": "list_items"}, {"work": 1}, {"repeat": {"times": "forever", "do": [READS]}}])
    episode = play(of, patient(c.no_progress(4)))
    assert (episode.turns, episode.ending, episode.native) == (6, "escalated", "give_up_when")
    # A report is no effect either, and what is done when it is asked is done.
    assert play(scenario([{"work": 1}, DONE]), patient(c.no_progress(2))).turns == 3
    assert play(scenario([{"work": "rest"}, DONE]), patient(c.no_progress(1))).outcome == "done/complete"


def test_the_same_failure_in_a_row() -> None:
    again = scenario([{"repeat": {"times": "forever", "do": [FAILS]}}])
    assert play(again, patient(c.same_failure(3))).turns == 3
    apart = scenario([FAILS, {"work": 1}, FAILS, {"work": 1}, FAILS, {"work": "rest"}, DONE])
    assert play(apart, patient(c.same_failure(2))).outcome == "done/complete"
    other = {"call": "do_item", "with": {"item": "somebody"}}
    assert play(scenario([FAILS, other, FAILS, {"work": "rest"}, DONE]), patient(c.same_failure(2))).correct


def test_the_budget_against_what_is_left() -> None:
    listed = [{"call": "list_items"}, *[READS] * 20]
    # Three items are left: with two turns it is too late.
    assert play(scenario(listed), patient(c.out_of_budget(10), max_turns=10)).turns == 8
    assert play(scenario(listed), patient(c.out_of_budget(10, each=2), max_turns=10)).turns == 5
    works = scenario([{"call": "list_items"}, {"work": "rest"}, DONE])
    assert play(works, patient(c.out_of_budget(5), max_turns=5)).outcome == "done/complete"


@pytest.mark.rule("given_up_at_a_decision")
def test_what_runs_out_ends_as_then_says() -> None:
    assert play(scenario([READS, DONE]), patient(c.no_progress(2), then="error")).ending == "error"


@pytest.mark.parametrize("check", ["end_of_turn", "each_tool_turn"])
def test_it_is_asked_whenever_done_is_asked(check: str) -> None:
    of = scenario([{"repeat": {"times": "forever", "do": [READS]}}])
    assert play(of, patient(c.no_progress(3), check=check)).turns == 3


def test_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "leaves.yaml"
    text = "done_when: acceptance\ngive_up_when: {any: [{no_progress: {turns: 5}}, same_failure]}\n"
    file.write_text(text)
    found = read_strategy(file).give_up_when
    assert repr(found) == "no_progress(turns=5) | same_failure(times=3)"
    file.write_text(text.replace("turns: 5", "turns: 0"))
    with pytest.raises(StrategyError, match="at least 1"):
        read_strategy(file)
    file.write_text("done_when: acceptance\ngive_up_when: nobody\n")
    with pytest.raises(StrategyError, match="unknown condition 'nobody'"):
        read_strategy(file)


def test_prove_knows_it() -> None:
    ends = Strategy(
        name="ends", done_when=c.acceptance(), nudges=None, resends=3, max_turns=None,
        give_up_when=c.no_progress(3),
    )  # fmt: skip
    (done,) = prove(ends, names=("no_false_done",)).results
    assert done.answer == "proved"
    own = ends.but(give_up_when=c.when(lambda view: False, "mine", finite=True))
    assert [result.answer for result in prove(own, names=("no_false_done",)).results] == ["proved"]
    fickle = ends.but(give_up_when=c.when(lambda view: random.random() < 0.5, "fickle", finite=True))
    (refused,) = prove(fickle, names=("no_false_done",)).results
    assert refused.answer == "refused", refused.how
