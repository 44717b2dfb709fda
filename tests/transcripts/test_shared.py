"""Held against the real recordings of the shared folder, where there is one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.incidents.to_scenario import skeleton
from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.judging.totals import figures_of, read_outcomes
from evalkit.transcripts.problems import Problem
from evalkit.transcripts.read import read_paths
from tests.transcripts.shared import trajectories


def test_every_file_is_read_or_refused_with_a_reason() -> None:
    folder = trajectories()
    files = {path.as_posix() for path in folder.rglob("*") if path.is_file()}
    found = list(read_paths([folder]))
    assert {item.file for item in found} == files
    assert all(not isinstance(item, Problem) or item.why for item in found)
    formats = Counter(item.format for item in found if not isinstance(item, Problem))
    assert set(formats) == {"tau-bench", "multi-agent", "inspect", "swe-agent", "mini-swe-agent"}
    refused = [item for item in found if isinstance(item, Problem)]
    assert len(refused) <= 1


def test_the_false_done_count_equals_a_direct_count_from_the_file(tmp_path: Path) -> None:
    folder = trajectories() / "tau-bench"
    direct = total = 0
    for path in folder.glob("*.json"):
        for result in json.loads(path.read_text()):
            last = result["traj"][-1]
            total += 1
            direct += last["role"] == "user" and "###STOP###" in last["content"] and result["reward"] == 0
    summary = judge_paths([folder], Judgement(tmp_path, [PRESETS["silence"].strategy]))
    (recorded,) = [row for row in summary["rows"] if row["strategy"] == "recorded"]
    assert recorded["false_done"]["count"] == direct > 0
    assert recorded["false_done"]["base"] == total
    assert recorded["outcomes"]["done/incomplete"] == direct
    again = figures_of(read_outcomes(tmp_path / "episodes.csv")).summary()
    assert again["rows"] == summary["rows"]


@pytest.mark.long
def test_every_recording_makes_a_sound_scenario() -> None:
    for item in read_paths([trajectories()]):
        if not isinstance(item, Problem):
            # ``skeleton`` loads and checks what it writes, and raises where that fails.
            assert "scenario:" in skeleton(item)
