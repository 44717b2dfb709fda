"""``evalkit compare``."""

from __future__ import annotations

import click

from evalkit.cli.errors import one_line_errors
from evalkit.cli.folders import open_run


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(a: str, b: str, as_json: bool) -> None:
    """Compare run A with run B: what changed in which scenario, which episodes flipped and why.

    Only scenarios that both have, with the same text, are compared; the others are named. Differences are
    B less A, means over scenarios; the range is what the exact sign-flip test does not reject at 5 %.
    """
    from evalkit.reports.versus import Partings, versus_json, versus_lines
    from evalkit.stats.versus import versus

    with one_line_errors():
        before, after = open_run(a), open_run(b)
        found = versus(before, after)
        if as_json:
            click.echo(versus_json(found), nl=False)
        else:
            for line in versus_lines(found, Partings(before, after)):
                click.echo(line)
        before.close()
        after.close()
