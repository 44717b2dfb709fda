"""Over what a run's models are met: in process, over a dialect, on recordings, or live."""

from __future__ import annotations

import datetime
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from evalkit.core.decisions import Ending
from evalkit.core.tasks import Offered
from evalkit.extras import need
from evalkit.loop.state import NOTIONS
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.core.decisions import Ending
    from evalkit.drivers.in_process import Watcher
    from evalkit.models.cassettes import Origin, Tape
    from evalkit.models.spending import Price
    from evalkit.stage.stage import Stage
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
    #: A file of prices of one's own.
    prices: str | None = None

    @property
    def model_name(self) -> str:
        """The provider's name of a live model."""
        return self.model.partition(":")[2]

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
    _, _, variable = provider_of(medium)
    if medium.replay is None:
        if medium.base_url is None and not os.environ.get(variable):
            raise MediumError(f"--model {medium.model}: {variable} is not set")
        if medium.max_usd is None and medium.max_tokens is None:
            raise MediumError("a live run needs a spending limit: --max-usd or --max-tokens")
        prices_for(medium)


def provider_of(medium: Medium) -> tuple[str, str, str]:
    """The entry of :data:`PROVIDERS` for a live model. MediumError where there is none."""
    provider, _, name = medium.model.partition(":")
    if provider not in PROVIDERS or not name:
        raise MediumError(
            f"--model {medium.model!r}: expected scripted or PROVIDER:NAME of {', '.join(PROVIDERS)}"
        )
    return PROVIDERS[provider]


def prices_for(medium: Medium, file: Path | None = None) -> dict[str, Price]:
    """The prices of the models that a live run may ask. MediumError where a limit in dollars lacks one."""
    from evalkit.models.spending import PRICES, PricesError, price_of, prices_of

    file = file or (Path(medium.prices) if medium.prices else PRICES)
    names = tuple(dict.fromkeys((medium.model_name, medium.fallback or medium.model_name)))
    try:
        if medium.max_usd is not None:
            return prices_of(names, file)
        known = {name: price_of(name, file) for name in names}
        return {name: price for name, price in known.items() if price is not None}
    except PricesError as error:
        raise MediumError(f"{error}, or give --max-tokens instead of --max-usd") from None


def kept_medium(medium: Medium) -> Medium:
    """A medium as it may be kept in a run: without the user, password and key in its URL."""
    if medium.base_url is None:
        return medium
    from evalkit.secrets.cleaning import keep_secret
    from evalkit.secrets.urls import clean_url, credentials_of

    for secret in credentials_of(medium.base_url):
        keep_secret(secret)
    return msgspec.structs.replace(medium, base_url=clean_url(medium.base_url))


def replay_medium(folder: Path) -> tuple[Medium, Origin]:
    """The medium that replays a folder of cassettes, and where they come from."""
    from evalkit.models.cassettes import read_origin

    origin = read_origin(folder)
    medium = Medium(
        model=origin.model,
        dialect=origin.dialect,
        streamed=origin.streamed,
        replay=str(folder),
        probe=origin.probe,
    )
    return medium, origin


def recorded_scenarios(folder: Path, origin: Origin) -> list[Scenario]:
    """The scenarios that a folder's recordings are of: from their files, else from the shipped library.

    MediumError names one that is in neither place.
    """
    from evalkit.scenarios.suites import load_suites

    found = []
    for name in origin.scenarios:
        place, _ = origin.sources.get(name, ("", ""))
        file = folder / place
        suite = str(file) if place and file.is_file() else name
        try:
            named = [scenario for scenario in load_suites((suite,)) if scenario.name == name]
        except ScenarioError as error:
            named = []
            if suite != name:
                raise MediumError(str(error)) from None
        if not named:
            where = (
                f"{file} has it no more" if suite != name else f"there is no {file}" if place else "no file"
            )
            raise MediumError(f"{folder}: recorded of scenario {name!r}, and {where}; name its file")
        found.extend(named)
    return found


def note_recording(
    medium: Medium, scenarios: tuple[Scenario, ...], strategies: tuple[str, ...], seeds: int
) -> None:
    """Note in a folder of cassettes where they come from and what was run, so that it can be run again.

    What was recorded there before stays noted. MediumError where that is of another model or dialect.
    """
    from evalkit.models.cassettes import INDEX, read_origin, write_origin

    if medium.record is None:
        return
    folder, medium = Path(medium.record), kept_medium(medium)
    dialect, url = medium.dialect, "evalkit's scripted server"
    if medium.live:
        dialect, url, _ = provider_of(medium)
        url = medium.base_url or url
    origin = _origin(msgspec.structs.replace(medium, dialect=dialect), url)
    names = tuple(scenario.name for scenario in scenarios)
    sources = {
        scenario.name: (os.path.relpath(scenario.place, folder), scenario.digest)
        for scenario in scenarios
        if os.path.isfile(scenario.place)
    }
    if (folder / INDEX).is_file():
        before = read_origin(folder)
        for field in ("model", "dialect", "streamed"):
            was, now = getattr(before, field), getattr(origin, field)
            if was != now:
                raise MediumError(f"--record {folder}: holds recordings with {field} {was}, not {now}")
        names = tuple(dict.fromkeys((*before.scenarios, *names)))
        strategies = tuple(dict.fromkeys((*before.strategies, *strategies)))
        seeds, sources = max(before.seeds, seeds), {**before.sources, **sources}
    origin = msgspec.structs.replace(
        origin, scenarios=names, strategies=strategies, seeds=seeds, sources=sources, probe=medium.probe
    )
    write_origin(folder, origin)


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
        from evalkit.runs.live import Live

        return Live(medium)
    if medium.dialect is None:
        return run_episode
    return _Wire(medium) if medium.replay is None else _Replay(medium)


def replayer(medium: Medium) -> Recorded | None:
    """What plays the recordings of a live run again, watched; None where nothing was recorded."""
    taped = medium.replay or medium.record
    if not medium.live or taped is None:
        return None
    from evalkit.runs.live import Live

    return Live(msgspec.structs.replace(medium, record=None, replay=taped, max_usd=None, max_tokens=None))


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


class OnTape:
    """What the media with recordings share: the tape of a cell, and a client that goes through it.

    ``secrets`` are never written into a tape.
    """

    def __init__(self, medium: Medium, recorded_from: str, secrets: tuple[str, ...] = ()) -> None:
        self.medium = medium
        self.secrets = secrets
        self._tapes: dict[Path, Tape] = {}
        self._lock = threading.Lock()
        self.origin = _origin(medium, recorded_from)
        self.dialect: Dialect = medium.dialect  # type: ignore[assignment]

    def tape(self, arena: Arena, seed: int) -> Tape:
        """The cassette of a scenario and seed."""
        from evalkit.models.cassettes import cassette_file

        folder = Path(self.medium.record or self.medium.replay or "")
        seed = seed if self.medium.live else arena.seed(seed)
        file = cassette_file(folder, arena.scenario.name, seed)
        with self._lock:
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
        from evalkit.drivers.over_sdk import RemoteInstruments, opening
        from evalkit.drivers.recorded import Shadowed
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
