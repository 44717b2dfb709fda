"""Files that somebody who is judged has written: opened without waiting, and read no further than wanted."""

from __future__ import annotations

import os
import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a link"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NoPlainFile(ValueError):
    """Something else than a file stands where a file is to be; the message is what it is."""


def read_plain(file: Path, most: int) -> bytes | None:
    """Up to ``most`` bytes of a file; None where there is none, NoPlainFile where it is something else."""
    try:
        mode = os.lstat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise NoPlainFile(error.strerror or "unreadable") from None
    for is_kind, name in _KINDS:
        if is_kind(mode):
            raise NoPlainFile(name)
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoPlainFile(error.strerror or "unreadable") from None
    with open(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise NoPlainFile("no file")
        return stream.read(most)
