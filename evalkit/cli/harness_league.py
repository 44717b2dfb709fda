"""What ``evalkit harnesses league`` does: the runs, then what is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from evalkit.cli.errors import UsageProblem
from evalkit.cli.harness_guarantees import by_framework, lived_with, with_events
from evalkit.cli.harness_setup import set_up_all
from evalkit.cli.kept_runs import kept_run
from evalkit.core.toml import toml_of
from evalkit.harnesses.find import BEHAVIOURS, SHIPPED, find_harness, shipped
from evalkit.harnesses.manifest import Events, Harness
from evalkit.reports.harnesses.league.figures import (
    DELEGATION,
    Behaviour,
    League,
    Row,
    keep_league,
    kept_league,
    library_of,
    life_of,
    merged,
    played_again,
    row_of,
)
from evalkit.reports.harnesses.league.files import write_league
from evalkit.runs.plan import WORKER, is_worker
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.moves import DelegateMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scenarios.suites import load_suites
from evalkit.wire.dialects import TITLES

#: What the providers' documentation says of each behaviour.
DOCUMENTED = SHIPPED / "documented.toml"


def all_of_the_league() -> tuple[str, ...]:
    """The shipped harnesses, and the durable worker."""
    return (*shipped(), WORKER)


def make_league(
    names: tuple[str, ...], library: bool, workers: int | None, out: Path, only: tuple[str, ...] = ()
) -> list[str]:
    """Run what is missing of the league and write it; notes on what was left out.

    Rows that are there and are not named stay as they are. Each row is kept when it is whole, so that an
    interrupt costs the one that is being played. ``only`` are suites or scenarios of the library: nothing
    else is played, and of the rows nothing else changes.
    """
    league = kept_league(out)
    set_up_all(tuple(name for name in names if not is_worker(name)))
    told, scenarios = _told(), load_suites(only) if library else []
    families = {scenario.name: _family(scenario) for scenario in scenarios}
    # A run of a part is not to stand in the way of the whole one.
    runs = out / "runs" / "part" if only else out / "runs"
    for name in filter(_has_a_row, names):
        old = league.rows.get(name) if league is not None else None
        row = _part(name, scenarios, workers, runs, old) if only else _row(name, scenarios, workers, runs)
        if old is not None and not library:
            row = msgspec.structs.replace(row, library=old.library)
        league = _kept(League(told, {name: row}, families), out)
    eventful = [scenario for scenario in scenarios if scenario.events]
    for variants in _living(names) if eventful else ():
        framework = variants[0].partition(":")[0]
        life = life_of(lived_with(variants, eventful, workers, runs / "life"))
        old_life = league.lives.get(framework) if league is not None and only else None
        life = played_again(old_life, life) if old_life is not None else life
        league = _kept(League(told, {}, families, {framework: life}), out)
    return write_league(league, out) if league is not None else []


def _kept(new: League, out: Path) -> League:
    """The league with what is new, as it is kept."""
    # Read anew: another row may have been played meanwhile.
    league = merged(kept_league(out), new)
    keep_league(league, out)
    return league


def _family(scenario: Scenario) -> str:
    """A scenario's family; those in which the model hands work to a child agent are one of their own."""
    hands_on = any(isinstance(move, DelegateMove) for move in walk(scenario.moves))
    return DELEGATION if hands_on else scenario.family


def _eventful(name: str) -> bool:
    return is_worker(name) or find_harness(name).events != Events()


def _has_a_row(name: str) -> bool:
    """Whether a harness is played on behaviours and library: variants for events are there for those."""
    return not is_worker(name) and not (":" in name and _eventful(name))


def _living(names: Iterable[str]) -> list[list[str]]:
    """Of each framework that is named and that anything happens to, all variants."""
    eventful = [name for name in names if _eventful(name)]
    named = {name.partition(":")[0] for name in eventful}
    every = by_framework(dict.fromkeys((*with_events(), *eventful)))
    return [variants for variants in every if variants[0].partition(":")[0] in named]


def _row(name: str, scenarios: list[Scenario], workers: int | None, runs: Path) -> Row:
    """A harness's row, played on the behaviours and on the library where there is any."""
    harness = find_harness(name)
    behaviours = kept_run(load_file(BEHAVIOURS), name, workers, runs / "behaviours", "the behaviours")
    whole = kept_run(scenarios, name, workers, runs / "library", "the library") if scenarios else None
    heard = behaviours.recipe.heard.get(name)
    harness = msgspec.structs.replace(harness, heard=heard) if heard is not None else harness
    row = row_of(
        behaviours,
        whole,
        summary=harness.summary,
        api=TITLES[harness.dialect],
        streamed=harness.streamed,
        versions=harness.pins,
        caps=harness.caps,
        folder=_shipped_in(harness),
    )
    for store in filter(None, (behaviours, whole)):
        store.close()
    return row


def _part(name: str, scenarios: list[Scenario], workers: int | None, runs: Path, old: Row | None) -> Row:
    """A row of which some scenarios of the library are played again."""
    if old is None:
        raise UsageProblem(f"--only: {name} has no row yet; play it once without")
    store = kept_run(scenarios, name, workers, runs / "library", "a part of the library")
    again = {scenario.name for scenario in scenarios}
    others = {scenario: result for scenario, result in old.library.items() if scenario not in again}
    row = msgspec.structs.replace(old, library={**others, **library_of(store)})
    store.close()
    return row


def _shipped_in(harness: Harness) -> str:
    return f"harnesses/{harness.folder.name}" if harness.folder.parent == SHIPPED else ""


def _told() -> tuple[Behaviour, ...]:
    documented = toml_of(DOCUMENTED.read_bytes())
    return tuple(
        Behaviour(scenario.name, scenario.summary, **documented[scenario.name])
        for scenario in load_suites((str(BEHAVIOURS),))
    )
