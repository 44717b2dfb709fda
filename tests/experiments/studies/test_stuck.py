"""Masked tools and giving up in time: what is counted, and of what."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.experiments.studies.giving_up import PUBLISHED, _measured, families, giving_up_study
from evalkit.experiments.studies.stuck import measured, stuck_study, twins_of
from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.episode import Episode
from evalkit.strategies.presets import PRESETS
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
    # Who gives up in time stands first.
    assert [row["contender"] for row in made.figures["rows"]] == ["gate", "silence"]
    assert rows["gate"]["timely"] > rows["silence"]["timely"] == 0


def test_what_the_reference_loop_cannot_play_has_no_twin_here() -> None:
    scenarios = load_suites(("resume_effects",))
    assert any("crash" in scenario.events for scenario in scenarios)
    events = [set(twin.scenario.events) for twin in twins_of(scenarios, 1)]
    assert events
    assert all(each <= SUPPORTED_EVENTS for each in events)


@pytest.mark.long
def test_programs_stand_apart_and_may_play_some_of_it() -> None:
    suite = load_suites(("partial_completion",))
    one = [scenario for scenario in suite if scenario.name == "migration-reports-at-four-of-six"]
    study = stuck_study(suite, [PRESETS["silence"].strategy], ("gated-loop",), one)
    rows = {row["contender"]: row for row in study.figures["rows"]}
    assert rows["silence"]["twins"] == study.figures["twins"] > rows["gated-loop"]["twins"] == 1
    assert rows["gated-loop"]["gives_up"] == 1
    assert [[row[0] for row in table.rows] for table in study.tables] == [["silence"], ["gated-loop"]]
    both = stuck_study(one, [PRESETS["silence"].strategy], ("gated-loop",))
    assert [row["twins"] for row in both.figures["rows"]] == [1, 1]


def test_families_differ_in_why_they_give_up_alone() -> None:
    every = [strategy for family in families().values() for strategy in family]
    assert len({strategy.name for strategy in every}) == len(every)
    (patient,) = families()["none"]
    for strategy in every:
        same = strategy.but(name=patient.name, nudges=None, give_up_when=None)
        assert same.done_when == patient.done_when
        assert same.max_turns == patient.max_turns


@pytest.mark.parametrize(
    ("family", "says"), [("no progress", "turns"), ("same failure", "times"), ("budget", "each")]
)
def test_a_strategy_gives_up_at_what_its_name_says(family: str, says: str) -> None:
    for strategy in families()[family]:
        (number,) = re.findall(r"\d+", strategy.name)
        assert f"{says}={number})" in str(strategy.give_up_when)


def test_what_is_saved_and_lost_is_counted_on_twins_and_originals() -> None:
    patient, other = families()["none"][0].name, "impatient"
    fine, fooled, limit = (ended(ending, None, 10) for ending in ("done", "done", "limit"))
    fooled = msgspec.structs.replace(fooled, truth="reachable")
    early = msgspec.structs.replace(ended("escalated", None, 2), truth="reachable", premature_stop=True)
    stuck = {place: {patient: ended("limit", 3, 40), other: ended("escalated", 3, 5)} for place in (0, 1)}
    works = {
        0: {patient: fine, other: fine},
        1: {patient: fine, other: early},
        # Neither completes these, whatever they call it.
        2: {patient: fooled, other: early},
        3: {patient: limit, other: fooled},
    }
    assert _measured(other, stuck, works) == {
        "strategy": other,
        "saved": 1 - 10 / 80,
        "saved_of_all": 1 - (10 + 24) / (80 + 40),
        "lost": 1 / 2,
        "premature": 2,
        "works": 4,
        "turns": 5,
    }


@pytest.mark.long
def test_what_has_no_twin_or_no_full_checks_is_not_in_the_study() -> None:
    suites = ("infinite_nudging", "partial_completion")
    scenarios = load_suites(suites)
    study = giving_up_study(scenarios)
    full = [scenario for scenario in scenarios if scenario.task.checks == "full"]
    twins = twins_of(full, 1)
    assert len(twins) < len(full) < len(scenarios)
    assert study.figures["twins"] == len(twins)
    assert {row["works"] for row in study.figures["rows"]} == {len(twins)}


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
    root = Path(__file__).parents[3]
    assert each.source in (root / "docs/sources.md").read_text(encoding="utf-8")
    assert 0 <= each.saves[0] <= each.saves[1] <= 100


@pytest.mark.parametrize("name", ["stuck", "giving-up", "thresholds"])
def test_the_commands_write_what_they_print(name: str, tmp_path: Path) -> None:
    words = ["study", name, "partial_completion::migration-reports-at-four-of-six", "--workers", "1"]
    done = CliRunner().invoke(main, [*words, "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    # Its prose is as wide as the terminal there.
    assert (tmp_path / f"{name}.md").read_text().split() == done.output.split()[:-2]
    assert f"Generated by `evalkit {' '.join(words[:3])}`." in " ".join(done.output.split())
    assert json.loads((tmp_path / f"{name}.json").read_text())["study"] == name
    assert (tmp_path / f"{name}.svg").is_file() == (name == "giving-up")
    assert "<table>" in (tmp_path / f"{name}.html").read_text()


def test_a_suite_without_a_twin_is_told(tmp_path: Path) -> None:
    done = CliRunner().invoke(
        main, ["study", "giving-up", "infinite_nudging::never-yields", "--workers", "1"]
    )
    assert done.exit_code == 2
    assert "no masked twin" in done.output
