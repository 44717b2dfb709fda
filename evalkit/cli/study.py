"""``evalkit study``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from evalkit.cli.errors import one_line_errors
from evalkit.cli.groups import Group
from evalkit.extras import need

if TYPE_CHECKING:
    from evalkit.experiments.studies.study import Study

_OUT = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write page, text, figures and chart to this folder.",
)
_PNG = click.option("--png", is_flag=True, help="Write the chart as PNG as well.")
_WORKERS = click.option(
    "--workers", type=click.IntRange(1), help="Processes; without it as many as there are cores."
)

_ON = click.option("--on", multiple=True, metavar="SUITE", help="What the programs play; without it SUITEs.")


def _output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    return _OUT(_PNG(_WORKERS(command)))


@click.group(cls=Group)
def command() -> None:
    """Strategies in settings that are made for one question; each prints what it found."""


@command.command()
@click.option(
    "--episodes",
    type=click.IntRange(10),
    default=100_000,
    show_default=True,
    help="Of each line of the chart.",
)
@_output_options
def looks(episodes: int, out: Path | None, png: bool, workers: int | None) -> None:
    """Repeated looks: false dones of a check that is sometimes fooled, by how often it is asked."""
    from evalkit.experiments.studies.looks import EPISODES, looks_study

    asked = () if episodes == EPISODES else ("--episodes", str(episodes))
    _show_and_write(looks_study(episodes, _processes(workers)), out, png, *asked)


@command.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("-H", "--harness", "harnesses", multiple=True, help="Also try these programs.")
@_ON
@click.option(
    "--within",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Turns in which giving up is timely.",
)
@_output_options
def stuck(
    suites: tuple[str, ...],
    harnesses: tuple[str, ...],
    on: tuple[str, ...],
    within: int,
    out: Path | None,
    png: bool,
    workers: int | None,
) -> None:
    """Masked tools: which presets and programs give up on work that nobody can finish, and how soon.

    On the masked twins of SUITEs, or on SUITEs that are masked already; without one, of the library.
    """
    from evalkit.experiments.studies.stuck import WITHIN, stuck_study
    from evalkit.scenarios.suites import load_suites
    from evalkit.strategies.presets import PRESETS

    _need_server(harnesses)
    with one_line_errors():
        presets = [preset.strategy for preset in PRESETS.values()]
        scenarios = load_suites(suites)
        some = load_suites(on) if on else None
        study = stuck_study(scenarios, presets, harnesses, some, within, _processes(workers))
    asked = () if within == WITHIN else ("--within", str(within))
    _show_and_write(study, out, png, *suites, *_options("-H", harnesses), *_options("--on", on), *asked)


@command.command("giving-up")
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@_output_options
def giving_up(suites: tuple[str, ...], out: Path | None, png: bool, workers: int | None) -> None:
    """Giving up in time: turns saved on work that nobody can finish, against finished work that is lost.

    On SUITEs with full checks and their masked twins; without one, on those of the library.
    """
    from evalkit.experiments.studies.giving_up import giving_up_study
    from evalkit.scenarios.suites import load_suites

    with one_line_errors():
        study = giving_up_study(load_suites(suites), _processes(workers))
    _show_and_write(study, out, png, *suites)


@command.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("-H", "--harness", "harnesses", multiple=True, help="Also order these programs.")
@_ON
@_output_options
def thresholds(
    suites: tuple[str, ...],
    harnesses: tuple[str, ...],
    on: tuple[str, ...],
    out: Path | None,
    png: bool,
    workers: int | None,
) -> None:
    """The order of all presets with each threshold of over-continuation halved and doubled: Kendall's tau.

    On SUITEs; without one, on the shipped library.
    """
    from evalkit.experiments.studies.thresholds import thresholds_study
    from evalkit.scenarios.suites import load_suites
    from evalkit.strategies.presets import PRESETS

    _need_server(harnesses)
    with one_line_errors():
        scenarios = load_suites(suites)
        some = load_suites(on) if on else None
        presets = [preset.strategy for preset in PRESETS.values()]
        study = thresholds_study(scenarios, presets, harnesses, some, _processes(workers))
    _show_and_write(study, out, png, *suites, *_options("-H", harnesses), *_options("--on", on))


def _need_server(harnesses: tuple[str, ...]) -> None:
    """Programs come last, behind minutes of strategies: what they need is looked for first."""
    if harnesses:
        need("a study of programs", "h11")


def _options(name: str, values: tuple[str, ...]) -> list[str]:
    return [word for value in values for word in (name, value)]


def _processes(workers: int | None) -> int:
    from evalkit.runs.engine import default_workers

    return workers or default_workers()


def _print(study: Study) -> None:
    """A study's page: its prose as wide as the terminal, its tables as they are."""
    from evalkit.reports.layout import console_of, print_prose

    console = console_of()
    for place, part in enumerate(study.markdown.strip().split("\n\n")):
        if place:
            click.echo()
        if part.startswith("|"):
            click.echo(part)
        else:
            print_prose(console, (part,))


def _show_and_write(study: Study, out: Path | None, png: bool, *asked: str) -> None:
    """Print a study, and write it where asked; ``asked`` is what its command was given beside it."""
    study = msgspec.structs.replace(study, command=" ".join((study.command, *asked)))
    _print(study)
    if out is None:
        return
    from evalkit.reports.study_page import write_study

    for note in write_study(study, out, ("svg", "png") if png else ("svg",)):
        click.echo(note, err=True)
    click.echo(f"wrote {out}", err=True)
