"""The populations that are shipped: parameters, no recordings; the page says of each what its file says."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from evalkit.fit.document import document
from evalkit.scenarios.drawn_scenarios import drawn_documents
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.population import Population, status_line
from evalkit.scenarios.suites import library_folder, load_suites
from evalkit.scenarios.yaml_source import read_yaml
from evalkit.stats.intervals import exact

FILES = sorted((library_folder() / "fitted").glob("*.yaml"))
PAGE = " ".join((Path(__file__).parents[2] / "docs" / "fit.md").read_text(encoding="utf-8").split())


def _population(file: Path) -> Population:
    (source,) = read_yaml(file.read_text(encoding="utf-8"), file.name)
    return msgspec.convert(source.value, Population)


def test_one_has_truth_and_one_says_why_it_has_none() -> None:
    truth = {_population(file).population: _population(file).refused for file in FILES}
    assert truth["tau-airline"] == ""
    assert truth["group-chats"].startswith("all 32 labels say incomplete")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_population_is_as_the_command_writes_it(file: Path) -> None:
    population = _population(file)
    assert population.population == file.stem
    assert population.problem() is None
    assert document(population) == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_its_rates_are_its_counts_and_its_intervals_follow_from_them(file: Path) -> None:
    for name, found in _population(file).estimates.items():
        if found.too_few:
            assert found.rate is found.low is found.high is None
            continue
        assert found.rate == pytest.approx(found.count / found.base, abs=1e-4), name
        spread = exact(found.rate * found.effective, found.effective, 0.90)
        assert spread is not None
        assert (found.low, found.high) == pytest.approx(spread, abs=2e-3), name


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_page_says_of_it_what_its_file_says(file: Path) -> None:
    assert status_line(_population(file)) in PAGE


@pytest.mark.long
def test_one_is_played_by_its_name() -> None:
    assert {scenario.persona for scenario in load_suites(("group-chats",))} == {"group-chats"}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_tasks_can_be_drawn_from_it(file: Path) -> None:
    population = msgspec.structs.replace(_population(file), draws=1, drawn=4)
    drawn = list(drawn_documents(population))
    levels = 1 + 2 ** len(population.assumed)
    assert len(drawn) == 4 * levels
    assert len(load_text(document(population), "p.yaml")) == len(drawn)
