"""What is known of one seed is known of another only where their choices agree."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.scoring import seed_choices
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.seed_choices import Chances
from evalkit.strategies.presets import PRESETS
from tests.helpers import scenario
from tests.scenarios.generated import documents
from tests.scoring.test_any_scenario import load

CHOICES: list[Any] = [
    {"call": "list_items"},
    {"either": [{"p": 0.5, "do": [{"work": 1}]}]},
    {"either": [{"p": 0.5, "do": [{"work": 1}, {"either": [{"p": 0.3, "do": [{"work": 1}]}]}]}]},
    {"say": "Done.", "claim": "done"},
]


@pytest.mark.long
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(documents(), documents(), st.sampled_from(["silence", "gate"]))
def test_an_arena_that_has_seen_other_seeds_says_the_same(one: Any, other: Any, preset: str) -> None:
    if one["world"] == other["world"]:
        one["model"] = [
            {"either": [{"p": 0.4, "do": one["model"]}, {"p": 0.4, "do": other["model"]}]},
            *other["model"],
        ]
    loaded, strategy = load(one), PRESETS[preset].strategy
    seen = Arena(loaded, strategy.offers)
    for seed in range(6):
        fresh = Arena(loaded, strategy.offers)
        assert run_episode(seen, strategy, seed) == run_episode(fresh, strategy, seed)


def test_a_script_with_few_choices_asks_for_few_answers() -> None:
    arena = Arena(scenario(CHOICES), PRESETS["silence"].strategy.offers)
    for seed in range(300):
        run_episode(arena, PRESETS["silence"].strategy, seed)
    # Without the second choice, with it and the third, with it and without the third; twice each.
    assert arena._ideals._count == 6
    assert arena._reaches._count <= 12


def test_where_something_happens_from_outside_each_seed_is_for_itself() -> None:
    words = {"user": {"text": "Hurry.", "when": "between_turns"}}
    for moves, known_of_another in ((CHOICES, 7), ([words, *CHOICES], None)):
        known: Chances[int] = Chances(Arena(scenario(moves), PRESETS["silence"].strategy.offers).player)
        known.keep("there", (0, 0, 0), (0, 0, 0), 0, 7)
        assert known.get("there", (0, 0, 0), 0) == 7
        assert known.get("there", (0, 0, 0), 1) == known_of_another


def test_a_script_without_a_choice_has_one_seed() -> None:
    offers = PRESETS["silence"].strategy.offers
    assert Arena(scenario(CHOICES), offers).seed(7) == 7
    assert Arena(scenario([{"say": "x"}]), offers).seed(7) == 0


def test_memory_does_not_grow_without_end(monkeypatch: Any) -> None:
    monkeypatch.setattr(seed_choices, "MOST", 10)
    arena = Arena(scenario(CHOICES), PRESETS["silence"].strategy.offers)
    known: Chances[int] = Chances(arena.player)
    for number in range(100):
        known.keep(number, (0, 0, 0), (0, 0, 0), 0, number)
        assert known.get(number, (0, 0, 0), 1) == number
    assert known._count <= 10
    assert known.get(1, (0, 0, 0), 0) is None
