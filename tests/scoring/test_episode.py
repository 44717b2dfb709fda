"""Parts of an episode's score, each by itself."""

from __future__ import annotations

import pytest

from evalkit.core.decisions import Ending
from evalkit.core.tasks import Offered
from evalkit.core.trace import Trace
from evalkit.drivers.in_process import StrategyFailed
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import _duplicates, run_to_ending
from evalkit.stage.stage import NeverEnds
from tests.helpers import scenario
from tests.scenarios.test_player import ALL, Model


def raising(error: Exception) -> Ending:
    raise error


def test_what_a_users_code_raises_is_named_by_its_kind_and_noted_in_a_line() -> None:
    failed = StrategyFailed("KeyError: no\n  such: thing")
    assert run_to_ending(lambda: raising(failed)) == (Ending("error", "KeyError"), "KeyError: no such: thing")
    assert run_to_ending(lambda: raising(NeverEnds())) == (Ending("never", "evalkit's cap"), "")
    assert run_to_ending(lambda: Ending("done", "x")) == (Ending("done", "x"), "")


@pytest.mark.parametrize(
    ("called", "had", "once", "duplicates"),
    [
        (0, 1, False, 1),
        (1, 1, False, 0),
        (1, 3, False, 2),
        (3, 3, False, 0),
        (3, 3, True, 2),
        (0, 1, True, 0),
    ],
)
def test_duplicates_are_effects_beyond_the_calls(called: int, had: int, once: bool, duplicates: int) -> None:
    trace = Trace(Offered())
    if called:
        trace.called["do users"] = called
    for number in range(had):
        trace.turns = number + 1
        trace.had_effect("do users", number + 1)
    assert _duplicates(trace, {"do users": had}, once) == duplicates
    assert [found.turn for found in trace.findings] == list(range(had - duplicates + 1, had + 1))


def test_only_a_finish_call_of_a_raw_turn_tells_what_was_done() -> None:
    reads = {"call": "read_item", "with": {"item": "users", "items_completed": ["users"]}}
    finish = {"call": "finish_task", "with": {"items_completed": ["users"]}}
    for content, offered, told in (
        ([reads], ALL, False),
        ([finish], ALL, True),
        ([finish], Offered(), False),
    ):
        turn = Model([{"raw": {"content": content}}], offered).first()
        assert (turn.told is not None) == told


def test_what_would_be_accepted_is_told_by_how_honest_the_report_was() -> None:
    judge = Arena(scenario([{"say": "x"}], task={"checks": "none"}), Offered())
    for honest in (None, False, None, True):
        told = "escalated/complete" in judge.accepted(0, honest, 0)
        assert told is judge.accepts(0, "escalated", "complete", honest, 0)
