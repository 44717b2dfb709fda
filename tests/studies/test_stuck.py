"""Masked tools and giving up in time: what is counted, and of what."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS
from evalkit.studies.giving_up import PUBLISHED, families, giving_up_study
from evalkit.studies.stuck import measured, stuck_study
from tests.helpers import play, scenario

SUITE = ("progress_updates",)


def ended(ending: str, wall_at: int | None, turns: int, *, false: bool = False) -> Episode:
    of = play(scenario([{"work": "rest"}, {"say": "Done.", "claim": "done"}]), "silence")
    return msgspec.structs.replace(of, ending=ending, wall_at=wall_at, turns=turns, false_done=false)  # type: ignore[arg-type]


def test_what_is_counted() -> None:
    found = measured(
        [
            ended("escalated", 5, 8),
            ended("partial", 5, 9),
            ended("done", 5, 6, false=True),
            ended("limit", 5, 25),
            ended("done", None, 2, false=True),
        ],
        3,
    )
    assert found == {
        "twins": 5,
        "told": 4,
        "timely": 1 / 4,
        "gives_up": 2 / 5,
        "false_continue": 2 / 4,
        "false_done": 2 / 5,
        "other": 1 / 5,
        "wasted": (3 + 4 + 1 + 20) / 4,
    }


def test_who_never_meets_the_wall_has_no_share_of_it() -> None:
    found = measured([ended("done", None, 2, false=True)], 3)
    assert (found["timely"], found["false_continue"], found["wasted"]) == (None, None, None)


def test_the_study_takes_twins_or_makes_them(tmp_path: Path) -> None:
    strategies = [PRESETS[name].strategy for name in ("silence", "gate")]
    made = stuck_study(load_suites(SUITE), strategies)
    done = CliRunner().invoke(main, ["scenarios", "mask", *SUITE, "--out", str(tmp_path)])
    assert done.exit_code == 0
    taken = stuck_study(load_suites((str(tmp_path),)), strategies)
    assert made.figures == taken.figures
    rows = {row["contender"]: row for row in made.figures["rows"]}
    assert rows["silence"]["false_done"] > 0.9
    assert rows["gate"]["false_done"] == 0
    assert rows["gate"]["gives_up"] > 0.9


def test_families_differ_in_why_they_give_up_alone() -> None:
    every = [strategy for family in families().values() for strategy in family]
    assert len({strategy.name for strategy in every}) == len(every)
    (patient,) = families()["none"]
    for strategy in every:
        same = strategy.but(name=patient.name, nudges=None, give_up_when=None)
        assert same.done_when == patient.done_when
        assert same.max_turns == patient.max_turns


def test_the_frontier() -> None:
    study = giving_up_study(load_suites(SUITE))
    rows: dict[str, Any] = {row["strategy"]: row for row in study.figures["rows"]}
    assert rows["only its limit"]["saved"] == rows["only its limit"]["lost"] == 0
    # Less patience saves no less, within a family.
    for family in families().values():
        saved = [rows[strategy.name]["saved"] for strategy in family]
        assert saved == sorted(saved)
    assert rows["no progress 2"]["saved"] > rows["nudges 3"]["saved"] > 0.3
    # One turn an item is no more than every item takes; sixteen are more than there are.
    assert rows["budget 1 an item"]["lost"] == 0
    assert rows["budget 16 an item"]["lost"] > 0.5
    assert rows["budget 16 an item"]["premature"] > 0


@pytest.mark.parametrize("each", PUBLISHED)
def test_a_published_claim_names_its_source_and_the_page_has_it(each: Any) -> None:
    root = Path(__file__).parents[2]
    assert each.source in (root / "docs/sources.md").read_text(encoding="utf-8")
    assert 0 <= each.saves[0] <= each.saves[1] <= 100


@pytest.mark.parametrize("name", ["stuck", "giving-up", "thresholds"])
def test_the_commands_write_what_they_print(name: str, tmp_path: Path) -> None:
    words = ["study", name, "partial_completion::migration-reports-at-four-of-six", "--workers", "1"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert (tmp_path / f"{name}.md").read_text() in done.output
    assert json.loads((tmp_path / f"{name}.json").read_text())["study"] == name
    assert (tmp_path / f"{name}.svg").is_file() == (name == "giving-up")
    assert "<table>" in (tmp_path / f"{name}.html").read_text()


def test_a_suite_without_a_twin_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["study", "giving-up", "infinite_nudging::never-yields", "--workers", "1"]
    )
    assert done.exit_code == 2
    assert "no masked twin" in done.output
