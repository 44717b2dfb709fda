"""``evalkit show``."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.run_folders import open_run
from evalkit.core.names import nearest
from evalkit.core.trace import Finding
from evalkit.reports.answer import show_command
from evalkit.reports.foreign_transcript import figures_text
from evalkit.runs.plan import plan_from
from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import KEPT
from evalkit.secrets.cleaning import clean_text
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.severity import Told, failures, of_scenario

#: So many of the episodes that are not correct are listed.
LISTED = 20


@click.command()
@click.argument("run")
@click.argument("episode", required=False)
def command(run: str, episode: str | None) -> None:
    """Show EPISODE of RUN turn by turn: its number, or SCENARIO/STRATEGY[/SEED].

    Without EPISODE those that are not correct are listed, the worst first. SCENARIO alone is the worst
    episode of its only contender, or lists the contenders.
    """
    from evalkit.harnesses.episode_record import Kept
    from evalkit.media.players import replayer
    from evalkit.reports.foreign_transcript import episode_figures, kept_text
    from evalkit.reports.transcript import observe_worker, replay, transcript_text
    from evalkit.runs.foreign_records import read_trace

    with one_line_errors():
        store = open_run(run)
        episode = episode if episode is not None and "/" in episode else _episode_of(store, run, episode)
        if episode is None:
            store.close()
            return
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


def _episode_of(store: Store, run: str, words: str | None) -> str | None:
    """The episode that a number or a scenario's name means; None where a list was the answer."""
    if words is None:
        found, number = failures(store, LISTED)
        if not found:
            click.echo("every episode is correct")
            return None
        several = f"{number:,} episodes are" if number > 1 else "1 episode is"
        click.echo(f"{several} not correct{', the worst first' if number > 1 else ''}:")
        _list(run, found)
        if number > len(found):
            click.echo(f"and {number - len(found):,} more: {store.folder}/episodes.csv")
        return None
    found = of_scenario(store, words) if not words.isdigit() else []
    if len(found) < 2:
        return found[0].name if found else words
    click.echo(f"{words} was played by {len(found)} contenders:")
    _list(run, found)
    return None


def _list(run: str, found: list[Told]) -> None:
    """Episodes as commands to paste, what is wrong behind each."""
    commands = [show_command(run, one.name) for one in found]
    width = max(map(len, commands))
    for said, one in zip(commands, found, strict=True):
        click.echo(f"  {said:<{width}}  # {one.said}")


def _find(store: Store, episode: str) -> tuple[int, int, int, int, str]:
    query = "select cell, scenario, contender, seed, outcome, scenario_name, strategy, harness from episodes"
    if episode.isdigit():
        rows = list(store.rows(f"{query} where cell = ?", (int(episode),)))
    else:
        parts = episode.split("/")
        if len(parts) > 3:
            parts = _around_path(parts)
        if len(parts) > 3 or (len(parts) == 3 and not parts[2].isdigit()):
            raise UsageProblem(
                f"episode {episode!r}: expected a number or SCENARIO/STRATEGY[/SEED]",
                hint=f"evalkit show {shlex.quote(str(store.folder))}",
            )
        names = contender_names(store)
        parts = [*parts, ""] if len(parts) == 1 else parts
        place = names.index(parts[1]) if parts[1] in names else -1
        rows = list(
            store.rows(
                f"{query} where scenario_name = ? and (contender = ? or strategy = ?) and seed = ? "
                "order by contender <> ?",
                (parts[0], place, parts[1], int(parts[2]) if len(parts) == 3 else 0, place),
            )
        )
    if not rows:
        meant = _suggestion(store, episode)
        folder = str(store.folder)
        raise UsageProblem(
            f"episode {episode!r} is not in {folder}" + (f" (did you mean {meant!r}?)" if meant else ""),
            hint=show_command(folder, meant) if meant else f"evalkit show {shlex.quote(folder)}",
        )
    cell, scenario, contender, seed, outcome = rows[0][:5]
    return cell, scenario, contender, seed, outcome


def _suggestion(store: Store, episode: str) -> str:
    """What an episode's name may have meant: with the scenario, or the strategy, of nearest name."""
    scenarios = [entry.name for entry in store.recipe.entries]
    parts = episode.split("/")
    if len(parts) < 2:
        return nearest(episode, scenarios) or ""
    scenario = nearest(parts[0], scenarios) or parts[0]
    contender = nearest(parts[1], contender_names(store)) or parts[1]
    return next((one.name for one in of_scenario(store, scenario) if one.by == contender), "")


def _around_path(parts: list[str]) -> list[str]:
    """The parts of an episode's name where the harness is a path, which has slashes of its own."""
    seed = parts[-1:] if parts[-1].isdigit() else []
    return [parts[0], "/".join(parts[1 : len(parts) - len(seed)]), *seed]


def _figures(store: Store, cell: int, findings: Sequence[Finding]) -> str:
    """What the store has of an episode."""
    columns = (*(figure.name for figure in KEPT), "outcome")
    (values,) = list(store.rows(f"select {', '.join(columns)} from episodes where cell = ?", (cell,)))
    return figures_text(dict(zip(columns, values, strict=True)), findings)
