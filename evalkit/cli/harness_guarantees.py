"""What ``evalkit harnesses guarantees`` does: the runs, then the page that is made of them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from evalkit import __version__
from evalkit.cli.harness_setup import set_up_all
from evalkit.cli.kept_runs import kept_run
from evalkit.harnesses.find import GUARANTEES, find_harness, shipped
from evalkit.harnesses.manifest import Events
from evalkit.reports.harnesses.event_table import Lived, lived_of
from evalkit.reports.harnesses.guarantees import Cell, Row, cells_of, class_of, guarantees_markdown
from evalkit.runs.plan import WORKER, is_worker, worker_cannot
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.foreign_episode import lacks, why_not_expressible

COMMAND = "evalkit harnesses guarantees --plays {} --out docs/guarantees.md"


def with_events() -> tuple[str, ...]:
    """The durable worker, and the shipped harnesses that anything happens to from outside."""
    return (WORKER, *(name for name, harness in shipped().items() if harness.events != Events()))


def make_guarantees(names: tuple[str, ...], plays: int, workers: int | None, runs: Path, out: Path) -> None:
    """Run what is missing and write the page; without names of all."""
    every = names or with_events()
    set_up_all(tuple(name for name in every if not is_worker(name)))
    eventful = [scenario for scenario in load_suites() if scenario.events]
    shown = load_file(GUARANTEES)
    cells: dict[str, dict[str, tuple[Cell, ...]]] = {name: {} for name in every}
    for play in range(1, plays + 1):
        # Each play is a run of its own: what was played before is kept when more are asked for.
        for name in every:
            on = f"the guarantees, play {play} of {plays}"
            store = kept_run(shown, name, workers, runs / f"play-{play}", on)
            for scenario, cell in cells_of(store).items():
                cells[name][scenario] = (*cells[name].get(scenario, ()), cell)
            store.close()
    lived = [
        each for names_of in by_framework(every) for each in lived_with(names_of, eventful, workers, runs)
    ]
    rows = [_row(name, cells[name], eventful) for name in every]
    classes = list(map(class_of, shown))
    date = time.strftime("%Y-%m-%d", time.gmtime())
    out.parent.mkdir(parents=True, exist_ok=True)
    command = COMMAND.format(plays)
    page = guarantees_markdown(rows, classes, lived, len(eventful), command, date, __version__)
    out.write_text(page, encoding="utf-8")


def by_framework(names: Iterable[str]) -> list[list[str]]:
    """The variants of each framework."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.partition(":")[0], []).append(name)
    return list(found.values())


def _why_not(scenario: Scenario, name: str) -> str | None:
    """Why a scenario cannot be played with a harness, the durable worker included; None where it can."""
    if is_worker(name):
        return worker_cannot(scenario) or None
    return why_not_expressible(scenario, find_harness(name))


def lived_with(names: list[str], eventful: list[Scenario], workers: int | None, runs: Path) -> list[Lived]:
    """What a framework made of each scenario, with the first of its variants that can play it.

    ``names`` are those variants; what is missing is run, and kept in ``runs/library``.
    """
    framework = names[0].partition(":")[0]
    events = {scenario.name: tuple(lacks(scenario, Events())) for scenario in eventful}
    playing: dict[str, list[Scenario]] = {}
    lived = []
    for scenario in eventful:
        whys = {name: _why_not(scenario, name) for name in names}
        player = next((name for name, why in whys.items() if why is None), None)
        if player is None:
            # The variant that lacks least says it best.
            why = min(filter(None, whys.values()), key=len)
            lived.append(Lived(framework, names[0], scenario.name, events[scenario.name], why=why))
        else:
            playing.setdefault(player, []).append(scenario)
    for name, scenarios in playing.items():
        store = kept_run(scenarios, name, workers, runs / "library", "the library's events")
        lived += lived_of(store, framework, name, events)
        store.close()
    return lived


def _row(name: str, cells: dict[str, tuple[Cell, ...]], eventful: list[Scenario]) -> Row:
    plays = sum(_why_not(scenario, name) is None for scenario in eventful)
    if is_worker(name):
        return Row(name, "the durable worker", cells, (), Events(("ended",), crash=True), plays)
    harness = find_harness(name)
    return Row(name, harness.summary, cells, harness.manifest.promises, harness.events, plays)
