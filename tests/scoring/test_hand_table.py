"""The hand-computed table: every flag of every cell, written from the definitions before the code ran."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS

TABLE: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parent / "hand_table.yaml").read_text(encoding="utf-8")
)
CELLS = [
    pytest.param(entry["scenario"], preset, cell, id=f"{place}-{preset}")
    for place, entry in enumerate(TABLE)
    for preset, cell in entry["cells"].items()
]


def test_the_table_is_large_enough() -> None:
    assert len(CELLS) >= 40


@pytest.mark.parametrize(("text", "preset", "cell"), CELLS)
def test_cell(text: str, preset: str, cell: dict[str, Any]) -> None:
    (scenario,) = load_text(text)
    strategy = PRESETS[preset].strategy
    episode = run_episode(Arena(scenario, strategy.offers), strategy, 0)
    got = {name: getattr(episode, name) for name in cell}
    got["decisions"] = list(episode.decisions)
    # The table writes False for an episode outside a rate's base.
    for name in ("premature_stop", "unclosed"):
        got[name] = bool(got[name])
    assert got == cell


@pytest.mark.parametrize("place", range(len(TABLE)))
def test_the_ideal_harness_is_correct_on_each(place: int) -> None:
    (scenario,) = load_text(TABLE[place]["scenario"])
    assert [finding for finding in check_scenario(scenario, {}) if finding.fails] == []
