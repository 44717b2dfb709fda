"""What a run is to do: scenarios × strategies × seeds, as numbered cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

import msgspec

from evalkit import __version__
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.strategies.library import StrategyError, find_strategy
from evalkit.strategies.strategy import Strategy

LOOP = "loop"


class PlanError(ValueError):
    """A plan that cannot be run; one line."""


class Contender(msgspec.Struct, frozen=True):
    """What is measured: a strategy in the reference loop, or a harness of its own."""

    strategy: str
    harness: str = LOOP


class Entry(msgspec.Struct, frozen=True):
    """One scenario of a plan; ``digest`` is of its source text, ``place`` where it came from."""

    name: str
    family: str
    checks: str
    digest: str
    place: str
    twin: str | None = None
    population: bool = False


class Recipe(msgspec.Struct, frozen=True):
    """A plan as it is kept in the run folder: enough to run it again anywhere.

    ``sources`` are the YAML texts by place. ``strategies`` are fingerprints by name, so that a changed one
    is noticed.
    """

    evalkit: str
    seeds: int
    entries: tuple[Entry, ...]
    contenders: tuple[Contender, ...]
    sources: dict[str, str]
    strategies: dict[str, str]
    baseline: str
    not_expressible: dict[str, str]

    @property
    def id(self) -> str:
        """The run's name: a digest of all that decides its results."""
        parts = msgspec.structs.replace(self, sources={}, baseline="")
        return hashlib.blake2b(msgspec.json.encode(parts, order="sorted"), digest_size=6).hexdigest()


class Span(msgspec.Struct, frozen=True):
    """Cells in a row: one scenario, one contender, some seeds, and the first cell's number."""

    scenario: int
    contender: int
    first_seed: int
    seeds: int
    cell: int


class Plan:
    """A recipe with its scenarios and strategies loaded. Cells are numbered in a fixed order."""

    def __init__(self, recipe: Recipe, scenarios: list[Scenario]) -> None:
        self.recipe = recipe
        self.scenarios = scenarios
        self.strategies: list[Strategy] = [find_strategy(c.strategy) for c in recipe.contenders]

    def seeds(self, scenario: int, contender: int) -> int:
        """How many seeds a cell is run with: one where nothing is random."""
        random = self.scenarios[scenario].random or self.strategies[contender].random
        return self.recipe.seeds if random else 1

    def spans(self, size: int) -> Iterator[Span]:
        """The work in order of cells, in spans of at most ``size`` episodes."""
        cell = 0
        for scenario in range(len(self.scenarios)):
            for contender in range(len(self.strategies)):
                seeds = self.seeds(scenario, contender)
                for first in range(0, seeds, size):
                    count = min(size, seeds - first)
                    yield Span(scenario, contender, first, count, cell + first)
                cell += seeds

    def episodes(self) -> int:
        """How many episodes the plan has."""
        return sum(
            self.seeds(scenario, contender)
            for scenario in range(len(self.scenarios))
            for contender in range(len(self.strategies))
        )


def make_plan(
    scenarios: list[Scenario],
    sources: dict[str, str],
    strategies: tuple[str, ...],
    seeds: int,
    baseline: str | None = None,
) -> Plan:
    """A plan for the reference loop. PlanError for what cannot be run."""
    if seeds < 1:
        raise PlanError(f"--seeds must be at least 1, got {seeds}")
    twice = sorted({name for name in strategies if strategies.count(name) > 1})
    if twice:
        raise PlanError(f"strategy {twice[0]!r} is named twice")
    prints: dict[str, str] = {}
    for name in strategies:
        try:
            prints[name] = fingerprint(find_strategy(name))
        except StrategyError as error:
            raise PlanError(str(error)) from None
    if baseline is not None and baseline not in strategies:
        raise PlanError(f"baseline {baseline!r} is not among the strategies: {', '.join(strategies)}")
    playable, skipped = [], {}
    for scenario in scenarios:
        if scenario.events:
            skipped[scenario.name] = f"the reference loop has no notion of: {', '.join(scenario.events)}"
        else:
            playable.append(scenario)
    recipe = Recipe(
        evalkit=__version__,
        seeds=seeds,
        entries=tuple(entry_of(scenario) for scenario in playable),
        contenders=tuple(Contender(name) for name in strategies),
        sources=dict(sources),
        strategies=prints,
        baseline=baseline or ("silence" if "silence" in strategies else strategies[0]),
        not_expressible=skipped,
    )
    return Plan(recipe, playable)


def entry_of(scenario: Scenario) -> Entry:
    """A scenario as the plan names it."""
    return Entry(
        scenario.name,
        scenario.family,
        scenario.task.checks,
        scenario.digest,
        scenario.place,
        scenario.twin,
        scenario.persona is not None,
    )


def fingerprint(strategy: Strategy) -> str:
    """What a strategy is, for noticing a change."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(strategy))


def plan_from(recipe: Recipe) -> Plan:
    """The plan of a kept recipe. PlanError where it does not load with this version."""
    by_name: dict[str, Scenario] = {}
    try:
        for place, text in recipe.sources.items():
            by_name.update({scenario.name: scenario for scenario in load_text(text, place)})
        scenarios = [by_name[entry.name] for entry in recipe.entries]
        return Plan(recipe, scenarios)
    except (ValueError, KeyError) as error:
        raise PlanError(f"the run cannot be loaded: {' '.join(str(error).split())}") from None


def changes_since(recipe: Recipe) -> list[str]:
    """What is different now: evalkit's version, a strategy. One line each."""
    changes = []
    if recipe.evalkit != __version__:
        changes.append(f"the run was made by evalkit {recipe.evalkit}, this is {__version__}")
    for contender in recipe.contenders:
        was = recipe.strategies.get(contender.strategy)
        try:
            now = fingerprint(find_strategy(contender.strategy))
        except StrategyError as error:
            changes.append(str(error))
            continue
        if was is not None and was != now:
            changes.append(f"strategy {contender.strategy!r} has changed since")
    return changes
