"""The definitions and readings as scenarios: docs/in-scenarios.md says what comes of each, and it does.

A section's table says by whom it is played and which columns are told. ``EVALKIT_REWRITE=1`` writes the
cells anew from what is found, in one process (``-n 0``).
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.tasks import Offered
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import ideal_episode
from evalkit.scoring.episode_fields import MARKS, Episode
from evalkit.scoring.soundness import check_scenario
from evalkit.strategies.presets import PRESETS
from tests.helpers import play

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "in-scenarios.md"
READINGS = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
TEXT = PAGE.read_text(encoding="utf-8")
SECTION = re.compile(
    r"^### (?P<title>[^\n]*)\n\n(?:(?P<why>(?!```)[^\n]+(?:\n[^\n]+)*)\n\n)?"
    r"```yaml\n(?P<scenario>.*?)^```\n\n(?P<cells>(?:\|[^\n]*\n)*)",
    re.MULTILINE | re.DOTALL,
)
SECTIONS = {found["title"]: found for found in SECTION.finditer(TEXT)}
#: The rooms of docs/decisions.md whose readings an episode can show, by the word that they are cited by.
ROOMS = {
    "Scoring": "Scoring",
    "Strategies": "Strategies",
    "The player": "Player",
    "Events": "Events",
    "Worlds": "Worlds",
    "The scripted side": "Script",
}
KEY = re.compile(rf"(?:{'|'.join(ROOMS.values())}) \d+")
NAMED_TEST = re.compile(r"`(tests/[\w/]+\.py)::([\w:]+)`")


def scenario_of(title: str) -> Scenario:
    (scenario,) = load_text(SECTIONS[title]["scenario"])
    return scenario


def table_of(cells: str) -> list[list[str]]:
    """The cells of a Markdown table, its line of dashes left out."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in cells.splitlines()]
    return rows[:1] + rows[2:]


def written(rows: list[list[str]]) -> str:
    head, *body = ["| " + " | ".join(row) + " |\n" for row in rows]
    return head + "|" + " --- |" * len(rows[0]) + "\n" + "".join(body)


def played_by(name: str, scenario: Scenario) -> Episode:
    """The episode of a row: of a preset, of one with fields changed, or of the ideal harness."""
    preset, *fields = re.findall(r"`([^`]+)`", name) or [name]
    if preset == "the ideal harness":
        return ideal_episode(Arena(scenario, Offered()), 0)
    changes: dict[str, Any] = {}
    for field in fields:
        changes |= yaml.safe_load(field)
    return play(scenario, PRESETS[preset].strategy.but(**changes))


def _outcome(episode: Episode) -> str:
    return f"**{episode.outcome}**" if episode.correct else episode.outcome


def _flags(episode: Episode) -> str:
    flags = [mark.replace("_", " ") for mark in MARKS if getattr(episode, mark)]
    if episode.honest_report is not None and not episode.honest_report:
        flags.append("dishonest report")
    return ", ".join(flags)


def _decisions(episode: Episode) -> str:
    named = zip(("tp", "fp", "tn", "fn"), episode.decisions, strict=True)
    return ", ".join(f"{name} {count}" for name, count in named if count)


#: The columns that are more than a field of the episode, which any other column names.
COLUMNS: dict[str, Callable[[Episode], str]] = {
    "outcome": _outcome,
    "flags": _flags,
    "decisions": _decisions,
}
_SAID: dict[object, str] = {None: "none", True: "yes", False: "no"}


def cell(column: str, episode: Episode) -> str:
    if column in COLUMNS:
        return COLUMNS[column](episode)
    value = getattr(episode, column.replace(" ", "_"))
    if value is None or isinstance(value, bool):
        return _SAID[value]
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def table(title: str) -> str:
    """A section's table as it is found: by whom it is played and what is told stand in the table itself."""
    scenario, (head, *rows) = scenario_of(title), table_of(SECTIONS[title]["cells"])
    found = [head]
    for name, *_ in rows:
        episode = played_by(name, scenario)
        found.append([name, *(cell(column, episode) for column in head[1:])])
    return written(found)


@pytest.mark.parametrize("title", SECTIONS)
def test_a_definition_is_what_its_scenario_shows(title: str) -> None:
    found = table(title)
    if os.environ.get("EVALKIT_REWRITE"):
        text, scenario = PAGE.read_text(encoding="utf-8"), SECTIONS[title]["scenario"]
        begins = text.index(scenario) + len(scenario) + len("```\n\n")
        ends = begins + len(SECTIONS[title]["cells"])
        PAGE.write_text(text[:begins] + found + text[ends:], encoding="utf-8")
        return
    assert SECTIONS[title]["cells"] == found, f"{title}: the cells have changed"


@pytest.mark.parametrize("title", SECTIONS)
def test_each_is_sound(title: str) -> None:
    found = [finding.message for finding in check_scenario(scenario_of(title), {})]
    assert found == []


def test_every_section_of_the_page_is_played() -> None:
    assert [*SECTIONS] == re.findall(r"^### (.*)", TEXT, re.MULTILINE)


def test_each_number_that_is_shown_is_a_definition() -> None:
    definitions = (ROOT / "docs" / "definitions.md").read_text(encoding="utf-8")
    defined = set(re.findall(r"^- \*\*(D\d+\.\d+)", definitions, re.MULTILINE))
    shown = {number for title in SECTIONS for number in re.findall(r"D\d+\.\d+", title)}
    assert shown <= defined
    flags = {number for number in defined if number.startswith("D3.")}
    assert flags <= shown | set(re.findall(r"D3\.\d+", TEXT.partition("## What only programs show")[2]))


def slug(title: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def readings() -> dict[str, str]:
    """The readings of the rooms that an episode can show, by what they are cited as (``Scoring 4``)."""
    found = {}
    for room in re.split(r"^## ", READINGS, flags=re.MULTILINE)[1:]:
        name, _, text = room.partition("\n")
        if name in ROOMS:
            numbered = [*re.finditer(r"^(\d+)\. (.*(?:\n(?!\d+\. ).*)*)", text, re.MULTILINE)]
            assert [int(reading[1]) for reading in numbered] == [*range(1, len(numbered) + 1)], name
            found.update({f"{ROOMS[name]} {reading[1]}": reading[2] for reading in numbered})
    return found


@cache
def named_in(file: str) -> frozenset[str]:
    """The tests of a file, as pytest names them."""

    def names(body: list[ast.stmt], before: str = "") -> list[str]:
        found: list[str] = []
        for node in body:
            if isinstance(node, ast.ClassDef):
                found += [node.name, *names(node.body, f"{node.name}::")]
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(before + node.name)
        return found

    return frozenset(names(ast.parse((ROOT / file).read_text(encoding="utf-8")).body))


@pytest.mark.parametrize("key", readings())
def test_each_reading_is_shown_or_names_the_test_that_shows_it(key: str) -> None:
    text = readings()[key]
    shown = {slug(title) for title in SECTIONS if key in KEY.findall(title)}
    assert set(re.findall(r"in-scenarios\.md#([\w-]+)", text)) == shown
    named = NAMED_TEST.findall(text)
    assert shown or ("No scenario:" in text and named)


def test_what_a_section_cites_is_a_reading() -> None:
    assert {key for title in SECTIONS for key in KEY.findall(title)} <= set(readings())


@pytest.mark.parametrize("page", ["decisions.md", "in-scenarios.md"])
def test_each_test_that_is_named_is_there(page: str) -> None:
    named = NAMED_TEST.findall((ROOT / "docs" / page).read_text(encoding="utf-8"))
    assert named
    assert [f"{file}::{name}" for file, name in named if name not in named_in(file)] == []


def test_each_flag_is_shown_or_names_the_test_that_shows_it() -> None:
    told = {
        flag.strip()
        for title in SECTIONS
        for head, *rows in [table_of(SECTIONS[title]["cells"])]
        for row in rows
        if "flags" in head
        for flag in row[head.index("flags")].split(",")
    }
    listed = set(re.findall(r"^\| ([a-z ]+) \|.*`tests/", TEXT, re.MULTILINE))
    marks = {mark.replace("_", " ") for mark in MARKS} | {"dishonest report"}
    assert marks <= told | listed
    assert not told & listed


def test_the_contents_lead_to_every_section() -> None:
    anchors = {slug(title) for title in re.findall(r"^##+ (.*)", TEXT, re.MULTILINE)}
    assert len(anchors) == len(re.findall(r"^##+ ", TEXT, re.MULTILINE))
    assert set(re.findall(r"\(#([\w-]+)\)", TEXT)) == anchors
