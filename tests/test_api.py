"""evalkit from Python: the same figures as the commands, as values."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import evalkit
from evalkit import Strategy, conditions
from evalkit.cli import main

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = "migration-reports-at-four-of-six"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_public_names_are_few_and_load_nothing_early() -> None:
    assert sorted(evalkit.__all__) == ["Run", "Strategy", "__version__", "conditions", "judge", "load", "run"]
    early = "[m for m in sys.modules if m.startswith(('evalkit.', 'pandas', 'click'))]"
    code = f"import sys, evalkit; print({early})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'rum'"):
        _ = evalkit.rum  # type: ignore[attr-defined]


@pytest.mark.long
def test_a_run_is_the_same_as_the_commands() -> None:
    mine = evalkit.run(EXAMPLE, ["silence", "gate"], out="mine", workers=1)
    CliRunner().invoke(
        main, ["run", EXAMPLE, "-s", "silence", "-s", "gate", "--out", "theirs", "--no-charts"]
    )
    theirs = json.loads(Path("theirs/summary.json").read_text())
    assert json.loads(json.dumps(mine.summary)) == theirs
    assert str(mine.answer) == "Your harness can run full checks: take gate."
    assert evalkit.load("theirs").answer == mine.answer
    assert not any(match.flips for match in mine.compare(evalkit.load("theirs")).matches)


def test_episodes_are_a_frame() -> None:
    frame = evalkit.run(EXAMPLE, ["silence", "gate"], out="r", workers=1).episodes()
    assert list(frame["outcome"]) == ["done/reachable", "done/complete"]
    assert frame.set_index("strategy")["false_done"].to_dict() == {"silence": 1, "gate": 0}


@pytest.mark.long
def test_a_strategy_is_given_as_a_value() -> None:
    mine = Strategy(name="mine", done_when=conditions.acceptance())
    run = evalkit.run(EXAMPLE, [mine, "silence"], out="r")
    assert run.answer.picks[0].names == ("mine",)
    with pytest.raises(ValueError, match="has no name"):
        evalkit.run(EXAMPLE, Strategy(done_when=conditions.silence()), out="s")
    with pytest.raises(ValueError, match="name of the preset 'gate'"):
        evalkit.run(EXAMPLE, Strategy(name="gate", done_when=conditions.silence()), out="s")
    # It was given to that run alone.
    with pytest.raises(ValueError, match="unknown strategy 'mine'"):
        evalkit.run(EXAMPLE, "mine", out="s")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workers": 0}, "workers must be at least 1, or None for one on each core; got 0"),
        ({"workers": -1}, "workers must be at least 1, or None for one on each core; got -1"),
        ({"seeds": 0}, "seeds must be at least 1, got 0"),
        ({"strategies": []}, "there is no strategy and no harness: name one of either"),
        (
            {"strategies": [conditions.silence()]},
            r"name or Strategy\(name=..., done_when=...\), got silence\(\)",
        ),
        ({"strategies": conditions.silence()}, r"done_when=...\), got silence\(\)"),
        ({"strategies": None}, "got None"),
    ],
)
def test_a_value_that_cannot_be_is_named_before_anything_is_made(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        evalkit.run(**{"suites": EXAMPLE, "strategies": "gate", "out": "r", **change})
    assert not Path("r").exists()


def test_judge_names_what_is_no_strategy() -> None:
    with pytest.raises(ValueError, match="a strategy is a name or"):
        evalkit.judge("none", [3])  # type: ignore[list-item]


def test_a_run_shows_itself() -> None:
    run = evalkit.run(EXAMPLE, ["silence", "gate"], out="r", workers=1)
    assert "take gate" in repr(run)
    html = run._repr_html_()
    assert "<b>Your harness can run full checks: take gate.</b>" in html
    assert "<script" not in html
    assert html.count("<tr>") == 3


def test_a_folder_that_holds_no_run_is_told() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        evalkit.load("nowhere")


def test_recordings_are_judged() -> None:
    recording = {
        "messages": [
            {"role": "user", "content": "Do it."},
            {"role": "assistant", "content": "All is done."},
        ]
    }
    Path("one.json").write_text(json.dumps(recording))
    summary = evalkit.judge("one.json", ["silence"], out="judged")
    assert summary["run"]["recordings"] == 1
    assert (Path("judged") / "report.md").is_file()


@pytest.mark.long
def test_the_page_on_python_runs_as_it_stands() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "python.md").read_text(), re.DOTALL)
    assert len(blocks) == 2
    Path("page.py").write_text("\n".join(blocks))
    said = subprocess.run([sys.executable, "page.py"], capture_output=True, text=True, check=False)
    assert said.returncode == 0, said.stderr
    assert "take" in said.stdout
    assert Path("reports/python/index.html").is_file()
