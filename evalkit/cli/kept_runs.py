"""Runs that a page is made of: kept, gone on with, made anew where what they are of has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from evalkit.cli.progress import progress_of
from evalkit.runs.engine import default_workers
from evalkit.runs.plan import Plan, make_plan
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, Store
from evalkit.scenarios.suites import load_suites


def kept_run(suites: tuple[str, ...], name: str, workers: int | None, folder: Path, on: str) -> Store:
    """A harness's run on suites in ``folder``, whole; ``on`` says what they are."""
    click.echo(f"{name} on {on}", err=True)
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
