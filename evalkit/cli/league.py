"""What ``evalkit harnesses league`` does: the runs, then what is made of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from evalkit.cli.harnesses import BEHAVIOURS, pins
from evalkit.cli.progress import progress_of
from evalkit.cli.setting_up import set_up_all
from evalkit.harnesses.find import find_harness
from evalkit.reports.league import league_of
from evalkit.reports.league_files import write_league
from evalkit.runs.engine import default_workers
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, Store
from evalkit.scenarios.suites import load_suites

COMMAND = "make league"


def make_league(names: tuple[str, ...], library: bool, workers: int | None, out: Path) -> list[str]:
    """Run what is missing of the league and write it; notes on what was left out."""
    set_up_all(names)
    behaviours = [_run((str(BEHAVIOURS),), name, workers, out / "runs" / "behaviours") for name in names]
    whole = [_run((), name, workers, out / "runs" / "library") for name in names] if library else []
    found = {name: find_harness(name) for name in names}
    told = tuple((scenario.name, scenario.summary) for scenario in load_suites((str(BEHAVIOURS),)))
    notes = write_league(
        league_of(
            behaviours,
            whole,
            {name: pins(harness) for name, harness in found.items() if not harness.variant},
            {name: harness.summary for name, harness in found.items()},
            told,
            COMMAND,
        ),
        out,
    )
    for store in (*behaviours, *whole):
        store.close()
    return notes


def _run(suites: tuple[str, ...], name: str, workers: int | None, folder: Path) -> Store:
    """A harness's run; one that is there is gone on with, or made anew where what it is of has changed."""
    click.echo(f"{name} on {'the library' if not suites else 'the behaviours'}", err=True)
    plan, store = _planned(suites, name, folder / name.replace(":", "-"))
    with progress_of(plan.episodes(), quiet=False) as progress:
        run_plan(plan, store, workers or default_workers(), progress)
    return store


def _planned(suites: tuple[str, ...], name: str, folder: Path) -> tuple[Plan, Store]:
    scenarios = load_suites(suites)
    places = dict.fromkeys(scenario.place for scenario in scenarios)
    sources = {place: Path(place).read_text(encoding="utf-8") for place in places}
    plan = make_plan(scenarios, sources, (), 1, harnesses=(name,))
    if (folder / FILE).is_file():
        store = Store.open(folder, write=True)
        if store.recipe.id == plan.recipe.id:
            return plan, store
        store.close()
        shutil.rmtree(folder)
    return plan, Store.create(folder, plan.recipe)
