"""A run that is fine, one that got worse, and one that nothing can be said of: three exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from evalkit.cli import main
from tests.helpers import document

LIST = {"call": "list_items"}
DONE = {"say": "All of it is done.", "claim": "done"}


def call(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words))
    return result.exit_code, result.output


def run(folder: str, strategy: str) -> None:
    code, output = call("run", "s.yaml", "-s", strategy, "--out", folder, "--no-charts")
    assert code == 0, output


def test_each_state_has_an_exit_code_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    moves = [LIST, {"work": 1}, {"say": "One.", "claim": "partial"}, {"work": "rest"}, DONE]
    Path("s.yaml").write_text(yaml.safe_dump(document(moves, scenario="the-only-one")))
    Path("mine.yaml").write_text("done_when: acceptance\n")
    run("good", "mine.yaml")
    code, baseline = call("baseline", "good")
    assert code == 0
    Path("baseline.json").write_text(baseline)
    assert call("gate", "good", "--baseline", "baseline.json")[0] == 0
    Path("mine.yaml").write_text("done_when: silence\n")
    run("worse", "mine.yaml")
    code, output = call("gate", "worse", "--baseline", "baseline.json")
    assert code == 1, output
    assert "the-only-one" in output
    # Another strategy was evaluated, and none of those that the baseline holds.
    run("other", "gate")
    assert call("gate", "other", "--baseline", "baseline.json")[0] == 3
    assert call("gate", "good", "--baseline", "gone.json")[0] == 2
