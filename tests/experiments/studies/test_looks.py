"""Repeated looks: what is found follows what must be, and the command writes what it prints."""

from __future__ import annotations

import json
from math import sqrt
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.experiments.studies.looks import (
    KINDS,
    LOOKS,
    RATES,
    SETTINGS,
    Job,
    Kind,
    count,
    expected,
    looks_study,
)

EPISODES = 1500


@pytest.mark.parametrize("kind", KINDS)
def test_false_dones_follow_what_must_be(kind: Kind) -> None:
    found = count(Job(kind, 0.2, 0.0, 0.05, LOOKS, False, 0, EPISODES))
    for look, must in enumerate(expected(kind, 0.2, 0.05, LOOKS), 1):
        error = sqrt(must * (1 - must) / EPISODES)
        assert abs(sum(found.at[:look]) / EPISODES - must) <= 4 * error


def test_independent_errors_rise_and_persistent_ones_are_flat() -> None:
    assert expected("independent", 0.1, 0.05, 2) == pytest.approx([0.1, 0.19])
    assert expected("persistent", 0.1, 0.05, 3) == [0.1] * 3


def test_weighed_false_dones_stay_at_or_under_alpha_in_each_setting() -> None:
    found = {setting: expected("weighed", setting[0], setting[2], 200)[-1] for setting in SETTINGS}
    assert all(0 < share <= alpha for (_, _, alpha), share in found.items())


def test_the_study_has_twenty_settings_and_both_kinds() -> None:
    study = looks_study(10)
    assert len(SETTINGS) == len(study.figures["settings"]) == 20
    assert len(study.figures["curves"]) == len(RATES) * len(KINDS)
    assert [len(table.rows) for table in study.tables] == [len(RATES) * 6, 20]


def test_the_command_writes_what_it_prints(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["study", "looks", "--episodes", "10", "--workers", "1", "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    # Its prose is as wide as the terminal there.
    assert (tmp_path / "looks.md").read_text().split() == done.output.split()[:-2]
    assert json.loads((tmp_path / "looks.json").read_text())["schema"] == "evalkit.study/1"
    page = (tmp_path / "looks.html").read_text()
    # One for a screen, one for a phone, and a row for each setting.
    assert page.count("<svg") == 2
    assert page.count("<tr>") == 2 + len(RATES) * 6 + 20
    assert "<code>evidence_over_time</code>" in page
    assert (tmp_path / "looks.svg").is_file()
