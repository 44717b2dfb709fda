"""The shipped library: every scenario is sound, and what it holds is what the project is known by."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import jsonschema
import pytest
import yaml

from evalkit.scenarios.json_schema import schema_text
from evalkit.scenarios.personas import PERSONAS
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import library_families, library_folder, scenario_files
from evalkit.scoring.soundness import check_scenario
from tests.helpers import library, library_and_populations

LIBRARY = library_and_populations()
KNOWN = {scenario.name: scenario for scenario in LIBRARY}


@pytest.mark.long
@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in LIBRARY if s.world.kind != "repo"])
def test_sound(scenario: Scenario) -> None:
    assert check_scenario(scenario, KNOWN) == []


#: The families of the design.
FAMILIES = {
    *("partial_completion", "fabricated_success", "failed_step", "pause_turn", "truncation"),
    *("infinite_nudging", "over_verification", "refusal", "progress_updates", "empty_turns"),
    *("contradictory_stop", "finish_batch", "keyword_misfire", "stop_hook", "limits_boundary"),
    *("resume_effects", "compaction", "transport_faults", "structured_output", "background_work"),
    *("channel_misuse", "budgets", "twins", "user_turns", "approvals"),
}


def test_breadth() -> None:
    families = Counter(scenario.family for scenario in LIBRARY)
    assert len(LIBRARY) >= 150
    assert set(families) >= FAMILIES
    assert min(families[family] for family in FAMILIES) >= 5
    pairs = {tuple(sorted((s.name, s.twin))) for s in LIBRARY if s.twin}
    assert len(pairs) >= 25
    assert all(scenario.source and scenario.summary for scenario in LIBRARY)
    assert len(PERSONAS) >= 9
    assert {scenario.persona for scenario in LIBRARY if scenario.family == "populations"} == set(PERSONAS)


def test_no_two_files_are_the_same_script() -> None:
    """Variants of one file differ in a label or limit; two files with equal moves would be padding."""
    scripts: dict[str, str] = {}
    for scenario in LIBRARY:
        # What tells keyword scenarios apart is in their words.
        if scenario.twin or scenario.persona or "[" in scenario.name or scenario.family == "keyword_misfire":
            continue
        script = f"{scenario.world.kind} {scenario.task.checks} {scenario.limits} {_shape(scenario)}"
        other = scripts.setdefault(script, scenario.name)
        assert other == scenario.name, f"{scenario.name} is {other} in other words"


def _shape(scenario: Scenario) -> str:
    """The moves without their words and items."""
    text = re.sub(r"(say|think|text|reason|name)=('[^']*'|\"[^\"]*\")", r"\1", repr(scenario.moves))
    for number, item in enumerate(scenario.world.items):
        text = text.replace(repr(item), f"item {number}")
    return text


def test_every_file_fits_the_schema_that_editors_use() -> None:
    schema = json.loads((library_folder() / "schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for file in scenario_files(library_folder()):
        problems = [error.message for error in validator.iter_errors(yaml.safe_load(file.read_text()))]
        assert problems == [], file
        first = file.read_text().splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema=")


def test_the_schema_is_generated_from_the_types() -> None:
    assert (library_folder() / "schema.json").read_text() == schema_text()


def test_every_source_begins_with_a_key_of_the_page() -> None:
    text = (Path(__file__).parents[2] / "docs" / "sources.md").read_text()
    # The first table; what stands below are sources of pages, which no scenario plays.
    table = text.partition("| key |")[2].partition("\n\n")[0]
    keys = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")][1:]
    begins = tuple(key.removesuffix(" OWNER NUMBER").removesuffix(" …") for key in keys)
    assert len(begins) == 7
    assert [(s.name, s.source) for s in LIBRARY if not s.source.startswith(begins)] == []


def test_a_family_is_a_folder() -> None:
    assert all(Path(scenario.place).parent.name == scenario.family for scenario in LIBRARY)
    assert set(library_families()) == {scenario.family for scenario in library()}
