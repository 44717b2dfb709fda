"""What is written: a row for each recording and strategy, from which every figure can be had again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.judging.outcome import COLUMNS
from evalkit.transcripts.judging.run import Judgement, judge_paths
from evalkit.transcripts.judging.totals import figures_of, read_outcomes
from evalkit.transcripts.labels import LabelError, Labels
from tests.transcripts import files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "runs"
    source.mkdir()
    files.write(
        source / "tau.json",
        [files.tau_bench(0, 0.0), files.tau_bench(1, 1.0), files.tau_bench(2, 1.0, last="")],
    )
    files.write_lines(source / "session.jsonl", files.claude_code())
    files.write(source / "fix.traj", files.swe_agent())
    files.write(source / "chat.json", files.group_chat())
    (source / "broken.json").write_text('{"a": ')
    return source


def judged(folder: Path, out: Path, labels: Labels | None = None) -> dict[str, Any]:
    strategies = [preset.strategy for preset in PRESETS.values()]
    return judge_paths([folder], Judgement(out, strategies), labels)


def test_all_figures_follow_from_the_rows(folder: Path, tmp_path: Path) -> None:
    summary = judged(folder, tmp_path / "out")
    again = figures_of(read_outcomes(tmp_path / "out" / "episodes.csv")).summary()
    for part in ("rows", "agreement", "parted"):
        assert json.loads(msgspec.json.encode(again[part])) == json.loads(msgspec.json.encode(summary[part]))
    for name in ("recordings", "formats", "labels"):
        assert again["run"][name] == summary["run"][name]
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == json.loads(
        msgspec.json.encode(summary)
    )


def test_the_figures_of_a_small_set_are_these(folder: Path, tmp_path: Path) -> None:
    summary = judged(folder, tmp_path / "out")
    run = summary["run"]
    assert (run["files"], run["recordings"], run["problems"]) == (5, 6, 1)
    assert run["labels"] == {"complete": 2, "incomplete": 2, "unknown": 2}
    rows = {row["strategy"]: row for row in summary["rows"]}
    recorded = rows["recorded"]
    assert recorded["endings"] == {"done": 5, "escalated": 1}
    assert recorded["outcomes"] == {
        "done/complete": 1,
        "done/incomplete": 2,
        "done/unknown": 2,
        "escalated/complete": 1,
    }
    assert recorded["false_done"] == {"count": 2, "base": 4, "rate": 0.5}
    assert recorded["unclosed"] == {"count": 0, "base": 2, "rate": 0.0}
    claim = rows["verifier_claim"]
    assert claim["stops"] == {"before": 1, "at_end": 4, "beyond": 1}
    assert claim["decisions"] == {"tp": 1, "fp": 2, "tn": 0, "fn": 0}
    assert rows["acceptance"]["judged"] == 0
    assert rows["finish_tool"]["unknown"] == 5


def test_the_report_says_what_was_read_and_what_cannot_be_said(folder: Path, tmp_path: Path) -> None:
    judged(folder, tmp_path / "out")
    text = (tmp_path / "out" / "report.md").read_text()
    assert (
        "6 recordings from 5 files (1 claude-code, 1 multi-agent, 1 swe-agent, 3 tau-bench); 1 problem."
        in text
    )
    assert "False done: 2 of 4; unclosed: 0 of 2" in text
    assert "- `acceptance`, 6 recordings: acceptance: the task's checks need the run's world." in text
    assert "## Where strategies part" in text
    assert "| session.jsonl | unknown | 7 | done at 7 | done at 4 |" in text
    assert "broken.json: is not JSON" in text


def test_two_runs_of_one_name_keep_their_rows(folder: Path, tmp_path: Path) -> None:
    run = {"id": "same", "messages": files.chat()}
    file = files.write_lines(tmp_path / "runs.jsonl", [run, run])
    # A file that is named twice is read once.
    judge_paths([file, file], Judgement(tmp_path / "out", [PRESETS["silence"].strategy]))
    names = [rows[0].recording for rows in read_outcomes(tmp_path / "out" / "episodes.csv")]
    assert names == [f"{file.as_posix()}#same", f"{file.as_posix()}#same~2"]


def test_rows_have_no_words_of_the_recording(folder: Path, tmp_path: Path) -> None:
    judged(folder, tmp_path / "out")
    text = (tmp_path / "out" / "episodes.csv").read_text()
    assert text.splitlines()[0] == ",".join(COLUMNS)
    assert files.CLAIM not in text
    assert files.PROMPT not in text


def test_labels_of_a_table_win_and_are_held_against_the_files(folder: Path, tmp_path: Path) -> None:
    table = tmp_path / "labels.csv"
    table.write_text("recording,complete\ntask0.trial0,1\nfix.traj,no\nnobody,1\n")
    summary = judged(folder, tmp_path / "out", Labels.read(table))
    assert summary["run"]["labels"] == {"complete": 3, "incomplete": 2, "unknown": 1}
    assert summary["notes"][0] == "label 'nobody' matches no recording"
    assert "child agents" in summary["notes"][1]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("id,complete\na,1\n", "no column 'recording'"),
        ("recording\na\n", "no column 'complete'"),
        ("recording,complete\na,maybe\n", ":2: complete: 'maybe' is not one of"),
        ("recording,complete,complete_at\na,1,soon\n", ":2: complete_at: 'soon' is not a turn number"),
        ("recording,complete,complete_at\na,0,3\n", "only a run that ended complete has one"),
        ("recording,complete,by\na,0,eye\n", "by: 'eye' is not one of state, words"),
    ],
)
def test_a_table_that_cannot_be_used_says_where(tmp_path: Path, text: str, why: str) -> None:
    table = tmp_path / "labels.csv"
    table.write_text(text)
    with pytest.raises(LabelError, match=why):
        Labels.read(table)
