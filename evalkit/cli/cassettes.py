"""``evalkit cassettes``."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import click

from evalkit.cli.errors import one_line_errors
from evalkit.cli.groups import Group
from evalkit.models.cassettes import INDEX, CassetteError, Origin, Tape, read_origin
from evalkit.reports.layout import print_entries


@click.group(cls=Group)
def command() -> None:
    """List, show and check recordings."""


@command.command("list")
@click.argument("folder", default="cassettes", type=click.Path(path_type=Path))
def list_(folder: Path) -> None:
    """The recordings below FOLDER: of what, in which dialect, since when."""
    with one_line_errors():
        found = sorted(index.parent for index in folder.rglob(INDEX))
        if not found:
            raise CassetteError(f"{folder}: holds no recordings (no {INDEX})")
        for place in found:
            origin = read_origin(place)
            files = len(_files(place))
            held = f"{files} cassettes, {len(origin.strategies)} strategies"
            print_entries((f"{place}  {_description(origin)}, {held}",))


def _description(origin: Origin) -> str:
    model = "scripted server, no provider" if origin.scripted else origin.model
    mode = "streamed" if origin.streamed else "not streamed"
    return f"{model}, {origin.dialect} {mode}, {origin.recorded_on}"


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.glob("*.json") if file.name != INDEX)


@command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def show(file: Path) -> None:
    """The exchanges of one cassette FILE, a line each."""
    with one_line_errors():
        origin = read_origin(file.parent)
        if not file.is_file():
            raise CassetteError(f"{file}: there is no such file")
        tape = Tape(file, record=False, origin=origin)
    click.echo(f"{file.name}: {_description(origin)}, from {origin.recorded_from}")
    for place in range(len(tape)):
        request, response = tape.exchange(place)
        body = json.loads(request.body or b"{}")
        said = len(body.get("messages") or body.get("input") or ())
        size = len(response["body"]["string"])
        status = response["status"]["code"]
        path = request.uri.removeprefix("http://model")
        click.echo(f"{place + 1:>4}  {request.method} {path}  {said} messages → {status}, {size:,} bytes")


@command.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, file_okay=False))
def check(folders: tuple[Path, ...]) -> None:
    """Whether the cassettes of FOLDERs (all, without one) load and replay what they say. Exit 1 if not."""
    from evalkit.media.players import player_of
    from evalkit.media.recordings import recorded_scenarios, replay_medium
    from evalkit.scoring.arena import Arena
    from evalkit.strategies.registry import find_strategy

    failed = 0
    with one_line_errors():
        places = folders or tuple(sorted(index.parent for index in Path("cassettes").rglob(INDEX)))
        if not places:
            raise CassetteError(f"cassettes: holds no recordings (no {INDEX})")
        for folder in places:
            medium, origin = replay_medium(folder)
            play = player_of(medium)
            for scenario in recorded_scenarios(folder, origin):
                for name, seed in product(origin.strategies, range(origin.seeds if medium.live else 1)):
                    strategy = find_strategy(name)
                    try:
                        play(Arena(scenario, strategy.offers), strategy, seed)
                    except Exception as error:
                        failed += 1
                        where = f"{folder}: {scenario.name} × {name}" + (f", seed {seed}" if seed else "")
                        click.echo(f"FAIL {where}: {' '.join(str(error).split())}")
    click.echo(f"{len(places)} recordings checked, {failed} episodes do not replay")
    if failed:
        raise click.exceptions.Exit(1)
