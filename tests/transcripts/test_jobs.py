"""Judging in several processes: the same bytes, whatever their number and the order of the files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from evalkit.containment.workers import WorkerDied
from evalkit.core.turns import Turn
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging import page, run
from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.turn_claims import claim_of
from tests.transcripts import files

STRATEGIES = [PRESETS[name].strategy for name in ("silence", "verifier_claim")]


@pytest.fixture
def recorded(tmp_path: Path) -> list[Path]:
    """Files of several kinds: runs of one name, a child agent's, one without an end, one that is none."""
    folder = tmp_path / "runs"
    folder.mkdir()
    same = [{"id": "same", "messages": files.chat(), "complete": n % 2 == 0} for n in range(20)]
    return [
        files.write_lines(folder / "same.jsonl", same),
        files.write(folder / "chat.json", files.chat()),
        files.write(folder / "tau.json", [files.tau_bench(), files.tau_bench()]),
        files.write_lines(folder / "children.jsonl", files.claude_code()),
        files.write(folder / "none.json", {"neither": "nor"}),
    ]


def judged(paths: list[Path], folder: Path, jobs: int) -> dict[str, bytes]:
    judge_paths(paths, Judgement(folder, STRATEGIES, page=True), jobs=jobs)
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_the_report_is_the_same_for_any_number_and_any_order(
    recorded: list[Path], tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small enough that a page's end and several hands-out fall among these runs.
    monkeypatch.setattr(page, "MOST", 18)
    monkeypatch.setattr(run, "_HANDED", 3)
    alone = judged(recorded, tmp_path / "alone", 1)
    assert set(alone) == {"episodes.csv", "index.html", "report.md", "summary.json"}
    assert judged(recorded[::-1], tmp_path / "other", jobs) == alone


def test_a_process_that_is_killed_costs_nothing_and_one_that_always_is_is_told(
    recorded: list[Path], tmp_path: Path
) -> None:
    here, once = os.getpid(), tmp_path / "killed"

    def dies(turn: Turn) -> str:
        if os.getpid() != here and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return claim_of(turn)

    def always(turn: Turn) -> str:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return claim_of(turn)

    summary = judge_paths(recorded, Judgement(tmp_path / "once", STRATEGIES, dies), jobs=2)
    assert once.exists()
    assert (
        summary["run"]["recordings"]
        == judge_paths(recorded, Judgement(tmp_path / "plain", STRATEGIES))["run"]["recordings"]
    )
    with pytest.raises(WorkerDied):
        judge_paths(recorded, Judgement(tmp_path / "always", STRATEGIES, always), jobs=2)
