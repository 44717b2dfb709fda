"""``evalkit play``: the reader is the model."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.errors import UsageProblem, one_line_errors
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.registry import find_strategy
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.reports.transcript import Recorder
    from evalkit.search.interactive import Game, Knowledge
    from evalkit.search.proofs.alphabet import Move

#: key: (what it is called, the moves that it may be, the first that there is). ITEM is the first open item.
KEYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "w": ("work on an item", ("does and ticks ITEM", "does ITEM")),
    "d": (
        "claim done",
        (
            "finishes with everything",
            "claims done with the keyword",
            "gives the typed output",
            "claims done in words",
        ),
    ),
    "D": ("claim done in words", ("claims done in words",)),
    "r": ("report progress", ("reports progress",)),
    "l": ("list the items", ("lists the items",)),
    "f": ("fake: success, no effect", ("does ITEM wrongly, success reported",)),
    "k": ("tick everything", ("ticks everything",)),
    "p": ("pause", ("is paused",)),
    "c": ("be cut off in words", ("is cut off in its words",)),
    "x": ("be cut off in a call", ("is cut off in a call",)),
    "n": ("refuse", ("refuses",)),
    "b": ("state a blocker", ("states a blocker",)),
    "t": ("only think", ("only thinks",)),
    "e": ("say nothing", ("says nothing",)),
}
_OTHER = {"m": "all moves by number", "u": "take back", "s": "save", "q": "quit"}

#: What the truth of a world is, as a player reads it.
_TRUTHS = {
    "complete": "the work is complete",
    "reachable": "it can still be finished",
    "spoiled": "spoiled: it cannot be finished any more",
    "stuck": "it could never be finished",
}


@click.command()
@click.argument("strategy")
@click.option("--items", default=3, show_default=True, type=click.IntRange(1, 8), help="Items of the world.")
@click.option(
    "--checks", default="full", show_default=True, type=click.Choice(["full", "weak", "none"]),
    help="The acceptance checks that the strategy may run.",
)  # fmt: skip
@click.option(
    "--save", type=click.Path(path_type=Path, dir_okay=False), default=Path("played.yaml"), show_default=True,
    help="Where s writes the game as a scenario.",
)  # fmt: skip
def command(strategy: str, items: int, checks: Any, save: Path) -> None:
    """Be the model against STRATEGY: a key is a move; see what it decides, why, and what is true.

    After each move it says what can still go wrong: the fewest moves to a false done, or that none is
    possible. On a terminal a key is enough; from a pipe moves are read from lines (a number or the move's
    name works, too).
    """
    from evalkit.reports.transcript import Recorder
    from evalkit.search.interactive import Game
    from evalkit.search.proofs.environment import Setting

    with one_line_errors():
        found = find_strategy(strategy)
    recorders: list[Recorder] = []

    def attach(stage: Any) -> None:
        recorders.append(Recorder())
        recorders[-1].attach(stage)

    game = Game(
        found,
        Setting(items, checks),
        attach=attach,
        watch=lambda *told: recorders[-1](*told),
    )
    _Table(game, recorders, save, strategy).sit()


def _about(strategy: Strategy) -> str:
    """A preset in its own words; another strategy by its condition."""
    preset = PRESETS.get(strategy.name)
    if preset is None or preset.strategy != strategy:
        return repr(strategy.done_when)
    return preset.origin


class _Table:
    """A game on a terminal, or read from a pipe."""

    def __init__(self, game: Game, recorders: list[Recorder], save: Path, asked: str) -> None:
        self.game = game
        self.recorders = recorders
        self.save = save
        self.asked = asked
        self.shown = 0
        self.known: Knowledge | None = None

    def sit(self) -> None:
        """Play until the reader leaves."""
        game = self.game
        click.echo(
            f"You are the model. {game.strategy.name} decides when you are done: {_about(game.strategy)}"
        )
        click.echo(f"The world has the items {', '.join(game.environment.task.vocabulary)}, all open.")
        self._show_keys()
        self._show_state()
        for key in self._keys():
            if key in ("q", "\x04"):
                break
            if key == "u":
                game.back()
                self.shown = len(self.recorders[-1].steps)
                click.echo("taken back")
                self._show_state()
            elif key == "s":
                self._save()
            elif key == "m":
                for number, move in enumerate(game.moves, 1):
                    click.echo(f"  {number:>3}  {move.name}")
            elif key in ("?", "h"):
                self._show_keys()
            else:
                self._move(key)

    def _move(self, key: str) -> None:
        game = self.game
        if game.position.episode is not None:
            click.echo("the run has ended: u takes the last move back, s saves, q quits")
            return
        move = self._wanted(key)
        if move is None:
            click.echo(f"{key!r} is no move here; ? shows the keys, m every move")
            return
        click.echo(f"\nyou: the model {move.name}")
        game.play(move)
        self._show_state()

    def _wanted(self, key: str) -> Move | None:
        by_name = {move.name: move for move in self.game.moves}
        if key.isdigit() and 1 <= int(key) <= len(self.game.moves):
            return self.game.moves[int(key) - 1]
        if key in by_name:
            return by_name[key]
        item = (self.game.position.open or tuple(self.game.environment.task.vocabulary))[0]
        names = KEYS[key][1] if key in KEYS else ()
        return next((found for name in names if (found := by_name.get(name.replace("ITEM", item)))), None)

    def _show_state(self) -> None:
        """What has happened since, what is true, and what can still go wrong."""
        from evalkit.reports.transcript import step_lines

        steps = self.recorders[-1].steps
        items = self.game.setting.items
        for step in steps[self.shown :]:
            for line in step_lines(step, items):
                click.echo(line)
        self.shown = len(steps)
        position = self.game.position
        left = f"open: {', '.join(position.open)}" if position.open else "nothing is open"
        click.echo(f"world: {position.settled} of {items} settled, {left}; {_TRUTHS[position.truth]}")
        if position.episode is None:
            click.echo(f"prove: {self._knowledge()}")
            return
        episode = position.episode
        click.echo(
            f"ended: {episode.outcome} after {episode.turns} turns"
            + ("; a false done" if episode.false_done else "")
            + ("; a premature stop" if episode.premature_stop else "")
            + f"; {'correct' if episode.correct else 'not correct'}"
        )
        click.echo("u takes the last move back, s saves it as a scenario, q quits")

    def _knowledge(self) -> str:
        from evalkit.drivers.in_process import StrategyFailed

        try:
            self.known = self.game.knows()
        except StrategyFailed as error:
            return f"the strategy fails in it: {' '.join(str(error).split())}"
        known = self.known
        if known.moves is not None:
            many = f"{len(known.moves)} move{'s' * (len(known.moves) != 1)} away"
            return f"a false done is {many}: the model {'; '.join(known.moves)}"
        if known.sure:
            return f"no false done is possible from here, whatever the model does ({known.states:,} states)"
        return f"no false done found from here, but not all was explored ({known.states:,} states)"

    def _save(self) -> None:
        from evalkit.search.proofs.counterexample import scenario_name

        name = scenario_name(self.save.stem)
        try:
            self.save.write_text(self.game.text(name), encoding="utf-8")
        except OSError as error:
            raise UsageProblem(f"{self.save}: cannot be written: {error.strerror}") from None
        told = f"evalkit run {shlex.quote(str(self.save))} -s {shlex.quote(self.asked)}"
        click.echo(f"saved {self.save}; play it with: {told}")

    def _show_keys(self) -> None:
        by_name = {move.name for move in self.game.moves}
        item = next(iter(self.game.environment.task.vocabulary))
        there = {
            key: words
            for key, (words, names) in KEYS.items()
            if any(name.replace("ITEM", item) in by_name for name in names)
        }
        # A claim in words is a key of its own only where another channel is offered.
        if self._wanted("d") == self._wanted("D"):
            there.pop("D", None)
        entries = [f"{key} {words}" for key, words in (there | _OTHER).items()]
        width = max(map(len, entries)) + 2
        columns = max(1, min(3, 78 // width))
        for start in range(0, len(entries), columns):
            click.echo(
                "  " + "".join(f"{entry:<{width}}" for entry in entries[start : start + columns]).rstrip()
            )

    def _keys(self) -> Iterator[str]:
        """Keys as they are pressed; elsewhere lines. A number is typed whole, and ended by Enter."""
        if not sys.stdin.isatty():
            for line in sys.stdin:
                if line.strip():
                    yield line.strip()
            return
        typed = ""
        while True:
            click.echo("move> " if not typed else "", nl=False)
            try:
                key = click.getchar()
            except (KeyboardInterrupt, EOFError):
                click.echo()
                return
            click.echo(key if key.isprintable() else "", nl=not key.isdigit())
            if key.isdigit():
                typed += key
            elif key in ("\r", "\n"):
                if typed:
                    yield typed
                typed = ""
            else:
                typed = ""
                yield key
