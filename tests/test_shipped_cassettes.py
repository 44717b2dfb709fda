"""The recordings in the repository replay to what the script says now."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalkit.media.players import player_of
from evalkit.media.recordings import replay_medium
from evalkit.models.cassettes import read_origin
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS

pytestmark = pytest.mark.long

CASSETTES = Path(__file__).resolve().parent.parent / "cassettes"


@pytest.mark.parametrize("dialect", ["anthropic", "responses", "chat"])
def test_replay_equals_the_run_in_process(dialect: str) -> None:
    medium, origin = replay_medium(CASSETTES / dialect)
    assert origin.scripted
    assert len(origin.scenarios) >= 20
    assert len(origin.strategies) >= 6
    play = player_of(medium)
    for scenario in load_suites(origin.scenarios[::6]):
        for name in origin.strategies:
            strategy = PRESETS[name].strategy
            arena = Arena(scenario, strategy.offers)
            replayed, here = play(arena, strategy, 0), run_episode(arena, strategy, 0)
            assert (replayed.outcome, replayed.turns, replayed.decisions, replayed.correct) == (
                here.outcome,
                here.turns,
                here.decisions,
                here.correct,
            )
    assert read_origin(CASSETTES / dialect).recorded_from == "evalkit's scripted server"
