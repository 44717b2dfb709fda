"""``evalkit judge``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.folders import REPORTS
from evalkit.runs.run import new_folder
from evalkit.strategies.library import find_strategy, strategy_names


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
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="The folder for the report.")
@click.option("--json", "as_json", is_flag=True, help="Print summary.json on stdout and nothing else.")
def command(
    transcripts: tuple[Path, ...],
    strategies: tuple[str, ...],
    table: Path | None,
    complete_from: float | None,
    reader: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Say for recorded runs where they stopped, whether that was right, and what strategies would have done.

    TRANSCRIPTs are files and folders; docs/judge.md lists the formats. The folder gets report.md,
    episodes.csv (a row for each recording and strategy) and summary.json.
    """
    from evalkit.transcripts.claims import claim_of
    from evalkit.transcripts.labels import LabelError, Labels
    from evalkit.transcripts.measure import ReaderError, find_reader
    from evalkit.transcripts.run import Judgement, judge_paths

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
        summary = judge_paths(transcripts, Judgement(folder, chosen, read), labels)
    except (LabelError, ReaderError) as error:
        raise UsageProblem(str(error)) from None
    except OSError as error:
        raise UsageProblem(f"{error.filename}: cannot be written: {error.strerror}") from None
    for line in (*summary["problems"], *summary["notes"]):
        click.echo(f"evalkit: {line}", err=True)
    if not summary["run"]["recordings"]:
        raise UsageProblem("no recording could be read")
    if as_json:
        click.echo((folder / "summary.json").read_text(encoding="utf-8"), nl=False)
    else:
        _print(summary)
        click.echo(f"report: {folder / 'report.md'}")


def _print(summary: dict[str, Any]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from evalkit.transcripts.report import rate

    console = Console()
    if not console.is_terminal:
        console = Console(width=170)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("strategy", no_wrap=True)
    heads = ("judged", "before end", "at end", "beyond", "false done", "premature", "cut short")
    for name in (*heads, "over-continuation", "unclosed", "saved turns"):
        table.add_column(name, justify="right")
    unjudged = []
    for row in summary["rows"]:
        if not row["judged"]:
            unjudged.append(row)
            continue
        stops, saved = row["stops"], row["saved_turns"]
        table.add_row(
            row["strategy"],
            f"{row['judged']} of {row['recordings']}",
            *(str(stops[name]) for name in ("before", "at_end", "beyond")),
            *(rate(row[name]) for name in ("false_done", "premature_stop", "cut_short")),
            *(rate(row[name]) for name in ("over_continuation", "unclosed")),
            str(saved["sum"]) if saved["base"] else "n/a",
        )
    console.print(table)
    run = summary["run"]
    labels = ", ".join(f"{count} {name}" for name, count in run["labels"].items())
    click.echo(
        f"{run['recordings']} recordings from {run['files']} files, {run['problems']} problems; "
        f"labels: {labels}; strategies part on {summary['parted']['count']}."
    )
    for row in unjudged:
        why = "; ".join(row["why_unknown"])
        click.echo(f"not judged: {row['strategy']}: {why}")
