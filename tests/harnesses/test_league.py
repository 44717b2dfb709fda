"""The league's tables, from made-up cells and from a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.reports.league import Cell, League, Standing, league_markdown, ranked
from evalkit.reports.league_files import write_league

LEAGUE = League(
    date="2026-01-02",
    evalkit="0",
    command="make league",
    versions={"a": ["lib==1"]},
    summaries={"a": "first", "b": "second"},
    behaviours=(("plain", "It ends."), ("paused", "It pauses.")),
    cells={
        "a": {"plain": Cell("done/complete", "x.y.Stop", True), "paused": Cell(why="no label")},
        "b": {
            "plain": Cell("done/complete", "stop", True),
            "paused": Cell("never/reachable", "evalkit's cap"),
        },
    },
    standings=(Standing("a", 3, 4, {"f_one": (3, 4)}),),
)


def test_the_table_has_outcome_and_native_signal_and_what_cannot_be_said() -> None:
    assert ranked(LEAGUE) == ["a", "b"]
    text = league_markdown(LEAGUE)
    assert "| a | 1 of 1 | **done/complete**<br>Stop | · |" in text
    assert "| b | 1 of 2 | **done/complete**<br>stop | never/reachable<br>evalkit's cap |" in text
    assert "| a | 3 of 4 | 3/4 |" in text
    assert "- **a**: first (`lib==1`)" in text
    assert "2026-01-02" in text
    assert "`make league`" in text


def test_the_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    assert write_league(LEAGUE, tmp_path) == []
    assert {file.name for file in tmp_path.iterdir()} == {"README.md", "league.json", "heat.svg"}
    again = (tmp_path / "heat.svg").read_bytes()
    write_league(LEAGUE, tmp_path)
    assert (tmp_path / "heat.svg").read_bytes() == again
    assert b"never ended" in again


def test_a_league_of_one_that_needs_no_package(tmp_path: Path) -> None:
    arguments = [
        "harnesses",
        "league",
        "--harness",
        "gated-loop",
        "--no-library",
        "--out",
        str(tmp_path / "l"),
    ]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "l" / "README.md").read_text()
    assert "| gated-loop | 18 of 20 |" in text
    assert "escalated/reachable<br>to a person: refusal" in text
    assert CliRunner().invoke(main, arguments).exit_code == 0
