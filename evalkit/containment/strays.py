"""Processes that are left of a program whose guard is gone, found by a line of their environment."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from evalkit.containment import system_view

#: How often to look for processes that are left.
_LOOKS = 200


def end_strays(mark: str, session: int = 0) -> int:
    """End what carries a mark, ``NAME=value``, or belongs to a session; how many were found.

    A killed process takes a moment to be gone, so it looks again until there is none. Where the system does
    not let us look, it finds nothing.
    """
    found: set[int] = set()
    for _ in range(_LOOKS):
        left = {process for process in system_view.numbers() if _carries(process, os.fsencode(mark), session)}
        if not left:
            break
        found |= left
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)
    return len(found)


def _carries(process: int, mark: bytes, session: int) -> bool:
    try:
        stat = system_view.stat_of(process)
        if system_view.is_dead(stat) or process == os.getpid():
            return False
        if session and int(stat[3]) == session:
            return True
        if not mark:
            return False
        with open(f"/proc/{process}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except (OSError, ValueError):
        return False
