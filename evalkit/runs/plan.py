"""What a run is to do: scenarios × strategies × seeds, as numbered cells."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from evalkit import __version__
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness, Heard, ManifestError
from evalkit.media.medium import Medium, MediumError, check_medium, unplayable
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.redacted_source import kept_text
from evalkit.scenarios.scenario import Scenario
from evalkit.secrets.cleaning import clean_text
from evalkit.secrets.rules import REDACTED
from evalkit.strategies.conditions import silence
from evalkit.strategies.noisy_verifiers import AssumedErrors, assumed_errors
from evalkit.strategies.registry import StrategyError, find_strategy
from evalkit.strategies.strategy import Strategy

LOOP = "loop"
#: The durable worker as a harness; ``worker:STRATEGY`` names its strategy.
WORKER = "worker"
WORKERS_STRATEGY = "gate"


class PlanError(ValueError):
    """A plan that cannot be run; one line."""


class Contender(msgspec.Struct, frozen=True):
    """What is measured: a strategy in the reference loop, or a harness of its own, named in both."""

    strategy: str
    harness: str = LOOP

    @property
    def durable(self) -> bool:
        """Whether it is the durable worker."""
        return is_worker(self.harness)

    @property
    def foreign(self) -> bool:
        """Whether it is a program of its own."""
        return self.harness != LOOP and not self.durable

    @property
    def name(self) -> str:
        """What it is called: the harness, or in the reference loop the strategy."""
        return self.strategy if self.harness == LOOP else self.harness


def is_worker(harness: str) -> bool:
    """Whether a harness's name means the durable worker."""
    return harness.partition(":")[0] == WORKER


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
    is noticed. ``heard`` is what harnesses speak whose manifests do not say so, ``folders`` are those of
    harnesses that go by their manifest's name; ``fresh`` gives each of their episodes a process of its own.
    ``home`` is the folder from which relative paths go. ``verifiers`` are the assumed error rates of the
    strategies that ask one.
    """

    evalkit: str
    seeds: int
    entries: tuple[Entry, ...]
    contenders: tuple[Contender, ...]
    sources: dict[str, str]
    strategies: dict[str, str]
    baseline: str
    not_expressible: dict[str, str]
    medium: Medium = Medium()
    heard: dict[str, Heard] = {}
    fresh: bool = False
    home: str = ""
    folders: dict[str, str] = {}
    verifiers: dict[str, tuple[AssumedErrors, ...]] = {}

    def place_of(self, harness: str) -> str:
        """What finds a harness of the plan by its name."""
        return self.folders.get(harness, harness)

    @property
    def id(self) -> str:
        """The run's name: a digest of all that decides its results."""
        parts = msgspec.structs.asdict(msgspec.structs.replace(self, sources={}, baseline=""))
        del parts["home"], parts["folders"], parts["verifiers"]
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
        home = recipe.home
        self.strategies: list[Strategy] = [_strategy_of(contender, home) for contender in recipe.contenders]

    def seeds(self, scenario: int, contender: int) -> int:
        """How many seeds a cell is run with: one where nothing is random, none where it cannot be played."""
        who = self.recipe.contenders[contender]
        if cell_name(self.scenarios[scenario].name, who.name) in self.recipe.not_expressible:
            return 0
        random = self.scenarios[scenario].random or self.strategies[contender].random
        return self.recipe.seeds if random or self.recipe.medium.live else 1

    def spans(self, size: int) -> Iterator[Span]:
        """The work in spans of at most ``size`` episodes: the first seeds of all cells, then the next ones.

        So what is done early is like what comes late, and the remaining time can be told.
        """
        cells: list[tuple[int, int, int, int]] = []
        cell = 0
        for scenario in range(len(self.scenarios)):
            for contender in range(len(self.strategies)):
                seeds = self.seeds(scenario, contender)
                cells.append((scenario, contender, seeds, cell))
                cell += seeds
        for first in range(0, max((seeds for _, _, seeds, _ in cells), default=0), size):
            for scenario, contender, seeds, cell in cells:
                if first < seeds:
                    yield Span(scenario, contender, first, min(size, seeds - first), cell + first)

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
    medium: Medium = Medium(),  # noqa: B008 - a value
    harnesses: tuple[str, ...] = (),
    *,
    fresh: bool = False,
) -> Plan:
    """A plan for strategies in the reference loop, and harnesses. PlanError for what cannot be run."""
    try:
        check_medium(medium)
    except MediumError as error:
        raise PlanError(str(error)) from None
    scenarios = [_with_clean_name(scenario) for scenario in scenarios]
    if seeds < 1:
        raise PlanError(f"seeds must be at least 1, got {seeds}")
    folders: dict[str, str] = {}
    called = {name: _named(name, folders) for name in harnesses}
    harnesses = tuple(called[name] for name in harnesses)
    baseline = called.get(baseline, baseline) if baseline is not None else None
    named = strategies + harnesses
    if not named:
        raise PlanError("there is no strategy and no harness: name one of either")
    twice = sorted({name for name in named if named.count(name) > 1})
    if twice:
        raise PlanError(f"strategy {twice[0]!r} is named twice")
    prints: dict[str, str] = {}
    verifiers: dict[str, tuple[AssumedErrors, ...]] = {}
    for name in strategies:
        try:
            strategy = find_strategy(name)
            prints[name], verifiers[name] = fingerprint(strategy), assumed_errors(strategy)
        except StrategyError as error:
            raise PlanError(str(error)) from None
    if baseline is not None and baseline not in named:
        raise PlanError(f"baseline {baseline!r} is not among the strategies: {', '.join(named)}")
    offered = tuple(dict.fromkeys(find_strategy(name).offers for name in strategies))
    reasons = {scenario.name: unplayable(medium, scenario, offered) for scenario in scenarios}
    durable = any(is_worker(name) for name in harnesses)
    foreign = {
        name: _harness(name, folders.get(name, name), scenarios) for name in harnesses if not is_worker(name)
    }
    scripted = not medium.live and medium.replay is None

    def lives(scenario: Scenario) -> bool:
        """Whether a harness can play what the reference loop cannot."""
        if durable and not worker_cannot(scenario):
            return True
        return scripted and any(
            cell_name(scenario.name, name) not in cannot for name, (_, cannot) in foreign.items()
        )

    def why_none(scenario: Scenario) -> str:
        """Why no harness can play a scenario."""
        found = [
            worker_cannot(scenario)
            if is_worker(name)
            else foreign[name][1].get(cell_name(scenario.name, name))
            for name in harnesses
        ]
        return "; ".join(dict.fromkeys(filter(None, found)))

    playable = [scenario for scenario in scenarios if not reasons[scenario.name] or lives(scenario)]
    skipped = {name: reason for name, reason in reasons.items() if reason}
    if not strategies and scripted:
        # The reference loop is not asked to: what it lacks is no reason.
        skipped |= {
            each.name: why_none(each) or skipped[each.name] for each in scenarios if each.name in skipped
        }
    for scenario in playable:
        reason = skipped.pop(scenario.name, "")
        if reason:
            skipped.update({cell_name(scenario.name, name): reason for name in strategies})
    heard: dict[str, Heard] = {}
    for name in harnesses:
        if is_worker(name):
            prints[name], cannot = _worker(name, playable)
        else:
            harness, all_cannot = foreign[name]
            played = {cell_name(scenario.name, name) for scenario in playable}
            cannot = {cell: reason for cell, reason in all_cannot.items() if cell in played}
            prints[name] = harness.fingerprint
            if harness.heard is not None:
                heard[name] = harness.heard
        skipped.update(cannot)
    recipe = Recipe(
        evalkit=__version__,
        seeds=seeds,
        entries=tuple(entry_of(scenario) for scenario in playable),
        contenders=(
            *(Contender(name) for name in strategies),
            *(Contender(name, name) for name in harnesses),
        ),
        sources={place: kept_text(place, text) for place, text in sources.items()},
        strategies=prints,
        verifiers={name: found for name, found in verifiers.items() if found},
        baseline=baseline or ("silence" if "silence" in strategies else named[0]),
        not_expressible=skipped,
        medium=medium,
        heard=heard,
        fresh=fresh,
        home=str(Path.cwd()),
        folders=folders,
    )
    return Plan(recipe, playable)


def _with_clean_name(scenario: Scenario) -> Scenario:
    """A scenario whose name may be written anywhere."""
    name = clean_text(scenario.name)
    return scenario if name == scenario.name else msgspec.structs.replace(scenario, name=name)


def sources_of(scenarios: list[Scenario]) -> dict[str, str]:
    """The texts of the files that scenarios came from, by place."""
    places = dict.fromkeys(scenario.place for scenario in scenarios)
    return {place: Path(place).read_text(encoding="utf-8") for place in places}


def cell_name(scenario: str, harness: str) -> str:
    """How a scenario is named that one harness cannot express."""
    return f"{scenario} × {harness}"


def _strategy_of(contender: Contender, home: str = "") -> Strategy:
    """A contender's strategy; a harness has its own, which nobody asks."""
    if contender.foreign:
        return Strategy(done_when=silence(), name=contender.harness)
    if contender.durable:
        return find_strategy(contender.harness.partition(":")[2] or WORKERS_STRATEGY, home)
    return find_strategy(contender.strategy, home)


def worker_cannot(scenario: Scenario) -> str:
    """Why the durable worker cannot play a scenario; empty where it can."""
    from evalkit.scoring.worker_episode import EVENTS

    lacking = [event for event in scenario.events if event not in EVENTS]
    return f"the worker has no notion of: {', '.join(lacking)}" if lacking else ""


def _worker(name: str, scenarios: list[Scenario]) -> tuple[str, dict[str, str]]:
    """The fingerprint of the worker with its strategy, and why it cannot play which scenarios."""
    try:
        strategy = _strategy_of(Contender(name, name))
    except StrategyError as error:
        raise PlanError(f"harness {name!r}: {error}") from None
    reasons = {cell_name(s.name, name): worker_cannot(s) for s in scenarios}
    return fingerprint(strategy), {cell: reason for cell, reason in reasons.items() if reason}


def _named(name: str, folders: dict[str, str]) -> str:
    """What a harness is called in a run: that of a folder by its manifest's name, noted in ``folders``."""
    if is_worker(name):
        return name
    try:
        harness = find_harness(name)
    except ManifestError as error:
        raise PlanError(str(error)) from None
    variant = f":{harness.variant}" if harness.variant else ""
    if not Path(name.removesuffix(variant)).is_dir():
        return name
    folders[harness.name] = f"{harness.folder}{variant}"
    return harness.name


def _harness(name: str, place: str, scenarios: list[Scenario]) -> tuple[Harness, dict[str, str]]:
    """A harness whose dialect is known, and why it cannot express which scenarios."""
    from evalkit.scoring.foreign_episode import hear, why_not_expressible

    try:
        harness = hear(find_harness(place))
    except ManifestError as error:
        raise PlanError(str(error)) from None
    reasons = {cell_name(s.name, name): why_not_expressible(s, harness) for s in scenarios}
    return harness, {cell: reason for cell, reason in reasons.items() if reason}


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


def plan_from(recipe: Recipe, *, whole: bool = False) -> Plan:
    """The plan of a kept recipe. PlanError where it does not load with this version.

    ``whole``: the scenarios with the secrets that are not kept, where their files still have them.
    """
    by_name: dict[str, Scenario] = {}
    try:
        for place, text in recipe.sources.items():
            now = _text_of(Path(recipe.home, place)) if whole and REDACTED in text else None
            loaded = load_text(now if now is not None and kept_text(place, now) == text else text, place)
            by_name.update({scenario.name: scenario for scenario in map(_with_clean_name, loaded)})
        scenarios = [by_name[entry.name] for entry in recipe.entries]
        return Plan(recipe, scenarios)
    except (ValueError, KeyError) as error:
        raise PlanError(f"the run cannot be loaded: {' '.join(str(error).split())}") from None


def changes_since(recipe: Recipe) -> list[str]:
    """What is different now: evalkit's version, a scenario's file, a strategy. One line each.

    A run goes on with the scenarios as they were: their texts are kept in it.
    """
    changes = []
    if recipe.evalkit != __version__:
        changes.append(f"the run was made by evalkit {recipe.evalkit}, this is {__version__}")
    places = [
        place
        for place, text in recipe.sources.items()
        if (now := _text_of(Path(recipe.home, place))) is not None
        and now != text
        and kept_text(place, now) != text
    ]
    if places:
        named = ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        changes.append(f"changed since: {named}; the run keeps to the scenarios that it was made from")
    for contender in recipe.contenders:
        was = recipe.strategies.get(contender.strategy)
        try:
            if contender.foreign:
                now = find_harness(recipe.place_of(contender.harness)).fingerprint
            else:
                now = fingerprint(_strategy_of(contender, recipe.home))
        except (StrategyError, ManifestError) as error:
            changes.append(str(error))
            continue
        if was is not None and was != now:
            changes.append(f"strategy {contender.strategy!r} has changed since")
    return changes


def _text_of(place: Path) -> str | None:
    """The text of a scenario file as it is now; None where it cannot be read."""
    try:
        return place.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
