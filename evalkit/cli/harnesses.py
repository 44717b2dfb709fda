"""``evalkit harnesses``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.cli.groups import Group
from evalkit.cli.harness_setup import playing
from evalkit.harnesses.find import BEHAVIOURS, EVENTS, GUARANTEES, SCENES, find_harness, shipped
from evalkit.harnesses.pinned_environment import SetupError, cache_folder, is_ready, needs_setup, set_up
from evalkit.reports.layout import print_entries
from evalkit.runs.engine import MOST_WORKERS

if TYPE_CHECKING:
    from evalkit.scenarios.scenario import Scenario
    from evalkit.scoring.episode import Episode


@click.group(cls=Group)
def command() -> None:
    """List harnesses, set up their environments, try them."""


@command.command("list")
def list_() -> None:
    """All shipped harnesses and their variants, with the versions they are pinned to."""
    with one_line_errors():
        harnesses = shipped()
    width = max(map(len, harnesses))
    for name, harness in harnesses.items():
        ready = "ready  " if is_ready(harness) else "not yet"
        lines = [f"{name:<{width}}  {ready}  {harness.declared or 'as heard':<10} {harness.summary}"]
        if not harness.variant:
            lines.append(f"{'':<{width}}           {', '.join(harness.pins) or 'nothing to install'}")
        print_entries(lines, width + len("           "))
    click.echo(f"environments: {cache_folder()}")


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
def setup(names: tuple[str, ...]) -> None:
    """Make the environments of NAMEs, or of all shipped harnesses. Exit 1 where one could not be made."""
    failed = []
    with one_line_errors():
        found = [find_harness(name) for name in names] or list(shipped().values())
    for harness in {harness.folder: harness for harness in found}.values():
        name = harness.manifest.name
        if is_ready(harness):
            click.echo(f"{name}: {'is set up' if needs_setup(harness) else 'needs no set-up'}")
            continue
        try:
            set_up(harness, click.echo)
        except SetupError as error:
            click.echo(f"evalkit: {error}", err=True)
            failed.append(name)
    if failed:
        click.echo(f"not set up: {', '.join(failed)}", err=True)
        raise click.exceptions.Exit(1)


@command.command()
@click.argument("names", nargs=-1, metavar="NAME...", required=True)
def check(names: tuple[str, ...]) -> None:
    """Let NAMEs do a plain task, and try each event that their manifests claim. Exit 1 where one fails.

    The task's items are done and the model says so. Of each event a line says what was seen.
    """
    from evalkit.scenarios.loader import load_file

    happening = load_file(EVENTS)
    (plain,) = [scenario for scenario in load_file(BEHAVIOURS) if scenario.name == "plain-finish"]
    failed = 0
    for name in names:
        with one_line_errors():
            episode, text = _episode(name, plain, 0)
        said = f"{episode.outcome}" + (f" ({episode.native})" if episode.native else "")
        problem = "" if episode.outcome == "done/complete" else "; expected done/complete"
        click.echo(f"{name}: {said} in {episode.turns} turns{problem}")
        if problem:
            failed += 1
            click.echo(text, nl=False)
            continue
        with one_line_errors():
            failed += sum(not right for right in _events(name, happening))
    if failed:
        raise click.exceptions.Exit(1)


def _goes_well(episode: Episode) -> bool:
    """Whether a program took an event up. Work that it then did twice is told, and is for a run to count."""
    from evalkit.scoring.episode_fields import SPOILERS

    spoiled = any(getattr(episode, flag) for flag in SPOILERS if flag != "duplicate_effects")
    return episode.outcome == "done/complete" and not spoiled


def _events(name: str, scenarios: list[Scenario]) -> Iterator[bool]:
    """Whether each event that a manifest claims goes well; a line says what was seen of it."""
    from evalkit.harnesses.episode_record import CHILDREN, LANDED
    from evalkit.reports.foreign_transcript import in_words
    from evalkit.scoring.episode_fields import FLAGS
    from evalkit.scoring.foreign_episode import why_not_expressible

    with playing(name) as (harness, play):
        own_children = any(side.kind == "child" for side in harness.side)
        for scenario in scenarios:
            of_children = not scenario.events
            if why_not_expressible(scenario, harness) is not None or of_children > own_children:
                continue
            episode, kept = play(scenario, 0)
            flags = {f.replace("_", " "): int(getattr(episode, f)) for f in FLAGS if f != "not_exercised"}
            seen = [f"{what} {in_words(kept.seen[what])}" for what in LANDED if what in kept.seen]
            seen += [f"{flag} {count}" for flag, count in flags.items() if count]
            right = not episode.not_exercised and _goes_well(episode)
            if of_children and CHILDREN not in kept.seen:
                right = False
                seen.append("no request of a child agent")
            if not right:
                seen.append(f"see: evalkit harnesses run {name} {scenario.name}")
            click.echo("; ".join([f"{name}: {scenario.name}: {episode.outcome}", *seen]))
            yield right


@command.command()
@click.argument("name")
@click.argument("scenario")
@click.option("--seed", default=0, show_default=True)
def run(name: str, scenario: str, seed: int) -> None:
    """Run one SCENARIO, a shipped scene or any other, with NAME and show it turn by turn."""
    from evalkit.scenarios.loader import load_file
    from evalkit.scenarios.suites import load_suites

    with one_line_errors():
        shown = (known for file in (BEHAVIOURS, SCENES, EVENTS, GUARANTEES) for known in load_file(file))
        found = [known for known in shown if known.name == scenario]
        found = found or load_suites((scenario,))
        if len(found) != 1:
            raise UsageProblem(f"scenario {scenario!r} stands for {len(found)}: name one of them")
        click.echo(_episode(name, found[0], seed)[1], nl=False)


def _episode(name: str, scenario: Scenario, seed: int) -> tuple[Episode, str]:
    """One scored episode, and its transcript."""
    from evalkit.reports.foreign_transcript import episode_figures, kept_text
    from evalkit.scoring.foreign_episode import why_not_expressible

    with playing(name) as (harness, play):
        reason = why_not_expressible(scenario, harness)
        if reason is not None:
            raise UsageProblem(f"scenario {scenario.name!r} is not expressible for {name}: {reason}")
        episode, kept = play(scenario, seed)
    items = len(scenario.world.items)
    return episode, kept_text(kept, scenario.name, items, episode_figures(episode))


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON, with what each scene showed.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write NAME.txt for each into a folder, and a README.md that holds them side by side.",
)
def card(names: tuple[str, ...], as_json: bool, out: Path | None) -> None:
    """What NAMEs count, how they end and when they give up: measured, never declared.

    Some forty small scenes are played with each, and each line is read off what was seen in them. Without a
    NAME, all that are shipped.
    """
    from evalkit.cli.harness_card import card_of
    from evalkit.reports.harnesses.card import card_text, cards_json, write_cards
    from evalkit.reports.layout import console_of

    if as_json and out is not None:
        raise UsageProblem("--json prints, --out writes: take one of them")
    cards = []
    for name in names or tuple(shipped()):
        with one_line_errors():
            cards.append(card_of(name))
        if out is not None:
            # One at a time: each takes minutes, and an interrupt is to cost no more than the one.
            write_cards(cards[-1:], out)
        elif not as_json:
            click.echo(card_text(cards[-1], console_of().width), nl=False)
    if as_json:
        click.echo(cards_json(cards), nl=False)
    if out is not None:
        click.echo(f"cards: {out / 'README.md'}")


@command.command()
@click.option(
    "--harness",
    "names",
    multiple=True,
    help="One of them; without it, all that are shipped, and the durable worker.",
)
@click.option("--library/--no-library", default=True, help="Play the whole scenario library as well.")
@click.option(
    "--only",
    multiple=True,
    metavar="SUITE",
    help="Play these of the library again and nothing else: families, files, scenarios.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Episodes at a time; without it, one for each core.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports/league"),
    show_default=True,
)
def league(
    names: tuple[str, ...], library: bool, only: tuple[str, ...], workers: int | None, out: Path
) -> None:
    """Every harness on every behaviour, on the library, and on its events: tables and a heat map.

    The runs are kept in OUT/runs, one for each harness; what has not changed is not run again, and an
    interrupt costs the row that is being played. Variants that something may happen to make no row of their
    own; with the name of one its framework is played on the library's events anew.
    """
    from evalkit.cli.harness_league import all_of_the_league, make_league

    if only and not library:
        raise UsageProblem(
            "--only names scenarios of the library, --no-library leaves it out: take one of them"
        )

    with one_line_errors():
        for note in make_league(names or all_of_the_league(), library, workers, out, only):
            click.echo(note)
    click.echo(f"league: {out / 'README.md'}")


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--workers",
    type=click.IntRange(1, MOST_WORKERS),
    help="Episodes at a time; without it, one for each core.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("reports/guarantees"),
    show_default=True,
    help="Where the runs are kept; what has not changed is not run again.",
)
@click.option(
    "--plays",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="How often each kill and each decision is played: where a race decides, plays differ.",
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), required=True, help="The page.")
def guarantees(names: tuple[str, ...], workers: int | None, runs: Path, plays: int, out: Path) -> None:
    """What NAMEs gave when killed at each moment, and when a person decided: a table and what broke it.

    Beside it, what became of each event in the library's scenarios. Without NAMEs: the durable worker, and
    all shipped harnesses that something can happen to.
    """
    from evalkit.cli.harness_guarantees import make_guarantees

    with one_line_errors():
        make_guarantees(names, plays, workers, runs, out)
    click.echo(f"guarantees: {out}")
