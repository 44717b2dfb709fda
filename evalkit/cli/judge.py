"""``evalkit judge``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import REPORTS
from evalkit.containment.workers import WorkerDied
from evalkit.core.names import counted
from evalkit.runs.engine import MOST_WORKERS
from evalkit.runs.run import new_folder
from evalkit.strategies.registry import find_strategy, strategy_names


@click.command()
@click.argument("transcripts", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-s",
    "--strategy",
    "strategies",
    multiple=True,
    help="A strategy: preset, entry point, module:name or YAML file. Repeatable; without it, all presets.",
)
@click.option(
    "--labels",
    "table",
    type=click.Path(path_type=Path, dir_okay=False),
    help="CSV: recording, complete and, if known, complete_at (turn), by (state or words).",
)
@click.option(
    "--complete-from",
    type=float,
    metavar="SCORE",
    help="A score or reward from here on is complete; without it, one above 1 is no label.",
)
@click.option("--reader", help="module:name of a function that reads a turn's claim; without it, rules.")
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST_WORKERS),
    default=1,
    show_default=True,
    help="Processes that judge, beside the one that reads; the report is the same for any number.",
)
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The folder for the report.")
@click.option("--page/--no-page", default=True, help="Write index.html: all runs, to filter and to label.")
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout and nothing else.")
def command(
    transcripts: tuple[Path, ...],
    strategies: tuple[str, ...],
    table: Path | None,
    complete_from: float | None,
    reader: str | None,
    jobs: int,
    out: Path | None,
    page: bool,
    as_json: bool,
) -> None:
    """Say for recorded runs where they stopped, whether that was right, and what strategies would have done.

    TRANSCRIPTs are files and folders; docs/judge.md lists the formats. The folder gets index.html,
    report.md, episodes.csv (a row for each recording and strategy) and summary.json. Exit 1 where of the
    strategies that were named none can be judged on any recording.
    """
    from evalkit.transcripts.judging.run import Judgement, judge_paths
    from evalkit.transcripts.labels import LabelError, Labels
    from evalkit.transcripts.reader_accuracy import ReaderError, find_reader
    from evalkit.transcripts.turn_claims import claim_of

    with one_line_errors():
        chosen = [find_strategy(name) for name in dict.fromkeys(strategies or strategy_names())]
    doubled = {strategy.name for strategy in chosen if [s.name for s in chosen].count(strategy.name) > 1}
    if doubled:
        raise UsageProblem(
            f"two strategies are named {', '.join(sorted(doubled))}; give them names of their own"
        )
    try:
        labels = Labels.read(table, complete_from) if table is not None else Labels(None, complete_from)
        read = find_reader(reader) if reader is not None else claim_of
        folder = out or new_folder(REPORTS, time.strftime("%Y%m%d-%H%M%S"), "judged")
        summary = judge_paths(transcripts, Judgement(folder, chosen, read, page=page), labels, jobs)
    except (LabelError, ReaderError, WorkerDied) as error:
        raise UsageProblem(str(error)) from None
    except OSError as error:
        raise UsageProblem(f"{error.filename}: cannot be written: {error.strerror}") from None
    for line in (*summary["problems"], *summary["notes"]):
        click.echo(f"evalkit: {line}", err=True)
    if not summary["run"]["recordings"]:
        raise UsageProblem("no recording could be read")
    try:
        labels.check()
    except LabelError as error:
        raise UsageProblem(str(error)) from None
    if as_json:
        click.echo((folder / "summary.json").read_text(encoding="utf-8"), nl=False)
    else:
        _print(summary)
        click.echo(f"report: {folder / ('index.html' if page else 'report.md')}")
    # The first row is what was recorded.
    if strategies and not any(row["judged"] for row in summary["rows"][1:]):
        named = ", ".join(strategy.name for strategy in chosen)
        click.echo(f"evalkit: nothing was judged: no recording says what {named} needs", err=True)
        raise click.exceptions.Exit(1)


def _print(summary: dict[str, Any]) -> None:
    from evalkit.reports.layout import console_of, print_prose, print_rows
    from evalkit.transcripts.judging.answer import HEADS, caption, sentences, table

    answer = summary["answer"]
    why = {row["strategy"]: "; ".join(row["why_unknown"]) for row in summary["rows"] if row["why_unknown"]}
    console = console_of()
    print_prose(console, sentences(answer, why, summary["claimed"]))
    rows = table(answer)
    if rows and answer["labelled"]:
        print_rows(console, HEADS, rows)
        print_prose(console, (caption(answer),))
    run = summary["run"]
    labels = ", ".join(f"{count} {name}" for name, count in run["labels"].items())
    read = (
        f"{counted(run['recordings'], 'recording')} from {counted(run['files'], 'file')}, "
        f"{counted(run['problems'], 'problem')}; "
        f"labels: {labels}; strategies part on {summary['parted']['count']}."
    )
    print_prose(console, (read,))
