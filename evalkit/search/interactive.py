"""The reader as the model: one move after the other against a strategy, and what is known from there.

A game is a scenario that grows by a move at a time, run each time from its start: so what is decided in a
game is what a run of the saved scenario decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from evalkit.core.decisions import Action, Ending, Verdict
from evalkit.core.turns import Turn
from evalkit.drivers.in_process import LoopMind, Watcher, drive
from evalkit.loop.state import Loop, State
from evalkit.scenarios.yaml_source import write_document
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.search.proofs.alphabet import Move, scripted, witness
from evalkit.search.proofs.counterexample import Confirmer
from evalkit.search.proofs.environment import Environment, Setting, read_document
from evalkit.search.proofs.explore import Sweep
from evalkit.search.proofs.monitor import Watch
from evalkit.search.proofs.prove import DEPTH, error_seeds
from evalkit.search.proofs.steps import EVERYTHING, KEEPS, Stepper
from evalkit.search.proofs.symmetry import is_finite
from evalkit.search.properties import PROPERTIES, Property
from evalkit.stage.stage import Stage
from evalkit.strategies.strategy import Strategy

#: What the model says where the reader has yet to choose; no move says this.
_WAITING = "The next move is yours."
#: States that are looked at for what can still happen: seconds, not minutes.
STATES = 60_000


class Position(msgspec.Struct, frozen=True):
    """Where a game stands after its moves. ``episode`` is there once the run has ended.

    ``truth`` is the truth of the moment: that of an ending here.
    """

    settled: int
    open: tuple[str, ...]
    truth: str
    episode: Episode | None


class Knowledge(msgspec.Struct, frozen=True):
    """What exploring from a position says of one property.

    ``moves`` are the fewest further ones that break it; None where no run was found that does.
    ``sure``: everything that can follow was explored.
    """

    property: str
    moves: tuple[str, ...] | None
    sure: bool
    states: int


class _Waiting(Exception):
    """The script has come to where the reader chooses."""


class Game:
    """A strategy, a world and the moves so far. ``attach`` is told of each stage, ``watch`` of its turns."""

    def __init__(
        self,
        strategy: Strategy,
        setting: Setting | None = None,
        *,
        attach: Callable[[Stage], None] | None = None,
        watch: Watcher | None = None,
    ) -> None:
        self.strategy = strategy
        self.setting = setting or Setting()
        self.environment = Environment(strategy, self.setting)
        self.chosen: list[Move] = []
        self._attach = attach
        self._watch = watch
        self._state: State | None = None
        self._world = 0
        self.position = self._played()

    @property
    def moves(self) -> tuple[Move, ...]:
        """All that the model may do."""
        return self.environment.moves

    def play(self, move: Move) -> Position:
        """Make a move; the new position. ValueError where the run has ended."""
        if self.position.episode is not None:
            raise ValueError("the run has ended")
        self.chosen.append(move)
        self.position = self._played()
        return self.position

    def back(self) -> Position:
        """Take the last move back."""
        if self.chosen:
            self.chosen.pop()
            self.position = self._played()
        return self.position

    def restart(self) -> Position:
        """Begin anew."""
        self.chosen.clear()
        self.position = self._played()
        return self.position

    def document(self, name: str, *, waiting: bool = False) -> dict[str, Any]:
        """The scenario of the moves so far; then the model does the work, so that it could be finished."""
        names = tuple(self.environment.task.vocabulary)
        moves: list[dict[str, Any]] = scripted(self.chosen, names, self.setting.gated)
        if waiting:
            moves.append({"say": _WAITING})
        moves += witness(names)
        return {**self.setting.document(self.strategy, moves, name), "source": "played by hand"}

    def text(self, name: str) -> str:
        """The scenario as a file."""
        lines = [f"# Played against {self.strategy.name} with `evalkit play`:"]
        lines += [f"#   {number}. the model {move.name}" for number, move in enumerate(self.chosen, 1)]
        return "\n".join(lines) + "\n" + write_document(self.document(name))

    def _played(self) -> Position:
        scenario = read_document(self.document("played", waiting=True))
        arena = Arena(scenario, self.strategy.offers)
        stages: list[Stage] = []
        minds: list[_Mind] = []

        def on_stage(stage: Stage) -> None:
            stages.append(stage)
            if self._attach is not None:
                self._attach(stage)

        def run(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
            minds.append(_Mind(strategy, stage.task, stage))
            return drive(minds[0], stage, watch=watch)

        episode: Episode | None = None
        try:
            episode = run_episode(arena, self.strategy, 0, self._watch, on_stage=on_stage, run=run)
            truth = episode.truth
        except _Waiting:
            self._state = minds[0].state
            truth = arena.truth(stages[0], 0)
        world = stages[0].world
        self._world = self.environment.packed(world)
        left = stages[0].task.names(world.all & ~world.settled())
        return Position(world.settled().bit_count(), left, truth, episode)

    def knows(self, name: str = "no_false_done") -> Knowledge:
        """What can still become of the game: the fewest moves that break a property, or that none do."""
        if self.position.episode is not None or self._state is None:
            return Knowledge(name, None, True, 0)
        found = PROPERTIES[name]
        finite = is_finite(self.strategy)
        for keep in (KEEPS[found.needs], EVERYTHING) if finite else (EVERYTHING,):
            sweep = _From(self, self._state, self._world, found, keep)
            swept = sweep.run()
            known = sweep.confirmer.found.get(name)
            if name in swept.found and known is not None:
                return Knowledge(name, known.moves[len(self.chosen) :], True, swept.states)
            if name not in swept.doubted:
                break
        # Ways that no real run takes are no answer: then it is told that none was found, and no more.
        return Knowledge(name, None, swept.complete and name not in swept.doubted, swept.states)


class _Mind(LoopMind):
    """The reference loop, which stops where the reader is to choose."""

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        if turn.text == _WAITING:
            raise _Waiting
        return super().turn(turn)


class _From(Sweep):
    """An exploration from a position instead of from the start; ways are confirmed from the start."""

    def __init__(self, game: Game, state: State, world: int, found: Property, keep: frozenset[str]) -> None:
        environment, strategy = game.environment, game.strategy
        limit = Loop(strategy, environment.task).limits.turns
        seeds = error_seeds(strategy, environment.task, limit) if strategy.random else (0,)
        prefix = tuple(environment.moves.index(move) for move in game.chosen)
        self.confirmer = Confirmer(environment)
        self._at = state, world, any(move.blocks for move in game.chosen)

        def confirm(way: tuple[int, ...], fires: str, found: Property) -> int | None:
            turns = self.confirmer((*prefix, *way), fires, found)
            return None if turns is None else turns - len(prefix)

        super().__init__(
            environment,
            Stepper(environment, keep=keep, seeds=seeds),
            Watch(),
            (found,),
            confirm=confirm,
            max_depth=None if is_finite(strategy) else DEPTH,
            max_states=STATES,
        )

    def start(self) -> int:
        state, world, blocked = self._at
        return self.packing.pack(self.stepper.states.number(state), int(blocked), world)
