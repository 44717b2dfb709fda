"""What plays a cell over a medium: the scripted model in process, over a dialect or replayed, a live one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from evalkit.core.decisions import Ending
from evalkit.media.medium import Medium
from evalkit.media.recordings import OnTape
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.drivers.in_process import Watcher
    from evalkit.stage.stage import Stage

#: Plays one episode and scores it.
Play: TypeAlias = Callable[[Arena, Strategy, int], Episode]

#: Plays the recording of one episode again, telling each turn and the stage.
Recorded: TypeAlias = Callable[[Arena, Strategy, int, "Watcher", Callable[[Any], None]], Episode]


def player_of(medium: Medium) -> Play:
    """What plays a cell over a medium, in this process."""
    if medium.live:
        from evalkit.media.live import Live

        return Live(medium)
    if medium.dialect is None:
        return run_episode
    return _Wire(medium) if medium.replay is None else _Replay(medium)


def replayer(medium: Medium) -> Recorded | None:
    """What plays the recordings of a live run again, watched; None where nothing was recorded."""
    taped = medium.replay or medium.record
    if not medium.live or taped is None:
        return None
    from evalkit.media.live import Live

    return Live(msgspec.structs.replace(medium, record=None, replay=taped, max_usd=None, max_tokens=None))


class _Wire(OnTape):
    """The scripted model over a dialect, recorded or not."""

    def __init__(self, medium: Medium) -> None:
        super().__init__(medium, "evalkit's scripted server")
        from evalkit.wire.server import Server

        self.server = Server().__enter__()

    def __call__(self, arena: Arena, strategy: Strategy, seed: int) -> Episode:
        from evalkit.drivers.over_sdk import Line
        from evalkit.models.cassettes import Playing
        from evalkit.wire.expressible import has_background

        line = Line(
            self.server,
            self.dialect,
            streamed=self.medium.streamed,
            background=has_background(arena.scenario),
        )
        if self.medium.record is None:
            return run_episode(arena, strategy, seed, run=line.run)
        playing = Playing(self.tape(arena, seed), asks_anyway=True)
        line = msgspec.structs.replace(line, http=self.client(playing))
        episode = run_episode(arena, strategy, seed, run=line.run)
        playing.tape.save()
        return episode


class _Replay(OnTape):
    """Recordings of the scripted model."""

    def __init__(self, medium: Medium) -> None:
        super().__init__(medium, "")

    def __call__(self, arena: Arena, strategy: Strategy, seed: int) -> Episode:
        from evalkit.drivers.in_process import LoopMind, drive
        from evalkit.drivers.over_sdk import opening
        from evalkit.drivers.recorded import Shadowed
        from evalkit.drivers.sdk_episode import SdkInstruments
        from evalkit.models.cassettes import Playing
        from evalkit.models.clients import connect
        from evalkit.wire.expressible import has_background

        playing = Playing(self.tape(arena, seed))

        def run(strategy: Strategy, stage: Stage, watch: Watcher | None) -> Ending:
            model = connect(
                self.dialect,
                "http://model",
                opening(stage.task, strategy.offers),
                streamed=self.medium.streamed,
                background=self.dialect == "responses" and has_background(arena.scenario),
                http=self.client(playing),
            )
            remote = Shadowed(stage, model, playing)
            mind = LoopMind(strategy, stage.task, stage, SdkInstruments(remote, stage))
            return drive(mind, remote, watch=watch)

        return run_episode(arena, strategy, seed, run=run)
