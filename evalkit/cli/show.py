"""``evalkit show``."""

from __future__ import annotations

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.folders import open_run
from evalkit.runs.plan import plan_from
from evalkit.runs.store import RunError, Store


@click.command()
@click.argument("run")
@click.argument("episode")
def command(run: str, episode: str) -> None:
    """Show EPISODE of RUN turn by turn: its number, or SCENARIO/STRATEGY[/SEED]."""
    from evalkit.reports.transcript import replay, transcript_text

    with one_line_errors():
        store = open_run(run)
        cell, scenario, contender, seed, outcome = _find(store, episode)
        plan = plan_from(store.recipe)
        store.close()
    transcript = replay(plan.scenarios[scenario], plan.strategies[contender], seed)
    click.echo(f"episode {cell}")
    click.echo(transcript_text(transcript), nl=False)
    if transcript.episode.outcome != outcome:
        click.echo(
            f"evalkit: note: the run has {outcome} here; evalkit or the strategy has changed since",
            err=True,
        )


def _find(store: Store, episode: str) -> tuple[int, int, int, int, str]:
    query = "select cell, scenario, contender, seed, outcome, scenario_name, strategy, harness from episodes"
    if episode.isdigit():
        rows = list(store.rows(f"{query} where cell = ?", (int(episode),)))
    else:
        parts = episode.split("/")
        if len(parts) not in (2, 3) or (len(parts) == 3 and not parts[2].isdigit()):
            raise UsageProblem(f"episode {episode!r}: expected a number or SCENARIO/STRATEGY[/SEED]")
        rows = list(
            store.rows(
                f"{query} where scenario_name = ? and strategy = ? and seed = ?",
                (parts[0], parts[1], int(parts[2]) if len(parts) == 3 else 0),
            )
        )
    if not rows:
        raise RunError(f"episode {episode!r} is not in {store.folder}; see its episodes.csv")
    cell, scenario, contender, seed, outcome = rows[0][:5]
    return cell, scenario, contender, seed, outcome
