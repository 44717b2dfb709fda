"""Prose and tables on terminals of many widths: nothing wider than they are, and nothing cut."""

from __future__ import annotations

import pytest

from evalkit.reports.layout import console_of, print_entries, print_prose, print_rows

HEADS = ("strategy", "completed", "handed over", "false done", "turns")
ROWS = [
    ["silence", "39 % (23 to 56)", "0 % (0 to 9)", "61 % (44 to 77)", "3.0"],
    [
        "verifier_transcript",
        "0 to 100 % (0 to 100)",
        "0 to 100 % (0 to 100)",
        "0, by construction",
        "3.6 to 40.0",
    ],
]


def _squeezed(text: str) -> str:
    return "".join(text.split())


def test_entries_are_whole_in_a_pipe_and_as_wide_as_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    rows = ["name  " + "word " * 30 + "end", f"  {'x' * 90}"]
    print_entries(rows)
    assert capsys.readouterr().out.splitlines() == rows
    monkeypatch.setenv("COLUMNS", "60")
    print_entries(rows[:1], 6)
    first, *others = capsys.readouterr().out.splitlines()
    assert len(first) <= 60
    assert others
    assert {len(line) - len(line.lstrip()) for line in others} == {6}
    print_entries(["  name  " + "word " * 30])
    assert capsys.readouterr().out.splitlines()[1].startswith("    word")


@pytest.mark.parametrize("width", [50, 60, 80, 120, 200])
def test_no_figure_is_cut_at_any_width(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(console_of(width), HEADS, ROWS)
    said = capsys.readouterr().out
    assert "…" not in said
    assert max(map(len, said.splitlines())) <= width
    # Each character of a cell is there, wherever it is broken.
    counts = {mark: _squeezed(said).count(mark) for mark in "(%0"}
    assert counts == {mark: "".join(map("".join, ROWS)).count(mark) for mark in "(%0"}


def test_cells_stay_whole_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(console_of(200), HEADS, ROWS)
    assert "0 to 100 % (0 to 100)  0 to 100 % (0 to 100)" in capsys.readouterr().out


def test_an_interval_is_put_below_its_figure_at_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(console_of(80), HEADS, ROWS)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["silence", "39", "%", "0", "%", "61", "%", "3.0"] in lines
    assert ["(23", "to", "56)", "(0", "to", "9)", "(44", "to", "77)"] in lines


def test_prose_is_broken_between_words_and_keeps_its_indent(capsys: pytest.CaptureFixture[str]) -> None:
    print_prose(console_of(20), ["", "  one two-three four five six", "seven"])
    assert capsys.readouterr().out == "\n  one two-three four\n    five six\nseven\n"


def test_the_columns_are_those_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    print_prose(console_of(), ["word " * 40])
    assert 90 < max(map(len, capsys.readouterr().out.splitlines())) <= 100
