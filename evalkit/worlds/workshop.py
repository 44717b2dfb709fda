"""Temporary folders that do not outlive their use, not even a kill."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from evalkit.worlds.isolation import kill_strays

_PREFIX = "evalkit-world-"
_LOCK = ".lock"


@contextmanager
def workshop() -> Iterator[tuple[Path, Path]]:
    """An empty folder to work in and a scratch folder beside it; both are gone afterwards.

    A lock file beside them is held for as long as this process lives, so that whoever starts next can tell
    what a killed process left.
    """
    _sweep_once(tempfile.gettempdir())
    handle, lock = _locked()
    base = Path(lock.removesuffix(_LOCK))
    try:
        folder, scratch = base / "folder", base / "scratch"
        folder.mkdir(parents=True)
        scratch.mkdir()
        yield folder, scratch
    finally:
        remove(base)
        # Whoever cleans temporary files may have taken it.
        Path(lock).unlink(missing_ok=True)
        os.close(handle)


def _locked() -> tuple[int, str]:
    """A new lock file, held. One that a sweep took between making and locking is made again."""
    while True:
        handle, lock = tempfile.mkstemp(_LOCK, _PREFIX)
        fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            if os.stat(lock).st_ino == os.fstat(handle).st_ino:
                return handle, lock
        except FileNotFoundError:
            pass
        os.close(handle)


@lru_cache(maxsize=16)
def _sweep_once(place: str) -> None:
    sweep(Path(place))


def sweep(place: Path) -> int:
    """Remove what killed processes of this user left in a folder of temporary files; how many there were."""
    found = 0
    for lock in place.glob(f"{_PREFIX}*{_LOCK}"):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_uid == os.getuid():
                base = Path(str(lock).removesuffix(_LOCK))
                kill_strays(base / "folder")
                remove(base)
                lock.unlink(missing_ok=True)
                found += 1
        except OSError:
            continue
        finally:
            os.close(handle)
    return found


def remove(folder: Path) -> None:
    """Remove a folder, also where a command took away the right to."""
    if not folder.is_dir() or folder.is_symlink():
        return
    folder.chmod(0o700)
    for inside, folders, _ in os.walk(folder):
        for name in folders:
            below = os.path.join(inside, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
