"""``evalkit plan``."""

from __future__ import annotations

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import open_run

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command()
@click.option("--detect", type=_SHARE, required=True, help="The difference of 'correct' to find, as 0.05.")
@click.option("--power", type=_SHARE, default=0.8, show_default=True, help="The chance to find it.")
@click.option("--alpha", type=_SHARE, default=0.05, show_default=True, help="Of the two-sided test.")
@click.option(
    "--comparisons", type=click.IntRange(1), default=1, show_default=True, help="Tests shown together."
)
@click.option("--pilot", metavar="RUN", help="Take the variance from this run.")
@click.option("-s", "--strategy", "strategies", multiple=True, help="Of the pilot: one or two strategies.")
@click.option(
    "--discordant",
    type=_SHARE,
    default=0.3,
    show_default=True,
    help="Without a pilot: the share of scenarios on which two strategies differ.",
)
def command(
    detect: float,
    power: float,
    alpha: float,
    comparisons: int,
    pilot: str | None,
    strategies: tuple[str, ...],
    discordant: float,
) -> None:
    """How many scenarios and seeds a paired comparison of two strategies needs.

    With --pilot, the variance between scenarios and between seeds is the pilot's: of the two strategies
    named, of the one named and the run's baseline, or of the pair with the baseline that varies most.
    """
    from evalkit.stats.pilot_variance import pilot_pair
    from evalkit.stats.power import NotPlannable, assumed_variance, designs

    try:
        if pilot is None:
            if strategies:
                raise UsageProblem("--strategy names strategies of a --pilot")
            variance = assumed_variance(detect, discordant)
        else:
            with one_line_errors():
                store = open_run(pilot)
            try:
                variance = pilot_pair(store, strategies)
            finally:
                store.close()
    except NotPlannable as error:
        click.echo(str(error))
        return
    except KeyError as error:
        raise UsageProblem(str(error.args[0])) from None
    found = designs(detect, power, variance, alpha=alpha, comparisons=comparisons)
    click.echo(
        f"to find a difference of {100 * detect:g} points with power {power:g} at alpha {alpha:g}", nl=False
    )
    click.echo(f" over {comparisons} comparisons" if comparisons > 1 else "")
    click.echo(
        f"variance of a scenario's paired difference: {variance.between:.4f} between scenarios", nl=False
    )
    seeds = f"{variance.within:.4f} between seeds" if variance.seeds_known else "between seeds unknown"
    click.echo(f", {seeds} ({variance.source})")
    click.echo(f"{'seeds':>6} {'scenarios':>10} {'episodes':>10}")
    fewest = min(found, key=lambda design: design.episodes)
    for design in found:
        mark = "  fewest episodes" if design is fewest and len(found) > 1 else ""
        click.echo(f"{design.seeds:>6} {design.scenarios:>10} {design.episodes:>10}{mark}")
    if not variance.seeds_known:
        click.echo("the pilot has one seed a scenario: what more seeds would bring is unknown")
    elif variance.within <= 0:
        click.echo("more seeds would be no help: nothing varies between seeds")
