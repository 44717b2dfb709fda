"""``evalkit fit``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.core.names import counted, is_name
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import find_strategy

if TYPE_CHECKING:
    from evalkit.fit.bounds import Row
    from evalkit.fit.recorded_runs import Seen
    from evalkit.scenarios.population import Population


@click.command()
@click.argument("recordings", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--labels",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV: recording, complete and, if known, complete_at (turn), by (state or words).",
)
@click.option(
    "--complete-from", type=float, metavar="SCORE", help="A score or reward from here on is complete."
)
@click.option(
    "--by",
    help="What tells the task: field, prompt, or a regular expression on the recording's id with (?P<task>…) "
    "and, if known, (?P<model>…). Without it the recording's own field, else its prompt.",
)
@click.option("--reader", help="module:name of a function that reads a turn's claim; without it, rules.")
@click.option(
    "-s", "--strategy", "strategies", multiple=True, help="Bounds for this strategy; without it, all presets."
)
@click.option("--name", help="The population's name; without it, that of the file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write the population here.")
@click.option(
    "--validate", is_flag=True, help="Hold it against halves of the tasks that it was not fitted to; minutes."
)
@click.option("--splits", default=20, show_default=True, type=click.IntRange(2), help="Half-splits by task.")
@click.option(
    "--write-recordings",
    "written",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write recordings that the population draws into this folder, a file for each draw.",
)
@click.option("--json", "as_json", is_flag=True, help="Print all of it as JSON and nothing else.")
def command(
    recordings: tuple[Path, ...],
    table: Path | None,
    complete_from: float | None,
    by: str | None,
    reader: str | None,
    strategies: tuple[str, ...],
    name: str | None,
    out: Path | None,
    validate: bool,
    splits: int,
    written: Path | None,
    as_json: bool,
) -> None:
    """Say what RECORDINGs (files and folders) can tell of your agent, what they bound, and what they cannot.

    Habits are estimated over tasks, interventions that nobody tried are bounded, and what was never seen is
    assumed and named. --out keeps the population, from which `evalkit run` draws tasks.
    """
    from evalkit.fit.bounds import bounds
    from evalkit.fit.document import document
    from evalkit.fit.estimates import population_of
    from evalkit.fit.validate import PREDICTED

    called = name or (out.stem if out is not None else "population")
    if not is_name(called):
        raise UsageProblem(f"--name {called!r} is not a name; allowed: a-z, 0-9, '-', '_', '.'")
    with one_line_errors():
        chosen = [find_strategy(one) for one in dict.fromkeys(strategies or PRESETS)]
    seen = _read(recordings, table, complete_from, by, reader, [*chosen, *PREDICTED])
    source = f"{counted(len(seen), 'recording')} ({', '.join(sorted({one.harness for one in seen}))})"
    population = population_of(called, [one.life for one in seen], source, _grouped(by, seen))
    if validate:
        population = _validated(population, seen, splits)
    rows = bounds(seen, chosen)
    if out is not None:
        _write(out, document(population))
    if written is not None:
        _write_recordings(written, population)
    if as_json:
        click.echo(_json(population, rows))
        return
    _print(population, rows, seen)
    if out is not None:
        click.echo(f"population: {out}")


def _read(
    recordings: tuple[Path, ...],
    table: Path | None,
    complete_from: float | None,
    by: str | None,
    reader: str | None,
    chosen: list[Any],
) -> list[Seen]:
    from evalkit.fit.grouping import Grouping, GroupingError
    from evalkit.fit.recorded_runs import Reading
    from evalkit.transcripts.labels import LabelError, Labels
    from evalkit.transcripts.reader_accuracy import ReaderError, find_reader
    from evalkit.transcripts.turn_claims import claim_of

    try:
        labels = Labels.read(table, complete_from) if table is not None else Labels(None, complete_from)
        read = find_reader(reader) if reader is not None else claim_of
        reading = Reading(Grouping(by), labels, chosen, read)
        seen = reading.read(recordings)
    except (GroupingError, LabelError, ReaderError) as error:
        raise UsageProblem(str(error)) from None
    for line in (*map(str, reading.problems), *reading.notes):
        click.echo(f"evalkit: {line}", err=True)
    if not seen:
        raise UsageProblem("no recording could be read")
    try:
        labels.check()
    except LabelError as error:
        raise UsageProblem(str(error)) from None
    return seen


def _grouped(by: str | None, seen: list[Seen]) -> str:
    if by is not None:
        return f"by {by}"
    return "by their field, else by their prompt"


def _validated(population: Population, seen: list[Seen], splits: int) -> Population:
    from evalkit.fit.validate import UnvalidatedError, validated

    try:
        return validated(population, seen, splits)
    except UnvalidatedError as error:
        raise UsageProblem(f"--validate: {error}") from None


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageProblem(f"{file}: cannot be written: {error.strerror}") from None


def _write_recordings(folder: Path, population: Population) -> None:
    from evalkit.fit.drawn_recordings import recordings_of

    for draw in range(population.draws):
        _write(folder / f"draw-{draw:02}.json", json.dumps(list(recordings_of(population, (draw,)))) + "\n")
    click.echo(f"recordings: {folder} ({population.draws} draws)", err=True)


def _json(population: Population, rows: list[Row]) -> str:
    import msgspec

    report = {"population": population, "bounds": rows}
    return msgspec.json.format(msgspec.json.encode(report), indent=1).decode()


def _print(population: Population, rows: list[Row], seen: list[Seen]) -> None:
    from evalkit.fit import report
    from evalkit.fit.bounds import sentence
    from evalkit.reports.layout import console_of, print_prose, print_rows
    from evalkit.scenarios.population import status_line

    console = console_of()
    print_prose(console, report.head_lines(population))
    if any(not found.too_few for found in population.estimates.values()):
        print_rows(console, report.HEADS, report.parameter_rows(population))
    said = (report.too_few_line(population), *report.assumed_lines(population))
    print_prose(console, (line for line in said if line))
    if population.truth:
        assumed = "By assumption (docs/fit.md), of the recorded dones, with 90 % intervals:"
        print_prose(console, ("", sentence(seen), "", assumed))
        print_rows(console, report.BOUND_HEADS, report.bound_rows(rows, "assumed"))
        print_prose(console, ("Whatever comes, without assumption:",))
        print_rows(console, report.BOUND_HEADS, report.bound_rows(rows, "whatever comes"))
        print_prose(console, (report.unbounded_line(rows, "whatever comes"),))
    print_prose(console, (status_line(population),))
