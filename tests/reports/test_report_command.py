"""``evalkit report`` and ``evalkit plan`` as a user meets them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.reports.episodes_csv import COLUMNS
from tests.made_runs import grid
from tests.reports.million import make


def call(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, words, catch_exceptions=False)
    return result.exit_code, result.output


def test_report_writes_all_files_again(tmp_path: Path) -> None:
    grid(tmp_path, [[1, 0], [1, 1]], strategies=["a", "b"]).close()
    code, said = call("report", str(tmp_path), "--no-charts")
    assert code == 0
    assert re.search(r"4 episodes in \d+\.\d s \(\d+\.\d s of CPU\), \d+ MB", said)
    for name in ("index.html", "report.md", "summary.json", "episodes.csv"):
        assert (tmp_path / name).stat().st_size > 0
    lines = (tmp_path / "episodes.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split(",") == list(COLUMNS)
    assert len(lines) == 5


def test_report_of_no_run() -> None:
    assert call("report", "nowhere")[0] == 2


class TestPlan:
    def test_without_a_pilot(self) -> None:
        code, said = call("plan", "--detect", "0.05")
        assert code == 0
        assert "935       1870" in said
        assert "assumed: 30 %" in said.replace("30%", "30 %")

    def test_with_one(self, tmp_path: Path) -> None:
        right = [
            [[1, 1, 0], [0, 1, 0]],
            [[1, 1, 1], [0, 0, 0]],
            [[0, 1, 0], [1, 1, 0]],
            [[1, 1, 1], [1, 1, 1]],
        ] * 5
        grid(tmp_path, right, strategies=["a", "b"]).close()
        code, said = call("plan", "--detect", "0.1", "--power", "0.9", "--pilot", str(tmp_path))
        assert code == 0
        assert "pilot: b less a" in said
        assert "fewest episodes" in said

    def test_that_cannot_tell(self, tmp_path: Path) -> None:
        grid(tmp_path, [[1, 1]] * 30, strategies=["a", "b"]).close()
        code, said = call("plan", "--detect", "0.1", "--pilot", str(tmp_path))
        assert code == 0
        assert said.startswith("n/a: in the pilot every scenario differs by the same")

    @pytest.mark.parametrize(
        "words",
        [
            ("--power", "0.8"),
            ("--detect", "0"),
            ("--detect", "1.5"),
            ("--detect", "0.1", "--pilot", "nowhere"),
            ("--detect", "0.1", "-s", "gate"),
        ],
    )
    def test_usage(self, words: tuple[str, ...]) -> None:
        assert call("plan", *words)[0] == 2

    def test_an_unknown_strategy_of_the_pilot(self, tmp_path: Path) -> None:
        grid(tmp_path, [[1, 1]] * 30, strategies=["a", "b"]).close()
        code, said = call("plan", "--detect", "0.1", "--pilot", str(tmp_path), "-s", "nobody")
        assert code == 2
        assert "has: a, b" in said


@pytest.mark.slow
def test_a_million_episodes(tmp_path: Path) -> None:
    folder = make(tmp_path)
    # On a machine that is busy with other things only the work itself can be held to the time.
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    done = subprocess.run(
        [sys.executable, "-m", "evalkit", "report", str(folder)], capture_output=True, text=True, check=True
    )
    numbers = r"in ([\d.]+) s \(([\d.]+) s of CPU\), ([\d,]+) MB \(a worker: ([\d,]+) MB\)"
    told = re.search(f"1,000,000 episodes {numbers}", done.stdout)
    assert told is not None, done.stdout
    took, worked, own, worker = (float(number.replace(",", "")) for number in told.groups())
    assert worked < 2 * 60
    assert busy or took < 60
    assert max(own, worker) < 1000
