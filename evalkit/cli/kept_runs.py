"""Runs that a page is made of: kept, gone on with, made anew where what they are of has changed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import click

from evalkit.cli.progress import progress_of
from evalkit.runs.engine import default_workers
from evalkit.runs.plan import Plan, make_plan, sources_of
from evalkit.runs.run import run_plan
from evalkit.runs.store import FILE, Store
from evalkit.scenarios.scenario import Scenario


def kept_run(scenarios: list[Scenario], name: str, workers: int | None, folder: Path, on: str) -> Store:
    """A harness's run on scenarios in ``folder``, whole; ``on`` says what they are."""
    click.echo(f"{name} on {on}", err=True)
    # A program goes by its path, which is no place to keep or to remove anything.
    plan, store = _planned(scenarios, name, folder / re.sub(r"[^\w.-]+", "-", name).strip("-."))
    with progress_of(plan.episodes(), quiet=False) as progress:
        run_plan(plan, store, workers or default_workers(), progress)
    return store


def _planned(scenarios: list[Scenario], name: str, folder: Path) -> tuple[Plan, Store]:
    plan = make_plan(scenarios, sources_of(scenarios), (), 1, harnesses=(name,))
    if (folder / FILE).is_file():
        store = Store.open(folder, write=True)
        if store.recipe.id == plan.recipe.id:
            return plan, store
        store.close()
        shutil.rmtree(folder)
    return plan, Store.create(folder, plan.recipe)
