"""A threshold stands in one place: changed there, the ideal harness, flags and caps follow."""

from __future__ import annotations

import pytest

from evalkit.core import thresholds
from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ideal_episode
from evalkit.search.falsification.violations import Caps
from evalkit.strategies.presets import PRESETS
from tests.helpers import play, scenario


@pytest.fixture
def refuses() -> Scenario:
    """The model says that it is done, in other words each time, whatever it is told."""
    words = ("Nothing to do.", "All is well.", "It is done.", "Done, I said.", "Done.", "Yes, done.")
    return scenario([{"say": said, "claim": "done"} for said in words], task={"items": "given"})


def after_nudges(of: Scenario, nudges: int) -> Episode:
    return play(of, PRESETS["acceptance"].strategy.but(nudges=nudges))


def test_nudges_are_fruitless_from_one_place(refuses: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not after_nudges(refuses, 3).over_continuation
    assert after_nudges(refuses, 4).over_continuation
    ideal = ideal_episode(Arena(refuses, Offered()), 0)
    monkeypatch.setattr(thresholds, "FRUITLESS_NUDGES", 2)
    assert after_nudges(refuses, 3).over_continuation
    assert not after_nudges(refuses, 2).over_continuation
    assert after_nudges(refuses, 3).excess_turns == 2
    assert ideal_episode(Arena(refuses, Offered()), 0).turns < ideal.turns
    assert Caps().nudges == 2


def test_turns_after_the_end_are_counted_from_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    done = scenario(
        [
            {"call": "list_items"},
            {"work": "rest"},
            {"repeat": {"times": "forever", "do": [{"say": "Done."}]}},
        ],
        limits={"turns": 9},
    )
    goes_on = PRESETS["keyword"].strategy
    assert play(done, goes_on).over_continuation
    monkeypatch.setattr(thresholds, "TURNS_AFTER_COMPLETION", 10)
    assert not play(done, goes_on).over_continuation


def test_resends_are_counted_from_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = scenario([{"repeat": {"times": "forever", "do": [{"pause": {}}]}}])
    patient = PRESETS["acceptance"].strategy.but(resends=28)
    assert not play(paused, patient).over_continuation
    monkeypatch.setattr(thresholds, "RESENDS", 20)
    # Nothing else may say so: these turns are fewer than are too many without a decision.
    assert play(paused, patient).over_continuation
    assert Caps().repeats == 20


def test_the_cap_on_turns_is_one(refuses: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    arena = Arena(refuses, Offered())
    assert arena.cap(0) == 60
    monkeypatch.setattr(thresholds, "TURN_CAP", 30)
    assert arena.cap(0) == 30
    assert play(refuses, "infinite_nudge").turns == 30
