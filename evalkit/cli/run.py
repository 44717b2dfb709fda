"""``evalkit run``."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any, get_args

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.harness_setup import set_up_all
from evalkit.cli.interrupts import exit_code, say
from evalkit.cli.live_options import check_resumed, live_run
from evalkit.cli.progress import progress_of
from evalkit.cli.run_folders import CHARTS_HELP, REPORTS, find_run, new_run, open_run
from evalkit.core.tasks import Checks
from evalkit.extras import need
from evalkit.harnesses.find import find_harness
from evalkit.media.medium import Medium, kept_medium
from evalkit.media.recordings import note_recording, recorded_scenarios, replay_medium
from evalkit.models.spending import LimitReached
from evalkit.runs.engine import MOST_WORKERS, EngineError, default_workers
from evalkit.runs.engines import find_engine
from evalkit.runs.plan import Plan, changes_since, is_worker, make_plan, plan_from, sources_of
from evalkit.runs.reruns import WHICH, Which
from evalkit.runs.reruns import again as plan_again
from evalkit.runs.run import new_folder, run_plan
from evalkit.runs.store import Store, StoreLost
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.strategies.noisy_verifiers import with_sweeps
from evalkit.strategies.presets import DEFAULT
from evalkit.strategies.registry import find_strategy, usable_names
from evalkit.wire.dialects import TITLES


@click.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    help="A strategy: preset, entry point, module:name or YAML file. Repeatable; without it, six presets.",
)
@click.option("--all", "every", is_flag=True, help="All presets, and the entry points of installed packages.")
@click.option(
    "-H",
    "--harness",
    "harnesses",
    multiple=True,
    help="A harness: worker[:STRATEGY], shipped name, folder with harness.toml, program or module:function. "
    "Repeatable.",
)
@click.option(
    "--checks", type=click.Choice(get_args(Checks)), help="Only scenarios with such acceptance checks."
)
@click.option("--seeds", default=1, show_default=True, help="Seeds of scenarios that have choices.")
@click.option(
    "--sweep",
    is_flag=True,
    help="Run each strategy with a verifier also with assumed error rates of it; use with --seeds.",
)
@click.option("--baseline", help="The strategy that the others are compared with.")
@click.option(
    "--workers", type=click.IntRange(1, MOST_WORKERS), help="Processes; without it, one for each core."
)
@click.option(
    "--engine",
    "engine_name",
    default="local",
    show_default=True,
    help="Where episodes run: local, dask (a cluster of its own), dask://HOST:PORT.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The run folder.")
@click.option(
    "--replace", is_flag=True, help="Remove the run that is in the --out folder, once this is planned."
)
@click.option("--resume", metavar="RUN", help="Go on with a run that was interrupted.")
@click.option(
    "--again",
    type=(click.Choice(WHICH), str),
    metavar="failing|void RUN",
    help="Run once more what failed in a run, or what evalkit failed at, as it was planned.",
)
@click.option(
    "--model", default="scripted", show_default=True, help="scripted, or PROVIDER:NAME of a live one."
)
@click.option(
    "--dialect",
    type=click.Choice(["anthropic", "responses", "chat"]),
    help="Serve the scripted model over HTTP, in the form of this API.",
)
@click.option("--stream", "streamed", is_flag=True, help="Ask for streamed answers.")
@click.option("--record", type=click.Path(file_okay=False), help="Keep the exchanges in this folder.")
@click.option(
    "--replay", type=click.Path(file_okay=False), help="Play the exchanges of this folder; no network."
)
@click.option("--base-url", help="Where the live model is, if not at its provider.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="A header of each live request, as gateways want them; kept nowhere. Repeatable.",
)
@click.option("--fallback-model", "fallback", help="The live model that refusals are taken to.")
@click.option("--max-usd", type=float, help="Hard spending limit of a live run, in US dollars.")
@click.option("--max-tokens", type=int, help="Hard spending limit of a live run, in tokens.")
@click.option("--prices", type=click.Path(dir_okay=False), help="A file of prices; without it, the shipped.")
@click.option(
    "--concurrency",
    type=click.IntRange(1, MOST_WORKERS),
    default=8,
    show_default=True,
    help="Live episodes side by side, in one process.",
)
@click.option(
    "--probe", type=click.IntRange(1), help="Turns in which a live run may prove that it was reachable."
)
@click.option("--fresh", is_flag=True, help="A process of its own for each episode of a program.")
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout and nothing else.")
@click.option("--charts/--no-charts", default=None, help=CHARTS_HELP)
@click.option(
    "--single-file", is_flag=True, help="Also write report.html: the whole page in one file to send."
)
def command(
    suites: tuple[str, ...],
    strategies: tuple[str, ...],
    every: bool,
    harnesses: tuple[str, ...],
    checks: str | None,
    seeds: int,
    sweep: bool,
    baseline: str | None,
    workers: int | None,
    engine_name: str,
    out: Path | None,
    replace: bool,
    resume: str | None,
    again: tuple[Which, str] | None,
    fresh: bool,
    as_json: bool,
    charts: bool | None,
    single_file: bool,
    concurrency: int,
    headers: tuple[str, ...],
    **over: Any,
) -> None:
    """Run SUITEs (YAML files, folders or families; without one, the shipped library) and report.

    Without -s and --harness six presets run: silence, finish_tool, checklist, acceptance, certificate, gate.
    The run folder holds the episodes, index.html, report.md, summary.json, episodes.csv and, where there are
    20 scenarios and more, charts.
    """
    notes: list[str] = []
    scenarios: list[Scenario] | None = None
    if charts:
        need("charts", "matplotlib")
    if replace and out is None and resume is None:
        raise UsageProblem("--replace is of the folder that --out names, and there is none")
    with one_line_errors():
        engine = find_engine(engine_name, workers or default_workers())
        if resume is not None:
            check_resumed(click.get_current_context())
            plan, store = _resumed(resume, quiet=as_json)
        elif again is not None:
            if suites or strategies or every or harnesses or checks or sweep or baseline:
                raise UsageProblem(
                    "--again takes a run as it was planned: no suite and no strategy",
                    hint=f"evalkit run --again {again[0]} {shlex.quote(again[1])}",
                )
            origin_run = open_run(again[1])
            plan = plan_again(origin_run, again[0])
            origin_run.close()
            folder = out or new_folder(REPORTS, _stamp(), plan.recipe.id)
            store = new_run(folder, plan.recipe, replace=replace)
        else:
            medium = Medium(**{**over, "probe": over["probe"] or 0})
            if medium.replay is not None:
                medium, origin = replay_medium(Path(medium.replay))
                strategies = strategies or origin.strategies
                seeds = max(seeds, origin.seeds)
                if not suites:
                    scenarios = recorded_scenarios(Path(medium.replay or ""), origin)
            if every:
                found, notes = usable_names()
                strategies = tuple(dict.fromkeys((*strategies, *found)))
            names = strategies or (() if harnesses else DEFAULT)
            if sweep:
                names = with_sweeps({name: find_strategy(name) for name in names})
            set_up_all(tuple(name for name in harnesses if not is_worker(name)))
            scenarios = _with_checks(scenarios if scenarios is not None else load_suites(suites), checks)
            plan = _planned(scenarios, names, seeds, baseline, kept_medium(medium), harnesses, fresh=fresh)
            notes += _dialect_notes(plan)
            note_recording(medium, tuple(plan.scenarios), tuple(plan.recipe.strategies), seeds)
            folder = out or new_folder(REPORTS, _stamp(), plan.recipe.id)
            store = new_run(folder, plan.recipe, replace=replace)
        resume_it = f"evalkit run --resume {shlex.quote(str(store.folder))}"
        go_on = f"go on with: {resume_it}"
        try:
            with live_run(plan, store, over, concurrency, headers) as live:
                beside = live.told if live is not None else None
                with progress_of(plan.episodes(), quiet=as_json, beside=beside) as progress:
                    if plan.recipe.medium.alone:
                        workers, engine = 1, find_engine("local", 1)
                    run_plan(plan, store, workers or default_workers(), progress, engine, live)
            _report(store, notes, as_json=as_json, charts=charts, single=single_file)
        except LimitReached as error:
            missing = plan.episodes() - store.count()
            click.echo(
                f"evalkit: stopped at {error}; {missing} of {plan.episodes()} episodes are missing; "
                f"{go_on} {str(error).partition(' ')[0]} MORE",
                err=True,
            )
            _report(store, notes, as_json=as_json, charts=charts, single=single_file, stopped=True)
            raise click.exceptions.Exit(1) from None
        except (EngineError, StoreLost) as error:
            raise UsageProblem(f"{error}; {go_on}", hint=resume_it) from None
        except OSError as error:
            told = f"{store.folder}: the report cannot be written: {error}; {go_on}"
            raise UsageProblem(told, hint=resume_it) from None
        except KeyboardInterrupt as error:
            say(f"interrupted; {go_on}")
            raise click.exceptions.Exit(exit_code(error)) from None


def _with_checks(scenarios: list[Scenario], checks: str | None) -> list[Scenario]:
    """The scenarios with such checks. UsageProblem where there are none."""
    if checks is None:
        return scenarios
    found = [scenario for scenario in scenarios if scenario.task.checks == checks]
    if not found:
        have = ", ".join(sorted({scenario.task.checks for scenario in scenarios}))
        raise UsageProblem(f"--checks {checks}: no scenario here has such checks; they have: {have}")
    return found


def _stamp() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def _planned(
    scenarios: list[Scenario],
    strategies: tuple[str, ...],
    seeds: int,
    baseline: str | None,
    medium: Medium,
    harnesses: tuple[str, ...] = (),
    *,
    fresh: bool = False,
) -> Plan:
    plan = make_plan(
        scenarios, sources_of(scenarios), strategies, seeds, baseline, medium, harnesses, fresh=fresh
    )
    if not plan.episodes():
        by_reason: dict[str, list[str]] = {}
        for name, text in plan.recipe.not_expressible.items():
            by_reason.setdefault(text, []).append(name)
        why = "; ".join(f"{_several(names)}: {text}" for text, names in by_reason.items())
        raise UsageProblem(f"nothing to run: {why or 'no scenario'}")
    return plan


def _several(names: list[str]) -> str:
    """Names in a line: the first of many, and how many more."""
    more = f" and {len(names) - 1} more" if len(names) > 2 else ""
    return names[0] + more if more else ", ".join(names)


def _dialect_notes(plan: Plan) -> list[str]:
    """What programs speak whose manifests do not say so."""
    notes = []
    for name, heard in plan.recipe.heard.items():
        if find_harness(plan.recipe.place_of(name)).declared:
            continue
        spoken = f"{TITLES[heard.dialect]}{', streamed' if heard.streamed else ''}"
        if heard.assumed:
            notes.append(f"{name} made no request in a plain task; taken for a client of {spoken}")
        else:
            notes.append(f"{name} speaks {spoken}, as its first request tells")
    return notes


def _resumed(name: str, *, quiet: bool) -> tuple[Plan, Store]:
    store = Store.open(find_run(name), write=True)
    for change in changes_since(store.recipe):
        click.echo(f"evalkit: note: {change}", err=True)
    plan = plan_from(store.recipe, whole=True)
    void = store.forget_void()
    if not quiet:
        again = f", {void} void played again" if void else ""
        click.echo(f"resuming {store.folder}: {store.count()} of {plan.episodes()} episodes are there{again}")
    return plan, store


def _report(
    store: Store, notes: list[str], *, as_json: bool, charts: bool | None, single: bool, stopped: bool = False
) -> None:
    """Write and print the report. Exit 1 where it is green over nothing, unless ``stopped`` says so."""
    from evalkit.reports.ci.evaluated import unevaluated
    from evalkit.reports.terminal import print_table
    from evalkit.reports.write import summary_text, undrawn, write_report
    from evalkit.runs.harness_warnings import oddities
    from evalkit.stats.severity import worst

    summary, more = write_report(store, charts=charts, single=single)
    reasons = unevaluated(store)
    odd, look_at = list(oddities(store)), worst(store)
    store.close()
    if as_json:
        click.echo(summary_text(summary), nl=False)
    else:
        told = [*notes, *odd, *more]
        offered = undrawn(summary, charts)
        print_table(summary, folder=str(store.folder), worst=look_at, notes=told, undrawn=offered)
    if reasons and not stopped:
        for reason in reasons:
            click.echo(f"evalkit: no evaluation: {reason}", err=True)
        raise click.exceptions.Exit(1)
