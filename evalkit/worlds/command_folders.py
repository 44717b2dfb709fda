"""The folders that a command of a world works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalkit.containment.folders import temporary_folder


@contextmanager
def workshop() -> Iterator[tuple[Path, Path]]:
    """An empty folder to work in and a scratch folder beside it; both are gone afterwards.

    NoRoom where the disk of temporary files is full.
    """
    with temporary_folder("world") as own:
        folder, scratch = own.folder / "folder", own.folder / "scratch"
        folder.mkdir()
        scratch.mkdir()
        yield folder, scratch
