"""``evalkit transcripts``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem
from evalkit.cli.groups import Group
from evalkit.core.names import counted
from evalkit.reports.layout import print_entries

if TYPE_CHECKING:
    from evalkit.transcripts.recording import Recording

_PATHS = click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
_ONE = click.argument("file", type=click.Path(path_type=Path))
_NAME = click.option("--recording", "name", help="Which one: its id, or the part after '#'; else the first.")


@click.group(cls=Group)
def command() -> None:
    """List, show and measure recorded runs; make scenarios of them."""


@command.command("list")
@_PATHS
def list_(files: tuple[Path, ...]) -> None:
    """The recordings in FILES and folders, and what could not be read. Exit 2 where nothing could."""
    from evalkit.transcripts.problems import Problem
    from evalkit.transcripts.read import read_paths
    from evalkit.transcripts.show import head

    recordings = problems = 0
    for found in read_paths(files):
        if isinstance(found, Problem):
            problems += 1
            click.echo(f"evalkit: {found}", err=True)
        else:
            recordings += 1
            print_entries((head(found),))
    click.echo(f"{counted(recordings, 'recording')}, {counted(problems, 'problem')}")
    if not recordings:
        raise click.exceptions.Exit(2)


@command.command("formats")
def formats() -> None:
    """The formats that are read, and how each is recognised."""
    from evalkit.transcripts.catalog import ALWAYS, FORMATS

    width = max(map(len, FORMATS))
    for name, format in FORMATS.items():
        print_entries((f"{name:<{width}}  {format.what}",), width + 2)
        print_entries((f"{'':<{width}}    by {format.known_by}",), width + 4)
    print_entries((ALWAYS,))


@command.command()
@_ONE
@_NAME
def show(file: Path, name: str | None) -> None:
    """One recording of FILE, turn by turn, as judgement sees it: FILE#NAME as list has it, or the first."""
    from evalkit.transcripts.show import recording_text

    click.echo(recording_text(_find(file, name)), nl=False)


@command.command("to-scenario")
@_ONE
@_NAME
@click.option("--name", "called", help="The scenario's name; else from the recording's id.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write to a new file.")
def to_scenario(file: Path, name: str | None, called: str | None, out: Path | None) -> None:
    """A scenario skeleton from a recording of FILE: moves in order, personal details replaced."""
    from evalkit.scenarios.yaml_source import ScenarioError
    from evalkit.transcripts.incidents.to_scenario import skeleton
    from evalkit.transcripts.recording import Unreadable

    recording = _find(file, name)
    try:
        text = skeleton(recording, called or "")
    except (Unreadable, ScenarioError) as error:
        raise UsageProblem(f"{recording.id}: {' '.join(str(error).split())}") from None
    if out is None:
        click.echo(text, nl=False)
        return
    try:
        with out.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except OSError as error:
        raise UsageProblem(f"{out}: cannot be written: {error.strerror}") from None
    click.echo(f"wrote {out}; edit it, read it for personal details, then: evalkit scenarios check {out}")


@command.command("to-suite")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@_PATHS
@click.option(
    "--labels",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A CSV of labels, as for judge.",
)
@click.option(
    "--complete-from",
    type=float,
    metavar="SCORE",
    help="A score or reward from here on is complete, as for judge.",
)
@click.option("--most", type=click.IntRange(1), default=20, show_default=True, help="Scenarios, at most.")
def to_suite(
    folder: Path, files: tuple[Path, ...], table: Path | None, complete_from: float | None, most: int
) -> None:
    """A suite in FOLDER of the most different incidents in FILES, with a baseline for CI.

    An incident is a run that was called done and is labelled incomplete.
    """
    from evalkit.transcripts.incidents.to_suite import Suite
    from evalkit.transcripts.labels import LabelError, Labels
    from evalkit.transcripts.problems import Problem
    from evalkit.transcripts.read import read_paths

    if folder.exists() and any(folder.iterdir()):
        raise UsageProblem(f"{folder}: is not empty")
    try:
        labels = Labels.read(table, complete_from) if table is not None else Labels({}, complete_from)
    except LabelError as error:
        raise UsageProblem(str(error)) from None
    suite = Suite()
    for found in read_paths(files):
        if isinstance(found, Problem):
            click.echo(f"evalkit: {found}", err=True)
        else:
            suite.add(labels.apply(found))
    for note in labels.notes():
        click.echo(f"evalkit: {note}", err=True)
    try:
        labels.check()
    except LabelError as error:
        raise UsageProblem(str(error)) from None
    if not suite.incidents:
        raise UsageProblem(f"none of {suite.runs} runs was called done and is labelled incomplete")
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for name, text in suite.chosen(most):
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
        names.append(name)
    baseline = _baseline(folder)
    (folder / "baseline.json").write_text(baseline, encoding="utf-8")
    of = f"{counted(suite.incidents, 'incident')} in {counted(suite.runs, 'run')}"
    click.echo(f"{counted(len(names), 'scenario')} of {of}: {folder}")
    click.echo("read them for personal details, edit what is marked EDIT, then in CI:")
    click.echo(f"  evalkit scenarios check {folder}")
    click.echo(f"  evalkit run {folder} {_STRATEGIES_OF_SUITE} --out RUN")
    click.echo(f"  evalkit gate RUN --baseline {folder / 'baseline.json'}")


_SUITE_STRATEGIES = ("silence", "finish_tool", "keyword", "acceptance")
_STRATEGIES_OF_SUITE = " ".join(f"-s {name}" for name in _SUITE_STRATEGIES)


def _baseline(folder: Path) -> str:
    """What the strategies do on the suite today, for ``evalkit gate``."""

    from evalkit.containment.folders import temporary_folder
    from evalkit.media.medium import Medium
    from evalkit.reports.ci.baseline import baseline_of, baseline_text
    from evalkit.runs.engines import find_engine
    from evalkit.runs.plan import make_plan
    from evalkit.runs.run import run_plan
    from evalkit.runs.store import Store
    from evalkit.scenarios.suites import load_suites

    scenarios = load_suites((str(folder),))
    sources = {
        place: Path(place).read_text(encoding="utf-8")
        for place in dict.fromkeys(scenario.place for scenario in scenarios)
    }
    plan = make_plan(scenarios, sources, _SUITE_STRATEGIES, 1, None, Medium(), ())
    with temporary_folder("suite") as place:
        store = Store.create(place.folder / "run", plan.recipe)
        run_plan(plan, store, 1, None, find_engine("local", 1))
        text = baseline_text(baseline_of(store))
        store.close()
    return text


@command.command()
@click.argument("sample", type=click.Path(path_type=Path, dir_okay=False))
@_PATHS
@click.option("--reader", help="module:name of a function that reads a turn's claim; without it, rules.")
def claims(sample: Path, files: tuple[Path, ...], reader: str | None) -> None:
    """Hold the reader of claims against SAMPLE (CSV: recording, turn, claim): turns of FILES read by you."""
    from evalkit.transcripts.problems import Problem
    from evalkit.transcripts.read import read_paths
    from evalkit.transcripts.reader_accuracy import ReaderError, find_reader, measure, read_sample
    from evalkit.transcripts.turn_claims import claim_of

    def recordings() -> Iterator[Recording]:
        for found in read_paths(files):
            if isinstance(found, Problem):
                click.echo(f"evalkit: {found}", err=True)
            else:
                yield found

    try:
        labelled = read_sample(sample)
        read = find_reader(reader) if reader is not None else claim_of
        for part, measured in measure(labelled, recordings(), read).items():
            click.echo(f"{part or 'sample'}: {measured}")
            for row in measured.wrong:
                other = "a claim" if row.done else "no claim"
                click.echo(f"  misread: {row.recording} turn {row.turn} is {other}")
            if measured.missing:
                click.echo(f"  {len(measured.missing)} labelled turns are in none of the files")
    except ReaderError as error:
        raise UsageProblem(str(error)) from None


def _parts(file: Path) -> tuple[Path, str | None]:
    """File and name of what was named by its id, as ``list`` shows it: ``FILE#NAME``."""
    text = str(file)
    if not file.exists():
        for cut in (place for place, sign in enumerate(text) if sign == "#"):
            if Path(text[:cut]).is_file():
                return Path(text[:cut]), text[cut + 1 :]
    return file, None


def _find(file: Path, name: str | None) -> Recording:
    from evalkit.transcripts.problems import Problem
    from evalkit.transcripts.read import read_file

    if name is None:
        file, name = _parts(file)
    problems = []
    seen = 0
    first = None
    for found in read_file(file):
        if isinstance(found, Problem):
            problems.append(str(found))
            continue
        seen += 1
        if first is not None:
            # That there is more is said, how much is not worth reading all of it.
            click.echo(f"evalkit: {file}: holds more; this is the first, {first.id}", err=True)
            return first
        if name in (found.id, found.id.partition("#")[2]):
            return found
        if name is None:
            first = found
    if first is not None:
        return first
    if seen:
        raise UsageProblem(
            f"{file}: no recording {name!r} among its {seen}; see: evalkit transcripts list {file}"
        )
    raise UsageProblem(problems[0] if problems else f"{file}: holds no recording")
