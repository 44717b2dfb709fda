"""Finding scenarios: a file, a folder, a family, or the shipped library."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evalkit.core.names import did_you_mean
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.population import POPULATION
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError

#: Families for many seeds, and fitted populations, which are run when they are asked for.
FITTED = "fitted"
APART = ("populations", FITTED)

#: How the line begins by which a document is a fitted population.
FIELD = f"{POPULATION}:".encode()

_PACKAGE = Path(__file__).resolve().parent.parent


def library_folder() -> Path:
    """The folder of the shipped scenarios: inside an installed package, beside it in a checkout."""
    inside = _PACKAGE / "_scenarios"
    return inside if inside.is_dir() else _PACKAGE.parent / "scenarios"


def library_families() -> tuple[str, ...]:
    """The families of the shipped library but for populations, by name: each is a folder of it."""
    return tuple(name for name in _folders() if name not in APART)


def _folders() -> tuple[str, ...]:
    return tuple(sorted(place.name for place in library_folder().iterdir() if place.is_dir()))


def scenario_files(folder: Path) -> list[Path]:
    """The scenario files below a folder, by name; fitted populations only where there is nothing else.

    They are no scenarios that somebody wrote: their figures are never pooled with those of a library.
    """
    files = sorted(file for file in folder.rglob("*") if file.suffix in (".yaml", ".yml"))
    return [file for file in files if not _is_fitted(file)] or files


def _is_fitted(file: Path) -> bool:
    try:
        text = file.read_bytes()
    except OSError:
        return False
    return text.startswith(FIELD) or b"\n" + FIELD in text


def load_suites(names: Iterable[str] = ()) -> list[Scenario]:
    """The scenarios of suites, in order of place; without names the shipped library but for populations.

    A folder's fitted populations are left out unless it holds nothing else (:func:`scenario_files`).
    A shipped one goes by its name. ``SUITE::NAME`` is one scenario of a suite. ScenarioError for a suite that
    is no file, folder or family, and for a name that two scenarios have.
    """
    found: dict[str, Scenario] = {}
    folder = str(library_folder())
    for suite in names or (folder,):
        for scenario in _load(suite):
            if suite == folder and not names and scenario.family in APART:
                continue
            other = found.setdefault(scenario.name, scenario)
            if (other.place, other.digest) != (scenario.place, scenario.digest):
                raise ScenarioError(
                    scenario.place, None, "scenario", f"the name {scenario.name!r} is also in {other.place}"
                )
    return list(found.values())


def _load(suite: str) -> list[Scenario]:
    place, marked, name = suite.rpartition("::")
    if marked:
        return [_one(_load(place), name, place)]
    path = Path(suite)
    if path.is_dir():
        files = scenario_files(path)
        if not files:
            raise ScenarioError(suite, None, "", "the folder holds no .yaml file")
        return _unique([scenario for file in files for scenario in load_file(file)])
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return _unique(load_file(path))
    if suite in _folders():
        return _load(str(library_folder() / suite))
    fitted = library_folder() / FITTED / f"{suite}.yaml"
    if fitted.is_file():
        return load_file(fitted)
    library = _load(str(library_folder()))
    one = [scenario for scenario in library if suite == scenario.name]
    if not one:
        families = _folders()
        guess = did_you_mean(suite, [*families, *(scenario.name for scenario in library)])
        raise ScenarioError(
            suite, None, "", f"no such file, folder or family{guess}; families: {', '.join(families)}"
        )
    return one


def _one(scenarios: list[Scenario], name: str, place: str) -> Scenario:
    for scenario in scenarios:
        if scenario.name == name:
            return scenario
    guess = did_you_mean(name, [scenario.name for scenario in scenarios])
    raise ScenarioError(place, None, "scenario", f"holds none of the name {name!r}{guess}")


def _unique(scenarios: list[Scenario]) -> list[Scenario]:
    places: dict[str, str] = {}
    for scenario in scenarios:
        if scenario.name in places:
            here = places[scenario.name]
            where = "stands here twice" if here == scenario.place else f"is also in {here}"
            raise ScenarioError(scenario.place, None, "scenario", f"the name {scenario.name!r} {where}")
        places[scenario.name] = scenario.place
    return scenarios
