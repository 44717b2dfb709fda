"""Processes that are left of a program whose guard is gone, found by a line of their environment."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

#: How often to look for processes that are left.
_LOOKS = 200


def end_strays(mark: str, session: int = 0) -> int:
    """End what carries a mark, ``NAME=value``, or belongs to a session; how many were found.

    A killed process takes a moment to be gone, so it looks again until there is none. Where the system does
    not let us look, it finds nothing.
    """
    found: set[int] = set()
    for _ in range(_LOOKS):
        left = {process for process in _numbers() if _carries(process, os.fsencode(mark), session)}
        if not left:
            break
        found |= left
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)
    return len(found)


def _numbers() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _carries(process: int, mark: bytes, session: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            state, _, _, its = file.read().rpartition(b")")[2].split()[:4]
        if state in (b"Z", b"X") or process == os.getpid():
            return False
        if session and int(its) == session:
            return True
        if not mark:
            return False
        with open(f"/proc/{process}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except (OSError, ValueError):
        return False
