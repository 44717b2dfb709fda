"""``evalkit show``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.folders import open_run
from evalkit.core.names import nearest
from evalkit.core.traces import Finding
from evalkit.reports.kept import figures_text
from evalkit.runs.plan import plan_from
from evalkit.runs.store import Store
from evalkit.scoring.figures import KEPT
from evalkit.secrets.cleaning import clean_text
from evalkit.stats.records import contender_names


@click.command()
@click.argument("run")
@click.argument("episode")
def command(run: str, episode: str) -> None:
    """Show EPISODE of RUN turn by turn: its number, or SCENARIO/STRATEGY[/SEED]."""
    from evalkit.harnesses.records import Kept
    from evalkit.reports.kept import episode_figures, kept_text
    from evalkit.reports.transcript import observe_worker, replay, transcript_text
    from evalkit.runs.medium import replayer
    from evalkit.runs.traces import read_trace

    with one_line_errors():
        store = open_run(run)
        cell, scenario, contender, seed, outcome = _find(store, episode)
        kept = read_trace(store.folder, cell) if store.recipe.contenders[contender].foreign else None
        plan = plan_from(store.recipe)
        row = _figures(store, cell, kept.findings if kept is not None else ())
        store.close()
    if kept is not None:
        scene = plan.scenarios[scenario]
        click.echo(f"episode {cell}")
        click.echo(kept_text(kept, scene.name, len(scene.world.items), row), nl=False)
        return
    if store.recipe.contenders[contender].foreign:
        raise UsageProblem(f"episode {episode!r}: no record of it was kept")
    if store.recipe.contenders[contender].durable:
        scene = plan.scenarios[scenario]
        exchanges, found = observe_worker(scene, plan.strategies[contender], seed)
        kept = Kept("worker", seed, exchanges, open=found.open_items)
        click.echo(f"episode {cell}")
        click.echo(kept_text(kept, scene.name, len(scene.world.items), episode_figures(found)), nl=False)
        _note_if_changed(found.outcome, outcome)
        return
    if outcome.startswith("void"):
        click.echo(f"episode {cell}")
        click.echo(row, nl=False)
        return
    medium = store.recipe.medium
    recorded = replayer(medium)
    if medium.live and recorded is None:
        raise UsageProblem(f"episode {episode!r}: the run was live and not recorded (--record)")
    with one_line_errors():
        scene, strategy = plan.scenarios[scenario], plan.strategies[contender]
        transcript = replay(scene, strategy, seed, recorded=recorded)
    click.echo(f"episode {cell}")
    click.echo(clean_text(transcript_text(transcript)), nl=False)
    _note_if_changed(transcript.episode.outcome, outcome)


def _note_if_changed(now: str, was: str) -> None:
    if now != was:
        click.echo(
            f"evalkit: note: the run has {was} here; evalkit or the strategy has changed since", err=True
        )


def _find(store: Store, episode: str) -> tuple[int, int, int, int, str]:
    query = "select cell, scenario, contender, seed, outcome, scenario_name, strategy, harness from episodes"
    if episode.isdigit():
        rows = list(store.rows(f"{query} where cell = ?", (int(episode),)))
    else:
        parts = episode.split("/")
        if len(parts) > 3:
            parts = _around_path(parts)
        if len(parts) not in (2, 3) or (len(parts) == 3 and not parts[2].isdigit()):
            raise UsageProblem(f"episode {episode!r}: expected a number or SCENARIO/STRATEGY[/SEED]")
        rows = list(
            store.rows(
                f"{query} where scenario_name = ? and strategy = ? and seed = ?",
                (parts[0], parts[1], int(parts[2]) if len(parts) == 3 else 0),
            )
        )
    if not rows:
        raise UsageProblem(
            f"episode {episode!r} is not in {store.folder}{_meant(store, episode)}; see its episodes.csv",
            hint=f"evalkit show {shlex.quote(str(store.folder))} 0",
        )
    cell, scenario, contender, seed, outcome = rows[0][:5]
    return cell, scenario, contender, seed, outcome


def _meant(store: Store, episode: str) -> str:
    """What an episode's name may have meant: with the scenario, or the strategy, of nearest name."""
    parts = episode.split("/")
    if len(parts) < 2:
        return ""
    scenario = nearest(parts[0], [entry.name for entry in store.recipe.entries]) or parts[0]
    contender = nearest(parts[1], contender_names(store)) or parts[1]
    meant = "/".join((scenario, contender, *parts[2:]))
    return f" (did you mean {meant!r}?)" if meant != episode else ""


def _around_path(parts: list[str]) -> list[str]:
    """The parts of an episode's name where the harness is a path, which has slashes of its own."""
    seed = parts[-1:] if parts[-1].isdigit() else []
    return [parts[0], "/".join(parts[1 : len(parts) - len(seed)]), *seed]


def _figures(store: Store, cell: int, findings: Sequence[Finding]) -> str:
    """What the store has of an episode."""
    columns = (*(figure.name for figure in KEPT), "outcome")
    (values,) = list(store.rows(f"select {', '.join(columns)} from episodes where cell = ?", (cell,)))
    return figures_text(dict(zip(columns, values, strict=True)), findings)
