"""What a kill and a decision led to, in words, from made-up cells."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from evalkit.cli import harness_guarantees as command
from evalkit.cli.harness_guarantees import make_guarantees, with_events
from evalkit.cli.harnesses import GUARANTEES
from evalkit.harnesses.find import SHIPPED, find_harness
from evalkit.harnesses.manifest import Events, Promise
from evalkit.reports.harnesses.event_table import Lived, living_markdown
from evalkit.reports.harnesses.guarantees import (
    CANNOT,
    KEPT,
    UNSEEN,
    Cell,
    Class,
    Row,
    class_of,
    guarantee,
    guarantees_markdown,
    of_approval,
    of_crash,
    of_plays,
    of_several,
)
from evalkit.runs.plan import is_worker
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.scenario import SEVERAL
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.soundness import check_scenario
from tests.harnesses.test_whole_life import LATER, SAVES

DONE = Cell("done", "complete")


@pytest.mark.parametrize(
    ("cell", "given"),
    [
        (DONE, "once"),
        (Cell("done", "complete", duplicate_effects=1), "twice"),
        (Cell("done", "spoiled", duplicate_effects=1, closed_calls=1), "twice"),
        (Cell("done", "complete", closed_calls=1), "once and closed"),
        (Cell("done", "spoiled", closed_calls=1), "lost and said"),
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
            "ran again or against it and effect twice",
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
    ("cell", "given"),
    [
        (DONE, "once"),
        (Cell("done", "complete", duplicate_effects=3), "4 times"),
        (Cell("done", "reachable"), "lost"),
        (Cell("done", "complete", exercised=False, duplicate_effects=3), UNSEEN),
    ],
)
def test_what_several_that_resumed_led_to(cell: Cell, given: str) -> None:
    assert of_several(cell) == given


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (("once",), "once"),
        (("once", "once"), "once 2/2"),
        (("lost", "once", "once"), "once 2, lost 1"),
        ((CANNOT, CANNOT), CANNOT),
    ],
)
def test_how_plays_are_told(given: tuple[str, ...], shown: str) -> None:
    assert of_plays(given) == shown


def test_the_table_of_events_says_what_was_played_what_was_wrong_and_why_the_rest_was_not() -> None:
    lived = [
        Lived("a", "a:one", "right", ("crash",)),
        Lived("a", "a:one", "again", ("crash",), wrong=("duplicate effects", "spoiled")),
        Lived("a", "a:one", "anew", ("crash", "user (ended)"), wrong=("duplicate effects",)),
        Lived("a", "a:one", "gone", ("crash",), exercised=False, wrong=("premature stop",)),
        Lived("a", "a:one", "asked", ("approve",), why="no notion of: approve"),
        Lived("worker", "worker", "late", ("crash",), wrong=("duplicate effects",)),
    ]
    page = living_markdown(lived)
    assert "| framework | user (ended) | approve | crash |" in page
    row = "| a | 0 of 1, duplicate effects 1 | 1 · | 1 of 3, duplicate effects 2, spoiled 1, 1 ? |"
    assert row in page
    assert "- a: no notion of: approve (1)" in page
    assert "- a:one, duplicate effects, 2: `evalkit harnesses run a:one again`; also anew" in page
    assert "`evalkit run late --harness worker --out reports/late`" in page
    assert "premature stop, 1" not in page


#: A kill, and what only a person could decide.
_SHOWN = """
scenario: killed-in-a-call
family: resume_effects
summary: "after effect: it had its effect"
task: {prompt: Ring every bell., done_when: Every bell has rung.}
world: {kind: items, items: [bell-low]}
model: [{call: list_items}, {work: 1}, {crash: true}, {say: It has rung., claim: done}]
"""


@pytest.mark.long
def test_each_play_is_kept_and_more_are_played_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command from its runs to the page, with a program that keeps its conversation."""
    (tmp_path / "agent.py").write_text(SAVES)
    manifest = 'name = "keeps"\nsummary = "s"\nrun = ["{python}", "agent.py"]\ndialect = "anthropic"\n'
    (tmp_path / "harness.toml").write_text(manifest + "resident = true\nevents = {crash = true}\n")
    shown, library = tmp_path / "shown.yaml", tmp_path / "library.yaml"
    shown.write_text(_SHOWN)
    library.write_text(LATER + "---" + _SHOWN.replace("killed-in-a-call", "killed-again"))
    monkeypatch.setattr(command, "GUARANTEES", shown)
    monkeypatch.setattr(command, "load_suites", lambda: load_file(library))
    runs, page = tmp_path / "runs", tmp_path / "page.md"
    for plays, cell in ((1, "**twice**"), (2, "**twice 2/2**")):
        make_guarantees((str(tmp_path),), plays, 2, runs, page)
        text = page.read_text()
        assert f"| {tmp_path} | – | at least once | {cell} |" in text
        assert f"--plays {plays}" in text
        assert f"| {tmp_path} | 1 · | 0 of 1, duplicate effects 1 |" in text
        assert "the harness has no notion of: user (ended) (1)" in text
        played = [kept.stat().st_mtime_ns for kept in sorted(runs.glob("play-1/*/episodes.sqlite"))]
        assert len(played) == 1
    # A program's path is no place to keep a run in.
    assert (tmp_path / "harness.toml").is_file()
    assert not (tmp_path / "episodes.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "is_"),
    [
        (("once", "once and closed", UNSEEN), "exactly once"),
        (("once", "twice"), "at least once"),
        (("once", "lost"), "at most once"),
        (("once", "lost and said"), "at most once, in doubt and said"),
        (("twice", "failed"), "none: lost and twice"),
        (("twice", "lost and said"), "none: lost, though said, and twice"),
        ((UNSEEN, CANNOT), UNSEEN),
    ],
)
def test_what_the_moments_amount_to(given: tuple[str, ...], is_: str) -> None:
    assert guarantee(given) == is_


def test_the_page_shows_claim_and_measure_and_how_to_see_what_broke() -> None:
    classes = [
        Class("killed-late", "resume_effects", "after effect", "it had its effect"),
        Class("asked-twice", "approvals", "driven twice", "each comes twice"),
        Class("resumed-by-three", "resume_effects", "resumed by three", "three at once", several=True),
    ]
    promise = Promise("crash", "tools run once", "https://example.org/resume")
    twice = Cell("done", "complete", duplicate_effects=1)
    asks = Events(crash=True, approve="returns", change=False)
    rows = [
        Row(
            "a:session",
            "",
            {"killed-late": (twice, twice, DONE), "asked-twice": (Cell(why="no"),)},
            (promise,),
            Events(crash=True),
            7,
        ),
        Row(
            "b",
            "",
            {
                "killed-late": (DONE, DONE),
                "asked-twice": (twice,),
                "resumed-by-three": (msgspec.structs.replace(DONE, duplicate_effects=2), DONE),
            },
            (),
            asks,
            9,
        ),
        Row("unplayed", "", {}, (), Events(compact="error"), 2),
    ]
    lived = [Lived("a", "a:session", "s-one", ("crash",), wrong=("duplicate effects",))]
    page = guarantees_markdown(rows, classes, lived, 12, "the command", "2026-01-02", "0")
    said = "[tools run once](https://example.org/resume)"
    assert f"| a:session | {said} | at least once | **twice 2, once 1** |" in page
    assert "| b | – | exactly once | once 2/2 |" in page
    assert "| b | **3 times 1, once 1** |" in page
    assert "- b, resumed by three: 3 times 1, once 1. `evalkit harnesses run b resumed-by-three`" in page
    assert "| a | 0 of 1, duplicate effects 1 |" in page
    assert "| b | – | **effect twice** |" in page
    # Who is not asked has no row among the approvals, and who was not played none at all.
    assert page.count("| a:session |") == 3
    assert page.count("| unplayed |") == 1
    assert "- a:session, late: twice 2, once 1. `evalkit harnesses run a:session killed-late`" in page
    assert "- b, driven twice: effect twice. `evalkit harnesses run b asked-twice`" in page
    assert "| b | – | yes | returns, no other arguments | – | 9 |" in page
    assert "Of the 12 scenarios" in page


def test_the_shipped_page_names_what_is_there() -> None:
    """Each row is a harness of today, each column a class of today, each command one that can be given."""
    page = (SHIPPED.parent / "docs" / "guarantees.md").read_text(encoding="utf-8")
    classes = list(map(class_of, load_file(GUARANTEES)))
    known = {each.scenario for each in classes} | {scenario.name for scenario in load_suites()}
    for each in classes:
        assert f"- **{each.heading}**" in page, each
    for name, scenario in re.findall(r"`evalkit harnesses run (\S+) (\S+)`", page):
        assert find_harness(name).name == name
        assert scenario in known
    crashes = page.split("## When it is killed")[1].split("## When a person decides")[0]
    rows = set(re.findall(r"^\| (\S+) \|", crashes, re.M)) - {"harness", "---"}
    assert rows == set(with_events())
    plays = int(re.search(r"--plays (\d+)", page)[1])  # type: ignore[index]
    for row in re.findall(r"^\| (?!harness |---)\S+ \| .*$", crashes, re.M):
        cells = [cell.strip(" *") for cell in row.strip("| ").split(" | ")[3:]]
        for cell in cells:
            # Each cell rests on as many plays as the command gives.
            counts = re.findall(r" (\d+)(?:/\d+)?(?:,|$)", cell)
            assert cell == "·" or sum(map(int, counts)) == plays, row
    for name in rows:
        promised = () if is_worker(name) else find_harness(name).manifest.promises
        assert all(f"]({promise.source})" in page for promise in promised), name


def test_each_class_has_a_sound_scenario_of_six_moves_at_most() -> None:
    scenarios = load_file(GUARANTEES)
    for scenario in scenarios:
        assert len(scenario.moves) <= 6, scenario.name
        assert not [found for found in check_scenario(scenario, {}) if found.fails], scenario.name
        told = class_of(scenario)
        assert "" not in (told.name, told.happens), scenario.name
    killed = [each for each in scenarios if each.family != "approvals" and SEVERAL not in each.events]
    crashes = {each.summary.partition(": ")[0] for each in killed}
    assert crashes == {"before intent", "after intent", "after effect", "after record", "after answer"}
