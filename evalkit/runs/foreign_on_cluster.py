"""Foreign harnesses on the workers of a cluster: brought there, set up there once, played there.

A harness travels as the files of its folder. On a worker they lie in the cache under their digest, and what
its environment holds is made there once. Records travel back with the rows: the parent alone writes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from evalkit.harnesses.command import Runner
from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.find import SHIPPED
from evalkit.harnesses.manifest import Harness
from evalkit.harnesses.pinned_environment import alone, cache_folder, set_up
from evalkit.runs.engine import EngineError
from evalkit.runs.plan import Plan, Span
from evalkit.runs.store import row_of, void_row
from evalkit.scoring.arena import Arena
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses
from evalkit.wire.server import Server

#: Bytes of a harness's folder, at most; and what of a folder stays behind.
LARGEST = 16 * 1024 * 1024
_LEFT = frozenset(("node_modules", "__pycache__", "reports"))


class Packed(msgspec.Struct, frozen=True):
    """A harness on its way: what it is, and the files of its folder; none where evalkit ships it."""

    harness: Harness
    files: dict[str, bytes]

    @property
    def digest(self) -> str:
        """A digest of all its files."""
        seen = hashlib.blake2b(digest_size=8)
        for name, content in sorted(self.files.items()):
            seen.update(f"{name}\0{len(content)}\0".encode() + content)
        return seen.hexdigest()


def pack(harness: Harness) -> Packed:
    """A harness as it travels. EngineError where its folder is too large."""
    if harness.folder.is_relative_to(SHIPPED):
        return Packed(harness, {})
    files: dict[str, bytes] = {}
    size = 0
    for file in _files(harness.folder):
        size += file.stat().st_size
        if size > LARGEST:
            raise EngineError(
                f"--engine dask: {harness.folder} is larger than {LARGEST >> 20} MB;"
                " give the harness a folder of its own, with a harness.toml"
            )
        files[file.relative_to(harness.folder).as_posix()] = file.read_bytes()
    return Packed(harness, files)


def _files(folder: Path) -> Iterator[Path]:
    for place in sorted(folder.iterdir()):
        if place.name.startswith(".") or place.name in _LEFT or place.is_symlink():
            continue
        if place.is_dir():
            yield from _files(place)
        elif place.is_file():
            yield place


def unpack(packed: Packed) -> Harness:
    """The harness where its files lie on this machine, its environment made."""
    harness = packed.harness
    if packed.files:
        folder = cache_folder() / "brought" / packed.digest
        folder.parent.mkdir(parents=True, exist_ok=True)
        with alone(folder.with_suffix(".lock")):
            for name, content in packed.files.items():
                file = folder / name
                if not file.is_file():
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(content)
        harness = msgspec.structs.replace(harness, folder=folder)
    set_up(harness, lambda said: None)
    return harness


class Visit:
    """The foreign harnesses of a plan in one worker process: a server, and a runner for each harness."""

    def __init__(self, plan: Plan, packed: dict[str, Packed]) -> None:
        self._plan = plan
        self._packed = packed
        self._harnesses: dict[str, Harness] = {}
        self._runners: dict[str, Runner] = {}
        self._server: Server | None = None

    def play(self, span: Span) -> Iterator[tuple[tuple[Any, ...], Kept | None]]:
        """The rows of a span's cells, each with its record."""
        name = self._plan.recipe.contenders[span.contender].harness
        for offset in range(span.seeds):
            seed = span.first_seed + offset
            place = (span.cell + offset, span.scenario, span.contender, seed)
            try:
                server, harness, runner = self._ready(name)
                contract = contract_of(harness)
                arena = Arena(self._plan.scenarios[span.scenario], contract.offered)
                episode, kept = run_foreign(arena, seed, contract, runner, server)
            except Exception as error:
                yield void_row(*place, f"{type(error).__name__}: {error}"), None
            else:
                yield row_of(*place, episode), kept

    def _ready(self, name: str) -> tuple[Server, Harness, Runner]:
        if self._server is None:
            self._server = server_for_harnesses().__enter__()
        if name not in self._runners:
            self._harnesses[name] = unpack(self._packed[name])
            self._runners[name] = runner_of(self._harnesses[name], fresh=self._plan.recipe.fresh)
        return self._server, self._harnesses[name], self._runners[name]

    def close(self) -> None:
        """End what was started."""
        for runner in self._runners.values():
            runner.close()
        if self._server is not None:
            self._server.__exit__(None, None, None)
        self._runners, self._server = {}, None
