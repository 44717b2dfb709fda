"""What others wrote, planted in every text of a run: no command and no file lets it do anything."""

from __future__ import annotations

import csv
import re
import sqlite3
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.runs.store import FILE
from tests.runs.test_run import TEXT

PLANT = "=1+1\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\u2066|<img src=x onerror=alert(1)>[x](javascript:1)"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
#: Tables and columns of a store whose text comes from a harness.
TEXTS = {"episode": ("native", "causes", "note")}
#: What a name may hold.
NAME = "=1+1|<img src=x>[x](javascript:1)"


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text(TEXT)
    (tmp_path / "named.yaml").write_text(yaml.safe_dump({"name": NAME, "done_when": "silence"}))
    done = CliRunner().invoke(
        main, ["run", "s.yaml", "-s", "gate", "-s", "named.yaml", "--no-charts", "--out", "r"]
    )
    assert done.exit_code == 0, done.output
    base = sqlite3.connect(tmp_path / "r" / FILE)
    with base:
        for table, columns in TEXTS.items():
            for column in columns:
                # Names stay apart from each other.
                base.execute(f"update {table} set {column} = ? || rowid", (PLANT,))
    base.close()
    return tmp_path / "r"


def told(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, list(arguments))
    assert done.exit_code == code, done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert STEERS.findall(done.output) == []
    return done.output


def test_no_command_prints_it(planted: Path) -> None:
    told("report", "r", "--no-charts")
    for number in ("0", "1", "2"):
        told("show", "r", number)
    told("compare", "r", "r")
    (planted.parent / "b.json").write_text(told("baseline", "r"))
    told("gate", "r", "--baseline", "b.json")
    for wrong in (["run", PLANT], ["show", "r", PLANT], ["run", "s.yaml", "-s", PLANT], ["scenarios", PLANT]):
        told(*wrong, code=2)


def test_no_file_of_a_report_holds_it(planted: Path) -> None:
    told("report", "r", "--no-charts")
    with (planted / "episodes.csv").open(newline="", encoding="utf-8") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if re.match(r"[=+@\t\r]|-\D", cell)]
    assert [cell for cell in cells if cell.startswith("'=1+1")]
    text = (planted / "report.md").read_text(encoding="utf-8")
    assert "1+1" in text
    assert "<img" not in text
    assert STEERS.findall(text) == []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
