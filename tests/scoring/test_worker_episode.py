"""The worker as a harness: it scores as the reference loop does, and crashes change only what they must."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from evalkit.core.decisions import Verdict
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.scoring.worker_episode import EVENTS, run_worker_episode
from evalkit.strategies.conditions import when
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy
from tests.helpers import library, scenario

LIBRARY = library()
#: The worker does not wait for people: it hands over.
ASKED = "crash while an approval is open"
CRASHES = {one.name: one for one in LIBRARY if "crash" in one.events}


def played(one: Scenario, strategy: str | Strategy = "gate", seed: int = 0) -> Episode:
    chosen = PRESETS[strategy].strategy if isinstance(strategy, str) else strategy
    return run_worker_episode(Arena(one, chosen.offers), chosen, seed)


@pytest.mark.parametrize(
    ("place", "name"), list(enumerate(["silence", "gate", "validated_finish", "keyword"]))
)
def test_without_keys_and_crashes_the_worker_is_the_reference_loop(place: int, name: str) -> None:
    """Each strategy on a quarter of the library."""
    strategy = PRESETS[name].strategy
    compared = 0
    for one in LIBRARY[place::4]:
        if "crash" in one.events or one.world.kind not in ("items", "inbox"):
            continue
        arena = Arena(one, strategy.offers)
        theirs, ours = run_worker_episode(arena, strategy, 1), run_episode(arena, strategy, 1)
        # The worker answers its own tools by itself, so whether the last turn only repeats is not seen.
        last = ours.stretches._replace(repeating=theirs.stretches.repeating)
        assert 0 <= ours.stretches.repeating - theirs.stretches.repeating <= 1
        assert theirs == msgspec.structs.replace(ours, stretches=last), one.name
        compared += 1
    assert compared > 40


def test_the_worker_has_a_notion_of_each_crash_but_while_a_person_is_asked() -> None:
    assert len(CRASHES) >= 8
    assert {event for one in CRASHES.values() for event in set(one.events) - EVENTS} == {ASKED}


@pytest.mark.parametrize(
    ("name", "outcome"),
    [
        ("worker-killed-while-the-model-is-asked", "done/complete"),
        ("worker-killed-after-a-posting", "done/complete"),
        ("worker-killed-between-two-postings-of-one-turn", "done/complete"),
        ("worker-killed-before-any-call-of-the-turn", "done/complete"),
        ("worker-killed-over-and-over", "done/complete"),
        ("worker-killed-after-the-answer-went-out", "escalated/reachable"),
        ("worker-killed-and-the-model-starts-over", "done/complete"),
    ],
)
def test_a_killed_worker_repeats_nothing(name: str, outcome: str) -> None:
    episode = played(CRASHES[name])
    assert (episode.outcome, episode.duplicate_effects, episode.orphan_calls) == (outcome, 0, 0)
    assert episode.correct


def test_what_looking_up_cannot_tell_is_done_twice() -> None:
    """The known limit of looking up: an effect that was accepted and has not landed."""
    episode = played(CRASHES["worker-killed-while-a-booking-is-on-its-way"])
    assert episode.duplicate_effects == 1
    assert not episode.correct


def test_a_crash_costs_no_turn() -> None:
    one = CRASHES["worker-killed-after-a-posting"]
    strategy = PRESETS["gate"].strategy
    assert played(one).turns == run_episode(Arena(one, strategy.offers), strategy, 0).turns


def test_the_workers_own_keys_make_a_repetition_harmless() -> None:
    (one,) = [one for one in LIBRARY if one.name == "needless-nudge-posts-again"]
    strategy = PRESETS["finish_tool"].strategy
    assert run_episode(Arena(one, strategy.offers), strategy, 0).outcome == "done/spoiled"
    assert played(one, "finish_tool").outcome == "done/complete"


def test_a_run_without_end_is_ended() -> None:
    one = scenario([{"call": "list_items"}, {"say": "Soon.", "until": "never"}])
    assert played(one, "infinite_nudge").ending == "never"


def test_a_strategy_that_raises_ends_in_an_error() -> None:
    def broken(view: object) -> Verdict:
        raise RuntimeError("odd")

    one = scenario([{"call": "list_items"}, {"work": "rest"}, {"say": "Done.", "claim": "done"}])
    episode = played(one, Strategy(done_when=when(broken)))
    assert (episode.ending, episode.native, episode.note) == ("error", "RuntimeError", "RuntimeError: odd")


LIST = {"call": "list_items"}
DONE = {"say": "All is done.", "claim": "done"}
FULL = {"truncate": "text", "limit": "context_window", "until": "shortened"}
ASKS = {"user": {"text": "orders and invoices too", "asks": ["orders", "invoices"]}}
QUESTIONS = [LIST, {"work": ["users"]}, DONE, ASKS, {"work": "rest"}, DONE]


@pytest.mark.parametrize("name", ["silence", "gate", "unattended", "validated_finish"])
@pytest.mark.parametrize(
    ("moves", "limits"),
    [
        ([LIST, {"work": 1}, FULL, {"work": "rest"}, DONE], {}),
        ([LIST, {"work": 1}, FULL, FULL, DONE], {}),
        ([LIST, {"fault": {"status": 400, "window": "full"}}, {"work": "rest"}, DONE], {}),
        ([LIST, {"say": "Hm."}, {"fault": {"status": 413, "window": "full"}}, {"work": "rest"}, DONE], {}),
        ([LIST, {"fault": {"status": 403}}], {}),
        ([LIST, {"work": "rest", "parallel": True}, DONE], {"calls": 3}),
        (QUESTIONS, {"turns": 3}),
        (QUESTIONS, {"turns": 3, "per": "query"}),
        (QUESTIONS, {"tokens": 150, "per": "query"}),
    ],
)
def test_the_worker_obeys_the_same_policies_and_limits(name: str, moves: list[Any], limits: Any) -> None:
    one = scenario(moves, limits=limits)
    strategy = PRESETS[name].strategy
    arena = Arena(one, strategy.offers)
    assert run_worker_episode(arena, strategy, 0) == run_episode(arena, strategy, 0)


@pytest.mark.parametrize("name", ["silence", "gate"])
def test_a_worker_sets_keys_whatever_its_strategy(name: str) -> None:
    again = {"work": ["rent"], "again": True}
    one = scenario(
        [{"call": "list_payments"}, {"work": 1}, again, DONE], world={"kind": "ledger", "items": ["rent"]}
    )
    assert played(one, name).outcome == "done/complete"
