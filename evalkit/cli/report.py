"""``evalkit report``."""

from __future__ import annotations

import click

from evalkit.cli.errors import one_line_errors
from evalkit.cli.folders import open_run


@click.command()
@click.argument("run")
@click.option("--charts/--no-charts", default=True, help="Draw the charts.")
def command(run: str, charts: bool) -> None:
    """Write summary.json, episodes.csv, report.md and charts of RUN again, from its episodes."""
    from evalkit.reports.table import print_table
    from evalkit.reports.write import write_report

    with one_line_errors():
        store = open_run(run)
        summary, notes = write_report(store, charts=charts)
        store.close()
    print_table(summary)
    for note in notes:
        click.echo(note)
    click.echo(f"report: {store.folder / 'report.md'}")
