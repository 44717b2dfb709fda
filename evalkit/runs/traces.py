"""The records of foreign episodes in a run folder: they cannot be played again."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec

from evalkit.harnesses.records import Kept

FOLDER = "traces"


def trace_file(folder: Path, cell: int) -> Path:
    """Where the record of a foreign episode is kept."""
    return folder / FOLDER / f"{cell:06d}.json.gz"


def keep_trace(folder: Path, cell: int, kept: Kept) -> None:
    """Keep the record of a foreign episode."""
    file = trace_file(folder, cell)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(msgspec.json.encode(kept), mtime=0))


def read_trace(folder: Path, cell: int) -> Kept | None:
    """The record of a foreign episode; None where none is kept."""
    file = trace_file(folder, cell)
    return msgspec.json.decode(gzip.decompress(file.read_bytes()), type=Kept) if file.is_file() else None
