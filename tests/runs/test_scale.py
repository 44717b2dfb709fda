"""What must not grow: the cost of a turn with the turns, the memory with the episodes."""

from __future__ import annotations

import sys
import tracemalloc
from collections import deque
from pathlib import Path
from types import FrameType

import pytest

from evalkit.runs import chunks
from evalkit.runs.plan import make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import Store
from evalkit.scenarios import player
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS
from tests.bench.task import scenario_text

pytestmark = pytest.mark.long

PRESETS_OF_NOTE = ("silence", "acceptance", "gate", "stop_hook", "unattended")


def calls_of(turns: int, name: str) -> int:
    """Python calls that an episode of so many turns makes, once the scenario is known."""
    (scenario,) = load_text(scenario_text(turns))
    strategy = PRESETS[name].strategy.but(max_turns=None)
    arena = Arena(scenario, strategy.offers)
    assert run_episode(arena, strategy, 0).turns == turns
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        run_episode(arena, strategy, 0)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("name", PRESETS_OF_NOTE)
def test_a_turn_costs_the_same_in_a_long_episode(name: str) -> None:
    short, middle, long = (calls_of(turns, name) for turns in (64, 256, 512))
    assert (long - middle) / 256 == pytest.approx((middle - short) / 192, rel=0.05)


@pytest.mark.parametrize("name", PRESETS_OF_NOTE)
def test_a_state_does_not_grow_with_the_turns(name: str) -> None:
    from evalkit.drivers.in_process import LoopMind, drive

    (scenario,) = load_text(scenario_text(512))
    strategy = PRESETS[name].strategy.but(max_turns=None)
    stage = Arena(scenario, strategy.offers).stage(0)
    mind = LoopMind(strategy, stage.task, stage)
    seen: deque[int] = deque(maxlen=500)
    drive(mind, stage, watch=lambda *_: seen.append(len(mind.state.succeeded_actions)))
    assert len(seen) == 500
    assert max(seen) <= 1


def peak(folder: Path, episodes: int) -> int:
    """Bytes that a run holds at most."""
    made = make_plan(load_text(scenario_text(8)), {}, ("gate",), episodes)
    store = Store.create(folder, made.recipe)
    tracemalloc.start()
    try:
        run_plan(made, store, 1)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        assert store.count() == episodes
        store.close()


def test_memory_does_not_grow_with_the_episodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is bounded by itself is made small: rows of a chunk, choices that are kept.
    monkeypatch.setattr(chunks, "MOST", 50)
    monkeypatch.setattr(player, "choice", player.choice.__wrapped__)
    peak(tmp_path / "warm", 300)
    # How full a chunk is when it is sent differs by some 200 kB; 200 bytes an episode would be more.
    few, many = peak(tmp_path / "few", 300), peak(tmp_path / "many", 2_400)
    assert many < few + 400_000
