"""``evalkit mutants``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.core.names import among
from evalkit.runs.engine import MOST_WORKERS, default_workers
from evalkit.scenarios.suites import load_suites

if TYPE_CHECKING:
    from evalkit.search.mutation_testing.score import Score

#: Scenarios that are named for each mutant; the others are counted.
NAMED = 2


@click.command()
@click.argument("suites", nargs=-1, metavar="[SUITE]...")
@click.option("--mutant", "names", multiple=True, help="A mutant; without it, all. Repeatable.")
@click.option(
    "--workers",
    default=default_workers,
    type=click.IntRange(1, MOST_WORKERS),
    help="Processes; by default all cores.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the score as JSON and nothing else.")
def command(suites: tuple[str, ...], names: tuple[str, ...], workers: int, as_json: bool) -> None:
    """Break the reference strategy and loop one rule at a time; say which scenarios of SUITEs catch it.

    A mutant is caught by a scenario on which the original is correct and the mutant is not, or whose outcome
    or flags change. Exit code 0: every mutant is caught; 1: some survive.
    """
    from evalkit.search.mutation_testing.mutants import MUTANTS
    from evalkit.search.mutation_testing.score import mutation_score

    for name in names:
        if name not in MUTANTS:
            raise UsageProblem(f"unknown mutant {name!r}{among(name, MUTANTS)}")
    with one_line_errors():
        scenarios = load_suites(suites)
    shows = sys.stderr.isatty() and not as_json
    score = mutation_score(
        scenarios, tuple(dict.fromkeys(names or MUTANTS)), _progress if shows else None, workers
    )
    if as_json:
        import msgspec

        answer = {
            "schema": "evalkit.mutants/1",
            "scenarios": score.scenarios,
            "mutants": score.mutants,
            "score": score.caught,
            "made_incorrect": score.made_incorrect,
            "survivors": score.survivors,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(answer)).decode())
    else:
        _show(score)
    sys.exit(1 if score.survivors else 0)


def _show(score: Score) -> None:
    width = max(len(caught.mutant) for caught in score.mutants)
    click.echo(f"{'mutant':<{width}}  {'incorrect on':>12}  {'differs on':>10}  caught by")
    for caught in score.mutants:
        names = (*caught.by, *caught.differs)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        shown = ", ".join(names[:NAMED]) + more if names else f"nobody: {caught.breaks}"
        click.echo(f"{caught.mutant:<{width}}  {len(caught.by):>12}  {len(caught.differs):>10}  {shown}")
    total = len(score.mutants)
    click.echo(
        f"\nmutation score: {score.caught} of {total} mutants caught by {score.scenarios} scenarios;"
        f" {score.made_incorrect} made incorrect"
    )
    if score.unproved:
        click.echo(f"only noticed, and incorrect nowhere: {', '.join(score.unproved)}")
    click.echo(f"survivors: {', '.join(score.survivors) or 'none'}")


def _progress(done: int, total: int) -> None:
    click.echo(f"\r{done} of {total} scenarios\r", nl=False, err=True)
