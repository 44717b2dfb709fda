"""The figures of a run of a population: with the chance and the doubt of the fit, and what is assumed apart.

Each draw of the fit gives one value of a figure: the middle 90 % of them are its chance and its doubt, for as
many tasks as were recorded. Each level of what is assumed gives a mean: how far these part is the share of
the width that rests on assumptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import msgspec

from evalkit.fit.quantiles import middle
from evalkit.fit.verdicts import never_false
from evalkit.runs.plan import Recipe
from evalkit.runs.store import Store
from evalkit.scenarios.drawn_scenarios import MIDDLE
from evalkit.scenarios.population import POPULATION, Population, status_line
from evalkit.scenarios.yaml_source import read_yaml
from evalkit.stats.scenario_results import contender_names
from evalkit.strategies.registry import find_strategy

_NAME = re.compile(r"(?P<population>.*)\[draw=(?P<draw>\d+),task=\d+,assumed=(?P<level>[\w-]+)\]\Z")
#: Figures of an episode, and how each is read off its row.
MEASURES = {
    "completed": "ending = 'done' and truth = 'complete'",
    "false_done": "false_done",
    "premature_stop": "ifnull(premature_stop, 0)",
    "escalated": "ending = 'escalated'",
    "over_continuation": "over_continuation",
    "turns": "turns",
    "tokens": "tokens",
}


class Cell(msgspec.Struct, frozen=True):
    """Where a drawn scenario stands: its population, draw and level."""

    population: str
    draw: int
    level: str


class Figure(msgspec.Struct, frozen=True):
    """One figure of one contender.

    ``value`` is its mean with everything assumed in the middle, ``low`` and ``high`` the middle 90 % of draws
    there. ``least`` and ``most`` are the ends over all levels, ``assumed`` is their part of that width.
    ``constructed``: it is 0 whatever the population is.
    """

    value: float
    low: float
    high: float
    least: float
    most: float
    assumed: float
    constructed: bool = False


#: The means of a figure by level and draw.
Means = dict[str, dict[int, float]]


def populations_of(recipe: Recipe) -> dict[str, Population]:
    """The fitted populations that a run was drawn from, by name."""
    found: dict[str, Population] = {}
    for place, text in recipe.sources.items():
        if f"{POPULATION}:" not in text:
            continue
        for source in read_yaml(text, place):
            if isinstance(source.value, dict) and POPULATION in source.value:
                population = msgspec.convert(source.value, Population)
                found[population.population] = population
    return found


def cell_of(name: str) -> Cell | None:
    """Where a scenario stands by its name; None for one that was not drawn from a fitted population."""
    found = _NAME.match(name)
    return Cell(found["population"], int(found["draw"]), found["level"]) if found else None


def means(store: Store, population: str, measure: str) -> dict[int, Means]:
    """The means of a measure (an expression on an episode), by contender, level and draw."""
    cells = {place: cell_of(entry.name) for place, entry in enumerate(store.recipe.entries)}
    sums: dict[int, dict[str, dict[int, list[float]]]] = {}
    query = f"select contender, scenario, {measure} from episode where counted order by cell"
    for contender, scenario, value in store.rows(query):
        cell = cells[scenario]
        if cell is not None and cell.population == population:
            by_draw = sums.setdefault(contender, {}).setdefault(cell.level, {})
            by_draw.setdefault(cell.draw, []).append(float(value))
    return {
        contender: {
            level: {draw: fmean(values) for draw, values in draws.items()} for level, draws in of.items()
        }
        for contender, of in sums.items()
    }


def figure_of(of: Means, *, constructed: bool = False) -> Figure:
    """A figure from its means by level and draw."""
    centre = list(of[MIDDLE].values())
    spans = {level: middle(list(draws.values())) for level, draws in of.items()}
    levels = [fmean(draws.values()) for draws in of.values()]
    least, most = min(low for low, _ in spans.values()), max(high for _, high in spans.values())
    width = most - least
    share = (max(levels) - min(levels)) / width if width > 0 else 0.0
    low, high = spans[MIDDLE]
    return Figure(fmean(centre), low, high, least, most, min(1.0, share), constructed)


def carried(store: Store) -> list[dict[str, Any]]:
    """For each population of a run its status and, by contender, its figures; empty where none was played."""
    found = []
    for name, population in populations_of(store.recipe).items():
        rows = dict(_rows(store, name))
        if rows:
            found.append(
                {
                    "population": name,
                    "status": population.calibration.status,
                    "says": status_line(population),
                    "refused": population.refused,
                    "assumed": msgspec.to_builtins(population.assumed),
                    "rows": msgspec.to_builtins(rows),
                }
            )
    return found


def _rows(store: Store, population: str) -> Iterator[tuple[str, dict[str, Figure]]]:
    by_measure = {name: means(store, population, measure) for name, measure in MEASURES.items()}
    names = contender_names(store)
    for number, contender in enumerate(store.recipe.contenders):
        if number not in by_measure["turns"] or MIDDLE not in by_measure["turns"][number]:
            continue
        own = not contender.foreign and not contender.durable
        sound = own and never_false(find_strategy(contender.strategy, store.recipe.home).done_when)
        yield (
            names[number],
            {
                name: figure_of(of[number], constructed=sound and name == "false_done")
                for name, of in by_measure.items()
            },
        )


HEADS = ("strategy", "completed", "false done", "stopped early", "escalated", "turns")
_SHOWN = ("completed", "false_done", "premature_stop", "escalated")


def table_rows(rows: dict[str, Any]) -> list[list[str]]:
    """A row for each contender: each figure, its ends over all that is assumed, and how much is assumed."""
    return [
        [
            name,
            *(_share(msgspec.convert(found[measure], Figure)) for measure in _SHOWN),
            _turns(msgspec.convert(found["turns"], Figure)),
        ]
        for name, found in rows.items()
    ]


def _share(found: Figure) -> str:
    if found.constructed:
        return "0, by construction"
    return f"{100 * found.value:.0f} % ({100 * found.least:.0f} to {100 * found.most:.0f}; {_part(found)})"


def _turns(found: Figure) -> str:
    return f"{found.value:.1f} ({found.least:.1f} to {found.most:.1f}; {_part(found)})"


def _part(found: Figure) -> str:
    return f"{100 * found.assumed:.0f} % assumed"


def legend(told: dict[str, Any]) -> str:
    """What the figures of a population stand on."""
    assumed = ", ".join(told["assumed"])
    return (
        f"“33 % (10 to 60; 40 % assumed)”: 33 % with everything assumed ({assumed}) in the middle of its "
        "range; 10 to 60 with the chance and doubt of the fit (90 %) and over all that is assumed; 40 % of "
        "that width is how far the assumptions alone move it. Other tables pool all that is assumed."
    )
