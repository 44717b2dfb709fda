"""The table of public reports: each names scenarios and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.helpers import library_and_populations

ROOT = Path(__file__).parents[2]
NAMES = {scenario.name for scenario in library_and_populations()}
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "cases.md").read_text().splitlines()
    if re.match(r"\| [\w.-]+/[\w.-]+ \d+ \|", line)
]


def test_there_are_71_different_reports() -> None:
    assert len({report for report, *_ in ROWS}) == len(ROWS) == 71


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in ROWS])
def test_what_a_row_names_is_there(row: list[str]) -> None:
    _, kind, here = row
    assert kind
    named = re.findall(r"`([^`]+)`", here)
    assert named
    for name in named:
        if not name.startswith("tests/"):
            assert name in NAMES, name
            continue
        file, _, function = name.partition("::")
        text = (ROOT / file).read_text()
        assert not function or re.search(rf"^\s*def {function}\(", text, re.MULTILINE), name
