"""``evalkit run``."""

from __future__ import annotations

import time
from pathlib import Path

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.folders import REPORTS, find_run
from evalkit.cli.progress import progress_of
from evalkit.runs.engine import default_workers
from evalkit.runs.plan import Plan, changes_since, make_plan, plan_from
from evalkit.runs.run import new_folder, run_plan
from evalkit.runs.store import Store
from evalkit.scenarios.suites import load_suites
from evalkit.strategies.library import strategy_names


@click.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    help="A strategy: preset, entry point, module:name or YAML file. Repeatable; without it, all presets.",
)
@click.option("--seeds", default=1, show_default=True, help="Seeds of scenarios that have choices.")
@click.option("--baseline", help="The strategy that the others are compared with.")
@click.option("--workers", type=click.IntRange(1), help="Processes; without it, one for each core.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The run folder.")
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout and nothing else.")
@click.option("--charts/--no-charts", default=True, help="Draw the charts.")
def command(
    suites: tuple[str, ...],
    strategies: tuple[str, ...],
    seeds: int,
    baseline: str | None,
    workers: int | None,
    out: Path | None,
    resume: str | None,
    as_json: bool,
    charts: bool,
) -> None:
    """Run SUITEs (YAML files, folders or families; without one, the shipped library) and report.

    The run folder holds the episodes, summary.json, episodes.csv, report.md and charts.
    """
    with one_line_errors():
        if resume is not None:
            if suites or strategies or out or baseline:
                raise UsageProblem("--resume takes a run as it was planned: no suite, strategy or --out")
            plan, store = _resumed(resume, quiet=as_json)
        else:
            plan = _planned(suites, strategies, seeds, baseline)
            folder = out or new_folder(REPORTS, time.strftime("%Y%m%d-%H%M%S"), plan.recipe.id)
            store = Store.create(folder, plan.recipe)
        try:
            with progress_of(plan.episodes(), quiet=as_json) as progress:
                run_plan(plan, store, workers or default_workers(), progress)
        except KeyboardInterrupt:
            click.echo(f"\ninterrupted; go on with: evalkit run --resume {store.folder}", err=True)
            raise click.exceptions.Exit(130) from None
        _report(store, as_json=as_json, charts=charts)


def _planned(suites: tuple[str, ...], strategies: tuple[str, ...], seeds: int, baseline: str | None) -> Plan:
    scenarios = load_suites(suites)
    sources = {
        place: Path(place).read_text(encoding="utf-8")
        for place in dict.fromkeys(scenario.place for scenario in scenarios)
    }
    plan = make_plan(scenarios, sources, strategies or strategy_names(), seeds, baseline)
    if not plan.episodes():
        why = "; ".join(f"{name}: {text}" for name, text in plan.recipe.not_expressible.items())
        raise UsageProblem(f"nothing to run: {why or 'no scenario'}")
    return plan


def _resumed(name: str, *, quiet: bool) -> tuple[Plan, Store]:
    store = Store.open(find_run(name), write=True)
    for change in changes_since(store.recipe):
        click.echo(f"evalkit: note: {change}", err=True)
    plan = plan_from(store.recipe)
    if not quiet:
        click.echo(f"resuming {store.folder}: {store.count()} of {plan.episodes()} episodes are there")
    return plan, store


def _report(store: Store, *, as_json: bool, charts: bool) -> None:
    from evalkit.reports.table import print_table
    from evalkit.reports.write import summary_text, write_report

    summary, notes = write_report(store, charts=charts)
    store.close()
    if as_json:
        click.echo(summary_text(summary), nl=False)
        return
    print_table(summary)
    for note in notes:
        click.echo(note)
    click.echo(f"report: {store.folder / 'report.md'}")
