"""``evalkit report``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import CHARTS_HELP, open_run
from evalkit.extras import need
from evalkit.runs.store import Store


@click.command()
@click.argument("run")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write it to this folder, not to RUN's own.",
)
@click.option("--charts/--no-charts", default=None, help=CHARTS_HELP)
@click.option(
    "--transcripts",
    type=click.IntRange(0),
    default=6000,
    show_default=True,
    help="Episodes whose transcripts are written; of the rest the page names the command.",
)
@click.option("--png", is_flag=True, help="Write the charts as PNG as well.")
@click.option("--pdf", is_flag=True, help="Write the charts as PDF as well.")
@click.option(
    "--single-file", is_flag=True, help="Also write report.html: the whole page in one file to send."
)
@click.option(
    "--otel", is_flag=True, help="Also send the episodes as OpenTelemetry spans and metrics (OTLP)."
)
def command(
    run: str,
    out: Path | None,
    charts: bool | None,
    transcripts: int,
    png: bool,
    pdf: bool,
    single_file: bool,
    otel: bool,
) -> None:
    """Write index.html, report.md, charts, summary.json and episodes.csv of RUN again, from its episodes."""
    from evalkit.reports.terminal import print_table
    from evalkit.reports.write import undrawn, write_report
    from evalkit.stats.severity import worst
    from evalkit.stats.summary import summarize

    if charts is None and (png or pdf):
        charts = True
    if charts:
        need("charts", "matplotlib")
    started, busy = time.perf_counter(), _cpu()
    kinds = ("svg", *(kind for kind, asked in (("png", png), ("pdf", pdf)) if asked))
    with one_line_errors():
        store = open_run(run)
        try:
            summary, notes = write_report(
                store, charts=charts, transcripts=transcripts, kinds=kinds, single=single_file, into=out
            )
        except OSError as error:
            print_table(summarize(store), folder=str(store.folder), report="", notes=[])
            raise UsageProblem(
                f"{out or store.folder}: the report cannot be written: {error}; elsewhere: "
                f"evalkit report {run} --out DIR"
            ) from None
        if otel:
            notes.append(_sent(store))
        episodes, look_at = store.count(), worst(store)
        store.close()
    report = str(out) if out else None
    offered = undrawn(summary, charts)
    print_table(summary, folder=str(store.folder), report=report, worst=look_at, notes=notes, undrawn=offered)
    took, worked = time.perf_counter() - started, _cpu() - busy
    click.echo(f"{episodes:,} episodes in {took:.1f} s ({worked:.1f} s of CPU){_memory()}")


def _sent(store: Store) -> str:
    from evalkit.reports.otel import OtelMissing, exporting, send_run

    try:
        with exporting() as telemetry:
            return f"sent {send_run(store, telemetry):,} spans, and the counters of all episodes"
    except OtelMissing as error:
        raise UsageProblem(str(error)) from None


def _cpu() -> float:
    """Seconds of CPU so far, of this process and of the workers that have ended."""
    return sum(os.times()[:4])


def _memory() -> str:
    """The most memory that this process, or one of its workers, has held; nothing where it is not told."""
    try:
        import resource
    except ImportError:
        return ""
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    worker = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit
    return f", {own / 1e6:,.0f} MB (a worker: {worker / 1e6:,.0f} MB)"
