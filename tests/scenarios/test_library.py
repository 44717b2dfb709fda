"""The shipped library: every scenario is sound, and what it holds is what the project is known by."""

from __future__ import annotations

import json
from collections import Counter

import jsonschema
import pytest
import yaml

from evalkit.scenarios.json_schema import schema_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import library_folder, load_suites
from evalkit.scoring.check import check_scenario

LIBRARY = load_suites((str(library_folder()),))
KNOWN = {scenario.name: scenario for scenario in LIBRARY}


@pytest.mark.parametrize("scenario", [pytest.param(s, id=s.name) for s in LIBRARY if s.world.kind != "repo"])
def test_sound(scenario: Scenario) -> None:
    assert check_scenario(scenario, KNOWN) == []


def test_breadth() -> None:
    families = Counter(scenario.family for scenario in LIBRARY)
    assert len(LIBRARY) >= 60
    assert len(families) >= 18
    pairs = {tuple(sorted((s.name, s.twin))) for s in LIBRARY if s.twin}
    assert len(pairs) >= 12
    assert all(scenario.source and scenario.summary for scenario in LIBRARY)
    known_by = {"partial_completion", "fabricated_success", "pause_turn", "truncation", "infinite_nudging"}
    assert known_by <= set(families)


def test_every_file_fits_the_schema_that_editors_use() -> None:
    schema = json.loads((library_folder() / "schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for file in sorted(library_folder().rglob("*.yaml")):
        problems = [error.message for error in validator.iter_errors(yaml.safe_load(file.read_text()))]
        assert problems == [], file
        first = file.read_text().splitlines()[0]
        assert first.startswith("# yaml-language-server: $schema=")


def test_the_schema_is_generated_from_the_types() -> None:
    assert (library_folder() / "schema.json").read_text() == schema_text()
