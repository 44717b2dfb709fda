"""The records of foreign episodes in a run folder: they cannot be played again."""

from __future__ import annotations

import gzip
import zlib
from contextlib import suppress
from pathlib import Path

import msgspec

from evalkit.harnesses.episode_record import Exchange, Kept
from evalkit.secrets.bodies import clean_json
from evalkit.secrets.cleaning import clean_text

FOLDER = "traces"
#: Bytes of a record, unpacked, at most.
LARGEST = 256 * 1024 * 1024


def trace_file(folder: Path, cell: int) -> Path:
    """Where the record of a foreign episode is kept."""
    return folder / FOLDER / f"{cell:06d}.json.gz"


def keep_trace(folder: Path, cell: int, kept: Kept) -> None:
    """Keep the record of a foreign episode, without the secrets in it."""
    file = trace_file(folder, cell)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = clean_json(msgspec.json.encode(kept).decode())
    file.write_bytes(gzip.compress(text.encode(), mtime=0))
    if kept.output and not kept.exchanges:
        # It asked for nothing: what it printed is all there is to look at.
        output_file(folder, cell).write_text(clean_text(kept.output), encoding="utf-8")


def output_file(folder: Path, cell: int) -> Path:
    """Where what a harness printed is kept that made no request."""
    return folder / FOLDER / f"{cell:06d}.txt"


def read_trace(folder: Path, cell: int) -> Kept | None:
    """The record of a foreign episode; None where none is kept, or what is there is no whole record."""
    file = trace_file(folder, cell)
    if not file.is_file():
        return None
    with suppress(OSError, EOFError, zlib.error, msgspec.DecodeError, RecursionError):
        with gzip.open(file) as stream:
            data = stream.read(LARGEST + 1)
        if len(data) <= LARGEST:
            kept = msgspec.json.decode(data, type=Kept)
            return kept if all(map(_is_whole, kept.exchanges)) else None
    return None


def _is_whole(exchange: Exchange) -> bool:
    """Whether all that a transcript shows of an exchange is there."""
    blocks = all(isinstance(block.get(name), str) for block in exchange.blocks for name in ("kind", "text"))
    return blocks and all(
        isinstance(result.get("text"), str) and "error" in result for result in exchange.results
    )
