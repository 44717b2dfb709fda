"""What a kill and a decision led to, in words, from made-up cells."""

from __future__ import annotations

import re

import pytest

from evalkit.cli.harness_guarantees import with_events
from evalkit.cli.harnesses import GUARANTEES
from evalkit.harnesses.find import SHIPPED, find_harness
from evalkit.harnesses.manifest import Events, Promise
from evalkit.reports.harnesses.guarantees import (
    CANNOT,
    KEPT,
    UNSEEN,
    Cell,
    Row,
    class_of,
    guarantee,
    guarantees_markdown,
    of_approval,
    of_crash,
)
from evalkit.runs.plan import is_worker
from evalkit.scenarios.loader import load_file
from evalkit.scoring.soundness import check_scenario

DONE = Cell("done", "complete")


@pytest.mark.parametrize(
    ("cell", "given"),
    [
        (DONE, "once"),
        (Cell("done", "complete", duplicate_effects=1), "twice"),
        (Cell("done", "spoiled", duplicate_effects=1, closed_calls=1), "twice"),
        (Cell("done", "complete", closed_calls=1), "once, closed"),
        (Cell("done", "spoiled", closed_calls=1), "lost, said"),
        (Cell("done", "reachable"), "lost"),
        (Cell("error", "reachable"), "failed"),
        (Cell("done", "complete", exercised=False, duplicate_effects=1), UNSEEN),
        (Cell(why="no notion"), CANNOT),
    ],
)
def test_what_a_kill_led_to(cell: Cell, given: str) -> None:
    assert of_crash(cell) == given


@pytest.mark.parametrize(
    ("cell", "given"),
    [
        (DONE, KEPT),
        (Cell("done", "complete", closed_calls=1), KEPT),
        (Cell("done", "complete", unapproved_calls=1), "ran again or against it"),
        (
            Cell("done", "complete", unapproved_calls=1, duplicate_effects=1),
            "ran again or against it, effect twice",
        ),
        (Cell("done", "spoiled", unasked_calls=1), "allowed and never ran"),
        (Cell("done", "spoiled"), "never asked again"),
        (Cell("error", "reachable"), "failed"),
        (Cell("done", "complete", exercised=False), UNSEEN),
        (Cell(why="no notion"), CANNOT),
    ],
)
def test_what_a_decision_led_to(cell: Cell, given: str) -> None:
    assert of_approval(cell) == given


@pytest.mark.parametrize(
    ("given", "is_"),
    [
        (("once", "once, closed", UNSEEN), "exactly once"),
        (("once", "twice"), "at least once"),
        (("once", "lost"), "at most once"),
        (("once", "lost, said"), "at most once, in doubt and said"),
        (("twice", "failed"), "none: lost and twice"),
        ((UNSEEN, CANNOT), UNSEEN),
    ],
)
def test_what_the_moments_amount_to(given: tuple[str, ...], is_: str) -> None:
    assert guarantee(given) == is_


def test_the_page_shows_claim_and_measure_and_how_to_see_what_broke() -> None:
    classes = [
        class_of("killed-late", "resume_effects", "after effect: it had its effect"),
        class_of("asked-twice", "approvals", "driven twice: each comes twice"),
    ]
    promise = Promise("crash", "tools run once", "https://example.org/resume")
    twice = Cell("done", "complete", duplicate_effects=1)
    asks = Events(crash=True, approve="returns", change=False)
    rows = [
        Row(
            "a:session",
            "",
            {"killed-late": twice, "asked-twice": Cell(why="no")},
            (promise,),
            Events(crash=True),
            7,
        ),
        Row("b", "", {"killed-late": DONE, "asked-twice": twice}, (), asks, 9),
        Row("unplayed", "", {}, (), Events(compact="error"), 2),
    ]
    page = guarantees_markdown(rows, classes, 12, "the command", "2026-01-02", "0")
    said = "[tools run once](https://example.org/resume)"
    assert f"| a:session | {said} | at least once | **twice** |" in page
    assert "| b | – | exactly once | once |" in page
    assert "| b | – | **effect twice** |" in page
    # Who is not asked has no row among the approvals, and who was not played none at all.
    assert page.count("| a:session |") == 2
    assert page.count("| unplayed |") == 1
    assert "- a:session, late: twice. `evalkit harnesses run a:session killed-late`" in page
    assert "- b, driven twice: effect twice. `evalkit harnesses run b asked-twice`" in page
    assert "| b | – | yes | returns, no other arguments | – | 9 |" in page
    assert "Of the 12 scenarios" in page


def test_the_shipped_page_names_what_is_there() -> None:
    """Each row is a harness of today, each column a class of today, each command one that can be given."""
    page = (SHIPPED.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
    classes = [class_of(each.name, each.family, each.summary) for each in load_file(GUARANTEES)]
    for each in classes:
        assert f"- **{each.heading}**" in page, each
    for name, scenario in re.findall(r"`evalkit harnesses run (\S+) (\S+)`", page):
        assert find_harness(name).name == name
        assert scenario in {each.scenario for each in classes}
    crashes = page.split("## When it is killed")[1].split("## When a person decides")[0]
    rows = set(re.findall(r"^\| (\S+) \|", crashes, re.M)) - {"harness", "---"}
    assert rows <= set(with_events())
    frameworks = {name.partition(":")[0] for name in with_events()}
    assert {name.partition(":")[0] for name in rows} == frameworks
    for name in rows:
        promised = () if is_worker(name) else find_harness(name).manifest.promises
        assert all(f"]({promise.source})" in page for promise in promised), name


def test_each_class_has_a_sound_scenario_of_six_moves_at_most() -> None:
    scenarios = load_file(GUARANTEES)
    for scenario in scenarios:
        assert len(scenario.moves) <= 6, scenario.name
        assert not [found for found in check_scenario(scenario, {}) if found.fails], scenario.name
        told = class_of(scenario.name, scenario.family, scenario.summary)
        assert "" not in (told.name, told.happens), scenario.name
    crashes = {each.summary.partition(": ")[0] for each in scenarios if each.family != "approvals"}
    assert crashes == {"before intent", "after intent", "after effect", "after record", "after answer"}
