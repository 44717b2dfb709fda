"""Temporary folders that do not outlive their use, not even a kill, whatever was done in them."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from evalkit.containment.strays import end_strays

#: The line of an environment that names the folder a program belongs to.
MARK = "EVALKIT_FOLDER"
#: Every folder that evalkit makes for a while has it.
PREFIX = "evalkit-"
_LOCK = ".lock"
#: Bytes without which nothing is begun: what fails for want of them says nothing of whoever is judged.
ROOM = 1 << 20
# From linux/fs.h; immutable and append-only.
_GETFLAGS, _SETFLAGS, _HELD = 0x80086601, 0x40086602, 0x10 | 0x20


class NoRoom(RuntimeError):
    """The disk of temporary files is full: evalkit's own failure; one line."""


def need_room(folder: str | Path) -> None:
    """NoRoom where the disk of a folder has less than :data:`ROOM` left, in bytes or in files."""
    folder = Path(folder)
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    disk = os.statvfs(folder)
    left = disk.f_bavail * disk.f_frsize
    if left < ROOM:
        raise NoRoom(
            f"the disk of temporary files is full: {left >> 10:,} KB left in {folder}, "
            f"at least {ROOM >> 10:,} KB are needed"
        )
    if disk.f_files and not disk.f_favail:
        raise NoRoom(f"the disk of temporary files is full: {folder} can hold no more files")


class Held:
    """An empty folder of one's own, made at once and gone with :meth:`close`.

    A lock file beside it is held for as long as this process lives, so that whoever starts next can tell
    what a killed process left. NoRoom where the disk is full.
    """

    def __init__(self, kind: str) -> None:
        place = tempfile.gettempdir()
        _sweep_once(place)
        need_room(place)
        self._owner = os.getpid()
        self._handle, lock = _locked(kind)
        self._lock = Path(lock)
        self.folder = Path(lock.removesuffix(_LOCK))
        try:
            self.folder.mkdir()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError) and error.errno == errno.ENOSPC:
                need_room(place)
            raise

    @property
    def mark(self) -> str:
        """The line of the environment of all that belongs to this folder."""
        return f"{MARK}={self.folder}"

    def close(self) -> None:
        """Remove it."""
        # A copy of this process that ends has no part in it.
        if self._handle < 0 or self._owner != os.getpid():
            return
        remove(self.folder)
        # Whoever cleans temporary files may have taken it.
        self._lock.unlink(missing_ok=True)
        os.close(self._handle)
        self._handle = -1


@contextmanager
def temporary_folder(kind: str) -> Iterator[Held]:
    """A folder for a while."""
    folder = Held(kind)
    try:
        yield folder
    finally:
        folder.close()


def _locked(kind: str) -> tuple[int, str]:
    """A new lock file, held. One that a sweep took between making and locking is made again."""
    while True:
        handle, lock = tempfile.mkstemp(_LOCK, f"{PREFIX}{kind}-")
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
    for lock in place.glob(f"{PREFIX}*{_LOCK}"):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_uid == os.getuid():
                folder = Path(str(lock).removesuffix(_LOCK))
                end_strays(f"{MARK}={folder}")
                remove(folder)
                lock.unlink(missing_ok=True)
                found += 1
        except OSError:
            continue
        finally:
            os.close(handle)
    return found


def remove(folder: str | Path) -> None:
    """Remove a folder, whatever was done in it: rights taken away, held files, folders nested without end.

    Links are not followed. What the system does not let go of stays.
    """
    top = os.fspath(folder)
    if os.path.islink(top) or not os.path.isdir(top):
        _unlink(top)
        return
    number = 0
    waiting = [top]
    emptied = []
    while waiting:
        inside = waiting.pop()
        emptied.append(inside)
        _unlock(inside)
        try:
            entries = list(os.scandir(inside))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                _unlink(entry.path)
            elif inside == top:
                waiting.append(entry.path)
            else:
                # Brought up, so that no path grows longer than the system takes.
                number += 1
                above = os.path.join(top, f".removed-{os.getpid()}-{number}")
                _unlock(entry.path)
                with suppress(OSError):
                    os.rename(entry.path, above)
                    waiting.append(above)
    for inside in reversed(emptied):
        with suppress(OSError):
            os.rmdir(inside)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except PermissionError:
        _unlock(path)
        with suppress(OSError):
            os.unlink(path)
    except OSError:
        pass


def _unlock(path: str) -> None:
    """Take back the rights to a file or folder, and that nothing may change it."""
    with suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) and mode & 0o700 != 0o700:
            os.chmod(path, 0o700)
        if stat.S_ISLNK(mode) or not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            return
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            (flags,) = struct.unpack("l", fcntl.ioctl(handle, _GETFLAGS, struct.pack("l", 0)))
            if flags & _HELD:
                fcntl.ioctl(handle, _SETFLAGS, struct.pack("l", flags & ~_HELD))
        finally:
            os.close(handle)
    with suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            os.chmod(path, 0o700)
