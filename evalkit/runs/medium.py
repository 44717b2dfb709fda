"""Over what a run's models are met: in process, over a dialect, on recordings, or live."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from evalkit.core import thresholds
from evalkit.core.decisions import Ending
from evalkit.core.requests import FALLBACK_MODEL, FIRST_MODEL
from evalkit.core.tasks import Limits, Offered
from evalkit.extras import need
from evalkit.harnesses.loop import NOTIONS
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, ending_of, run_episode, score
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.core.decisions import Ending
    from evalkit.harnesses.driver import Watcher
    from evalkit.models.cassettes import Origin, Tape
    from evalkit.models.scripted import Stage
    from evalkit.models.spending import Budget
    from evalkit.wire.answers import Dialect

#: Plays one episode and scores it.
Play: TypeAlias = Callable[[Arena, Strategy, int], Episode]

#: Plays the recording of one episode again, telling each turn and the stage.
Recorded: TypeAlias = Callable[[Arena, Strategy, int, "Watcher", Callable[[Any], None]], Episode]

SCRIPTED = "scripted"
#: provider: (dialect, where it is, the variable that holds the key)
PROVIDERS: dict[str, tuple[str, str, str]] = {
    "anthropic": ("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "openai": ("responses", "https://api.openai.com", "OPENAI_API_KEY"),
    "openai-chat": ("chat", "https://api.openai.com", "OPENAI_API_KEY"),
}


class MediumError(ValueError):
    """A medium that cannot be used; one line."""


class Medium(msgspec.Struct, frozen=True):
    """How models are met. ``model`` is ``scripted`` or PROVIDER:NAME.

    ``dialect`` takes the scripted model over the wire. ``record`` and ``replay`` are folders of cassettes.
    ``probe`` is the number of turns in which the ideal driver may show that a live run was reachable.
    """

    model: str = SCRIPTED
    dialect: str | None = None
    streamed: bool = False
    record: str | None = None
    replay: str | None = None
    base_url: str | None = None
    fallback: str | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    probe: int = 0

    @property
    def live(self) -> bool:
        """Whether a provider's model is asked, or was when it was recorded."""
        return self.model != SCRIPTED

    @property
    def alone(self) -> bool:
        """Whether one process must do it all: it spends from one budget or writes one set of cassettes."""
        return self.record is not None or (self.live and self.replay is None)


#: The SDKs through which a model is asked, on the wire or live.
_SDKS = ("anthropic", "openai")


def check_medium(medium: Medium) -> None:
    """MediumError for what cannot work, before anything is run."""
    if medium.record and medium.replay:
        raise MediumError("--record and --replay exclude each other")
    if medium.dialect is not None:
        need("--dialect", "h11", *_SDKS)
    if medium.live or medium.replay or medium.record:
        need("--replay" if medium.replay else "--record" if medium.record else "--model", *_SDKS, "vcr")
    if not medium.live:
        if medium.record and medium.dialect is None:
            raise MediumError("--record needs a model on the wire: --dialect, or --model PROVIDER:NAME")
        if medium.probe:
            raise MediumError("--probe is for live models; scripted runs know their truth")
        return
    provider, _, name = medium.model.partition(":")
    if provider not in PROVIDERS or not name:
        raise MediumError(
            f"--model {medium.model!r}: expected scripted or PROVIDER:NAME of {', '.join(PROVIDERS)}"
        )
    if medium.replay is None:
        variable = PROVIDERS[provider][2]
        if not os.environ.get(variable):
            raise MediumError(f"--model {medium.model}: {variable} is not set")
        if medium.max_usd is None and medium.max_tokens is None:
            raise MediumError("a live run needs a spending limit: --max-usd or --max-tokens")
    if medium.max_usd is not None:
        from evalkit.models.spending import price_of, price_table

        if price_of(name) is None:
            known = ", ".join(price_table().prices)
            raise MediumError(f"--max-usd: no price for {name!r}; known: {known}; use --max-tokens instead")


def replay_medium(folder: Path) -> tuple[Medium, Origin]:
    """The medium that replays a folder of cassettes, and where they come from."""
    from evalkit.models.cassettes import read_origin

    origin = read_origin(folder)
    medium = Medium(
        model=origin.model,
        dialect=origin.dialect,
        streamed=origin.streamed,
        replay=str(folder),
    )
    return medium, origin


def note_recording(
    medium: Medium, scenarios: tuple[str, ...], strategies: tuple[str, ...], seeds: int
) -> None:
    """Note in a folder of cassettes where they come from and what was run, so that it can be run again."""
    from evalkit.models.cassettes import write_origin

    if medium.record is None:
        return
    dialect, url = medium.dialect, "evalkit's scripted server"
    if medium.live:
        dialect, url, _ = PROVIDERS[medium.model.partition(":")[0]]
        url = medium.base_url or url
    origin = _origin(msgspec.structs.replace(medium, dialect=dialect), url)
    origin = msgspec.structs.replace(origin, scenarios=scenarios, strategies=strategies, seeds=seeds)
    write_origin(Path(medium.record), origin)


def unplayable(medium: Medium, scenario: Scenario, offered: tuple[Offered, ...]) -> str:
    """Why a scenario cannot be played over a medium with these channels; empty where it can."""
    where = "live, " if medium.live else "in replay, " if medium.replay is not None else ""
    lacking = [event for event in scenario.events if where or event not in NOTIONS]
    if lacking:
        return f"{where}the reference loop has no notion of: {', '.join(lacking)}"
    if medium.live or medium.dialect is None:
        return ""
    from evalkit.wire.expressible import not_expressible

    dialect: Dialect = medium.dialect  # type: ignore[assignment]
    return not_expressible(scenario, dialect, streamed=medium.streamed, offered=offered) or ""


def player_of(medium: Medium) -> Play:
    """What plays a cell over a medium, in this process."""
    if medium.live:
        return _Live(medium)
    if medium.dialect is None:
        return run_episode
    return _Wire(medium) if medium.replay is None else _Replay(medium)


def replayer(medium: Medium) -> Recorded | None:
    """What plays the recordings of a live run again, watched; None where nothing was recorded."""
    taped = medium.replay or medium.record
    if not medium.live or taped is None:
        return None
    again = msgspec.structs.replace(medium, record=None, replay=taped, max_usd=None, max_tokens=None)
    return _Live(again)


def _origin(medium: Medium, recorded_from: str) -> Origin:
    from evalkit.models.cassettes import Origin

    return Origin(
        model=medium.model,
        dialect=str(medium.dialect),
        streamed=medium.streamed,
        scripted=not medium.live,
        recorded_from=recorded_from,
        recorded_on=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


class _OnTape:
    """What the media with recordings share: the tape of a cell, and a client that goes through it."""

    def __init__(self, medium: Medium, recorded_from: str, secrets: tuple[str, ...] = ()) -> None:
        self.medium = medium
        self.secrets = secrets
        self._tapes: dict[Path, Tape] = {}
        self.origin = _origin(medium, recorded_from)
        self.dialect: Dialect = medium.dialect  # type: ignore[assignment]

    def tape(self, arena: Arena, seed: int) -> Tape:
        """The cassette of a scenario and seed."""
        from evalkit.models.cassettes import cassette_file

        folder = Path(self.medium.record or self.medium.replay or "")
        seed = seed if self.medium.live else arena.seed(seed)
        file = cassette_file(folder, arena.scenario.name, seed)
        if file not in self._tapes:
            from evalkit.models.cassettes import Tape

            record = self.medium.record is not None
            self._tapes[file] = Tape(file, record=record, origin=self.origin, secrets=self.secrets)
        return self._tapes[file]

    def client(self, playing: Any) -> Any:
        """An HTTP client whose exchanges go through the tape; in replay it has no network behind it."""
        import httpx2

        from evalkit.models.transport import transport_class

        inner = httpx2.HTTPTransport() if self.medium.replay is None else None
        return httpx2.Client(transport=transport_class()(playing, inner))


class _Wire(_OnTape):
    """The scripted model over a dialect, recorded or not."""

    def __init__(self, medium: Medium) -> None:
        super().__init__(medium, "evalkit's scripted server")
        from evalkit.wire.server import Server

        self.server = Server().__enter__()

    def __call__(self, arena: Arena, strategy: Strategy, seed: int) -> Episode:
        from evalkit.harnesses.sdk_driver import Line
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


class _Replay(_OnTape):
    """Recordings of the scripted model."""

    def __init__(self, medium: Medium) -> None:
        super().__init__(medium, "")

    def __call__(self, arena: Arena, strategy: Strategy, seed: int) -> Episode:
        from evalkit.harnesses.driver import LoopMind, drive
        from evalkit.harnesses.recorded import Shadowed
        from evalkit.harnesses.sdk_driver import RemoteInstruments, opening
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
            mind = LoopMind(strategy, stage.task, stage, RemoteInstruments(remote, stage))
            return drive(mind, remote, watch=watch)

        return run_episode(arena, strategy, seed, run=run)


class _Live(_OnTape):
    """A provider's model, recorded, replayed or neither."""

    def __init__(self, medium: Medium) -> None:
        provider, _, name = medium.model.partition(":")
        dialect, url, variable = PROVIDERS[provider]
        key = os.environ.get(variable, "")
        self.url = medium.base_url or url
        super().__init__(msgspec.structs.replace(medium, dialect=dialect), self.url, (key,) if key else ())
        self.name = name
        self.key = key or "none"
        self.budget = self._budget()

    def _budget(self) -> Budget:
        from evalkit.models.spending import Budget, price_of

        if self.medium.replay is not None:
            return Budget()
        return Budget(
            max_usd=self.medium.max_usd, max_tokens=self.medium.max_tokens, price=price_of(self.name)
        )

    def __call__(
        self,
        arena: Arena,
        strategy: Strategy,
        seed: int,
        watch: Watcher | None = None,
        on_stage: Callable[[Any], None] | None = None,
    ) -> Episode:
        """Play an episode; ``watch`` is told of each turn, ``on_stage`` of the stage before the first one."""
        from evalkit.harnesses.driver import LoopMind, drive
        from evalkit.harnesses.live import LiveStage
        from evalkit.harnesses.sdk_driver import opening
        from evalkit.models.cassettes import Playing
        from evalkit.models.clients import connect
        from evalkit.scoring.recorded import RecordedJudge

        medium = self.medium
        taped = medium.record is not None or medium.replay is not None
        playing = Playing(self.tape(arena, seed)) if taped else None
        task = arena.task(seed)
        model = connect(
            self.dialect,
            self.url,
            opening(task, strategy.offers),
            streamed=medium.streamed,
            api_key=self.key,
            http=self.client(playing) if playing is not None else None,
            names={FIRST_MODEL: self.name, FALLBACK_MODEL: medium.fallback or self.name},
        )
        cap = _cap(arena.scenario.limits)
        world = arena.world()
        stage = LiveStage(model, world, task, strategy.offers, self.budget, cap=cap, playing=playing)
        mind = LoopMind(strategy, task, stage)
        if on_stage is not None:
            on_stage(stage)
        try:
            ending, note = ending_of(lambda: drive(mind, stage, watch=watch))
        finally:
            if playing is not None:
                playing.tape.save()
        return score(RecordedJudge(arena.scenario, medium.probe), stage, ending, seed, note)


def _cap(limits: Limits) -> int:
    """evalkit's own cap for live runs, where no ideal harness can say how long it takes."""
    return max(thresholds.TURN_CAP, 2 * (limits.turns or 0))
