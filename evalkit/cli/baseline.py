"""``evalkit baseline``."""

from __future__ import annotations

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import open_run
from evalkit.core.names import did_you_mean


@click.command()
@click.argument("run")
@click.option("-s", "--strategy", "strategies", multiple=True, help="Only this strategy. Repeatable.")
def command(run: str, strategies: tuple[str, ...]) -> None:
    """Print what RUN says of each scenario, for ``evalkit gate``: one line a scenario, to be reviewed."""
    from msgspec.structs import replace

    from evalkit.reports.ci.baseline import baseline_of, baseline_text
    from evalkit.reports.ci.evaluated import unevaluated

    with one_line_errors():
        store = open_run(run)
        baseline = baseline_of(store)
        reasons = unevaluated(store)
        store.close()
    for name in strategies:
        if name not in baseline.contenders:
            raise UsageProblem(
                f"strategy {name!r} is not in the run{did_you_mean(name, baseline.contenders)}, "
                f"which has: {', '.join(baseline.contenders)}"
            )
    if strategies:
        kept = {name: baseline.contenders[name] for name in strategies}
        baseline = replace(baseline, contenders=kept)
    click.echo(baseline_text(baseline), nl=False)
    for reason in reasons:
        click.echo(f"evalkit: no evaluation: {reason}", err=True)
    if reasons:
        raise click.exceptions.Exit(1)
