"""Results of commands in folders, kept across runs: a command is taken to depend on its folder alone.

An entry is found by all that its result follows from: the folder's content, the command, its bounds, and the
tools of this machine. It is kept only where a guarded command has none of the user's files, so that no
command can write there. It holds no object of Python's. :data:`SWITCH` set to ``off`` turns it off.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import sqlite3
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from evalkit.containment.cache import cache_base
from evalkit.containment.machine import this_machine
from evalkit.worlds.isolation import clean_environment, readable

SWITCH = "EVALKIT_KEPT_COMMANDS"
#: Bytes of one entry, and of all: beyond them the entries that were used least lately go.
LARGEST, MOST = 2_000_000, 128_000_000
#: Seconds that a process waits for another one's writing.
_PATIENCE = 2.0

Value = TypeVar("Value")


@lru_cache(maxsize=1)
def tools() -> bytes:
    """The hash of what else a command's result depends on, as it was when this process first asked.

    The system, this Python with its packages, git and the shell; evalkit's own way of running commands.
    Whoever installs, upgrades or replaces one of them finds no old result.
    """
    whole = hashlib.blake2b(digest_size=16)
    told = (sys.version, platform.platform(), clean_environment(Path("/home")), this_machine())
    whole.update(repr(told).encode())
    programs = [sys.executable, *(shutil.which(name) or name for name in ("git", "sh", "env"))]
    packages, testing = _package_folders(), pytest_folders()
    folders = [*clean_environment(Path("/home"))["PATH"].split(":"), *readable()]
    folders = [folder for folder in folders if folder not in ("/dev", *packages)]
    ours = Path(__file__).resolve().parents[1]
    inside = [*testing, *(str(ours / room) for room in ("containment", "worlds"))]
    files = [str(path) for place in inside for path in sorted(Path(place).glob("*.py"))]
    for path in dict.fromkeys([*programs, *folders, *files]):
        whole.update(repr((path, _state(path))).encode())
    for path in dict.fromkeys([*packages, *inside]):
        whole.update(repr((path, _entries(path))).encode())
    return whole.digest()


def _package_folders() -> list[str]:
    return [sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")]


def pytest_folders() -> list[str]:
    """Where pytest's modules lie, if they do."""
    return [
        str(Path(place) / name) for place in _package_folders() for name in ("pytest", "_pytest", "pluggy")
    ]


def _state(path: str) -> tuple[int, ...] | None:
    """What changes when a file is written, or something in a folder is added, replaced or taken away."""
    try:
        found = os.stat(os.path.realpath(path))
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _entries(path: str) -> list[tuple[str, int]]:
    """What stands in a folder of modules but for what Python itself compiles there when it is first used."""
    try:
        with os.scandir(path) as entries:
            return sorted((each.name, each.inode()) for each in entries if each.name != "__pycache__")
    except OSError:
        return []


def get(about: tuple[Any, ...], kind: type[Value]) -> Value | None:
    """The value kept for a question; None where there is none that can be used."""
    base = _base(os.getpid())
    if base is None:
        return None
    try:
        row = base.execute("select value, used from kept where name = ?", (_name(about),)).fetchone()
        if row is None:
            return None
        value = msgspec.msgpack.decode(row[0], type=kind)
        newest = base.execute("select coalesce(max(used), 0) from kept").fetchone()[0]
        if row[1] < newest - _FRESH:
            base.execute("update kept set used = ? where name = ?", (newest + 1, _name(about)))
    except (sqlite3.Error, msgspec.DecodeError):
        return None
    return value


#: Entries that are among so many newest ones are not noted anew when they are used.
_FRESH = 1_000


def put(about: tuple[Any, ...], value: object) -> None:
    """Keep a value for a question. Whatever stands in the way: it is not kept."""
    base = _base(os.getpid())
    if base is None:
        return
    try:
        data = msgspec.msgpack.encode(value)
        if len(data) > LARGEST:
            return
        base.execute(
            "insert or replace into kept select ?, ?, length(?), coalesce(max(used), 0) + 1 from kept",
            (_name(about), data, data),
        )
        (size,) = base.execute("select sum(size) from kept").fetchone()
        if size > MOST:
            base.execute(
                "delete from kept where name in (select name from (select name, sum(size) over "
                "(order by used desc, name) as upto from kept) where upto > ?)",
                (MOST * 3 // 4,),
            )
    except (sqlite3.Error, UnicodeEncodeError):
        return


@contextmanager
def in_turn(about: tuple[Any, ...]) -> Iterator[None]:
    """In here no other process works out the answer to a question for the first time: look once more.

    Whoever had to wait for another one, and finds that it kept nothing, works it out beside all others.
    """
    locks = _locks(os.getpid())
    if locks is None:
        yield
        return
    place = int.from_bytes(_name(about)[:7], "big")
    held = _lock(locks, fcntl.LOCK_EX | fcntl.LOCK_NB, place)
    if not held and _lock(locks, fcntl.LOCK_EX, place):
        _lock(locks, fcntl.LOCK_UN, place)
    try:
        yield
    finally:
        if held:
            _lock(locks, fcntl.LOCK_UN, place)


def _lock(locks: int, how: int, place: int) -> bool:
    """Whether it was done. Some file systems have no locks: then each works for itself."""
    try:
        fcntl.lockf(locks, how, 1, place)
    except OSError:
        return False
    return True


@lru_cache(maxsize=2)
def _locks(process: int) -> int | None:
    """A process's handle of the file whose bytes are its locks; they go with the process."""
    folder = cache_base()
    if _base(process) is None or folder is None:
        return None
    try:
        return os.open(folder / "commands.locks", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def _name(about: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr((about, tools())).encode("utf-8", "surrogatepass"), digest_size=24).digest()


@lru_cache(maxsize=2)
def _base(process: int) -> sqlite3.Connection | None:
    """A process's own connection, as none may outlive a fork; None where nothing is kept."""
    folder = cache_base()
    if os.environ.get(SWITCH) == "off" or folder is None or not this_machine().files:
        return None
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / "commands.sqlite"
        file.touch(mode=0o600)
        found = file.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            return None
        base = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        base.execute("pragma journal_mode = wal")
        base.execute("pragma synchronous = off")
        base.execute(
            "create table if not exists kept (name blob primary key, value blob, size integer, used integer)"
        )
        base.execute("create index if not exists by_use on kept (used)")
    except (OSError, sqlite3.Error):
        return None
    return base
