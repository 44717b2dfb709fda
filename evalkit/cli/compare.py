"""``evalkit compare``."""

from __future__ import annotations

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import open_run


@click.command()
@click.argument("runs", nargs=-1, metavar="A B...")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(runs: tuple[str, ...], as_json: bool) -> None:
    """Compare run A with run B: what changed in which scenario, which episodes flipped and why.

    Only scenarios that both have, with the same text, are compared; the others are named. Differences are
    B less A, means over scenarios; the range is what the exact sign-flip test does not reject at 5 %. Of
    three runs and more each is compared with the first, in short. Exit 1 where nothing can be compared.
    """
    from evalkit.reports.layout import print_entries
    from evalkit.reports.run_comparison import (
        Partings,
        several_json,
        several_lines,
        versus_json,
        versus_lines,
    )
    from evalkit.stats.run_comparison import together, versus

    if len(runs) < 2:
        raise UsageProblem(f"expected two runs or more, got {len(runs)}")
    with one_line_errors():
        first, *others = (open_run(run) for run in runs)
        found = [versus(first, other) for other in others]
        if len(others) == 1:
            if as_json:
                click.echo(versus_json(found[0]), nl=False)
            else:
                print_entries(versus_lines(found[0], Partings(first, others[0])))
        else:
            several = together(found)
            if as_json:
                click.echo(several_json(several), nl=False)
            else:
                print_entries(several_lines(several))
        for store in (first, *others):
            store.close()
    if not any(each.shared and each.matches for each in found):
        click.echo("evalkit: nothing was compared", err=True)
        raise click.exceptions.Exit(1)
