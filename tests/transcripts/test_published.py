"""docs/published.md: its shares follow from its counts, its sources are named, ours are what judge says."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from tests.transcripts import files
from tests.transcripts.shared import trajectories

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "published.md").read_text(encoding="utf-8")


def test_each_share_follows_from_its_counts() -> None:
    shares = re.findall(r"(\d+) of (\d+) \((\d+) %\)", PAGE)
    assert len(shares) > 20
    assert [(k, n, p) for k, n, p in shares if round(100 * int(k) / int(n)) != int(p)] == []


def test_each_source_is_named_among_the_sources() -> None:
    sources = (DOCS / "sources.md").read_text(encoding="utf-8")
    table = PAGE.split("## The table")[1].split("What follows")[0]
    named = [
        row.split("|")[1].split(",")[0].strip(" *") for row in table.splitlines() if row.startswith("| ")
    ][1:]
    named = [name for name in named if not name.startswith(("---", "the same"))]
    assert len(named) >= 6
    assert [name for name in named if name not in sources] == []


def judged(folder: Path, out: Path) -> dict[str, Any]:
    """What one of the page's commands says of a folder."""
    commands = re.findall(r"`(evalkit judge [^`]*)`", PAGE)
    assert len({command.split()[2] for command in commands}) > 3
    first = shlex.split(commands[0])
    words = [str(folder) if word == "historical_trajectories" else word for word in first[1:]]
    result = CliRunner().invoke(main, [*words, "--no-page", "--json", "--out", str(out)])
    assert result.exit_code == 0, result.output
    answer: dict[str, Any] = json.loads(result.stdout)["answer"]
    return answer


def test_ours_on_tau_bench(tmp_path: Path) -> None:
    answer = judged(trajectories() / "tau-bench", tmp_path)
    assert answer["false_done"] == {"count": 43, "of_all": 100, "of_dones": 69, "of_failures": 51}
    assert answer["false_claim"] == {"count": 25, "of_all": 100, "of_claims": 34, "of_failures": 51}
    for share in (
        "43 of 100 (43 %)",
        "43 of 69 (62 %)",
        "43 of 51 (84 %)",
        "25 of 34 (74 %)",
        "25 of 51 (49 %)",
    ):
        assert share in PAGE
    assert f"{answer['labelled'] - answer['false_done']['of_failures']} of 100 (49 %) complete" in PAGE


def test_ours_on_who_and_when(tmp_path: Path) -> None:
    answer = judged(trajectories() / "who-and-when", tmp_path)
    assert answer["false_done"] == {"count": 18, "of_all": 46, "of_dones": 18, "of_failures": 46}
    assert answer["false_claim"]["count"] == 20
    assert "18 of 46 (39 %) ended done" in PAGE
    assert "by words 20 of 46 (43 %)" in PAGE


@pytest.mark.parametrize(
    ("label", "found"),
    [(-1, "incomplete"), (1, "complete"), (0, "unknown"), (None, "unknown"), ([1], "unknown")],
)
def test_records_of_agentprocessbench_are_read_with_their_label(
    tmp_path: Path, label: object, found: str
) -> None:
    """Made up, in the shape of its files: a record of messages, labels of steps, a label of the whole."""
    record = {
        "question": "Which of the two was first?",
        "answer_text": "the second",
        "ground_truth": {"target": ["the first"]},
        "messages": files.chat("By what was found it was the second.\n\n<answer>the second</answer>"),
        "step_labels": {"2": 1, "4": -1},
        "final_label": label,
    }
    path = files.write_lines(tmp_path / "runs.jsonl", [record])
    result = CliRunner().invoke(
        main, ["judge", str(path), "-s", "silence", "--no-page", "--json", "--out", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    summary = json.loads(result.stdout)
    assert summary["run"]["labels"][found] == 1
    assert summary["answer"]["false_claim"]["count"] == (found == "incomplete")
