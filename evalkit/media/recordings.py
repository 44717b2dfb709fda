"""Recordings of runs: where a folder of them comes from, and the tape of each cell."""

from __future__ import annotations

import datetime
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from evalkit.media.medium import Medium, MediumError, kept_medium, provider_of
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.scoring.arena import Arena

if TYPE_CHECKING:
    from evalkit.models.cassettes import Origin, Tape
    from evalkit.wire.dialects import Dialect


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
        provider = provider_of(medium)
        dialect, url = provider.dialect, medium.base_url or provider.url
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
