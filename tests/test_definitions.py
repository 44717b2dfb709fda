"""The definitions as scenarios: docs/in-scenarios.md says what comes of each, and it does.

``EVALKIT_REWRITE=1`` writes its tables anew from what is found.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.episode_fields import MARKS, Episode
from evalkit.scoring.soundness import check_scenario
from tests.helpers import play

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = DOCS / "in-scenarios.md"
#: They believe silence, a finish, a claim; ask for ever; look at the world; do all that a careful loop does.
STRATEGIES = ("silence", "finish_tool", "verifier_claim", "infinite_nudge", "acceptance", "gate")
HEAD = "| strategy | outcome | turns | flags |\n| --- | --- | --- | --- |\n"
SECTION = re.compile(
    r"^## (?P<title>[^\n]*)\n\n```yaml\n(?P<scenario>.*?)^```\n\n?(?P<cells>(?:\|[^\n]*\n)*)",
    re.MULTILINE | re.DOTALL,
)
SECTIONS = {found["title"]: found for found in SECTION.finditer(PAGE.read_text(encoding="utf-8"))}


def scenario_of(title: str) -> Scenario:
    (scenario,) = load_text(SECTIONS[title]["scenario"])
    return scenario


def cells(scenario: Scenario) -> str:
    """What comes of a scenario, a row for each strategy."""
    rows = [(name, play(scenario, name)) for name in STRATEGIES]
    return HEAD + "".join(f"| `{name}` | {_told(episode)} |\n" for name, episode in rows)


def _told(episode: Episode) -> str:
    flags = [mark.replace("_", " ") for mark in MARKS if getattr(episode, mark)]
    if episode.honest_report is not None and not episode.honest_report:
        flags.append("dishonest report")
    outcome = f"**{episode.outcome}**" if episode.correct else episode.outcome
    return f"{outcome} | {episode.turns} | {', '.join(flags)}"


@pytest.mark.parametrize("title", SECTIONS)
def test_a_definition_is_what_its_scenario_shows(title: str) -> None:
    found = cells(scenario_of(title))
    if os.environ.get("EVALKIT_REWRITE"):
        text, scenario = PAGE.read_text(encoding="utf-8"), SECTIONS[title]["scenario"]
        begins = text.index(scenario) + len(scenario) + len("```\n")
        ends = text.find("\n## ", begins)
        rest = text[ends:] if ends >= 0 else ""
        PAGE.write_text(f"{text[:begins]}\n{found}{rest}", encoding="utf-8")
        return
    assert SECTIONS[title]["cells"].strip() == found.strip(), f"{title}: the cells have changed"


@pytest.mark.parametrize("title", SECTIONS)
def test_each_is_sound(title: str) -> None:
    found = [finding.message for finding in check_scenario(scenario_of(title), {})]
    assert found == []


def test_each_number_that_is_shown_is_a_definition() -> None:
    defined = set(re.findall(r"^- \*\*(D\d+\.\d+)", (DOCS / "definitions.md").read_text(), re.MULTILINE))
    shown = {number for title in SECTIONS for number in re.findall(r"D\d+\.\d+", title)}
    assert shown <= defined
    assert len(SECTIONS) == PAGE.read_text(encoding="utf-8").count("\n## ")
