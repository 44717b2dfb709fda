"""Which processes live, told by a word that only they have: numbers differ from namespace to namespace."""

from __future__ import annotations

import os
import time
from pathlib import Path


def living(word: str) -> list[int]:
    """The living processes with a word in their arguments or environment, this one left out."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        place = Path("/proc", name)
        try:
            if (place / "stat").read_text().rpartition(")")[2].split()[0] in "ZX" or int(name) == os.getpid():
                continue
            # The environment of a program of another namespace's root may not be read by everybody.
            told = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        except OSError:
            continue
        if word.encode() in told:
            found.append(int(name))
    return found


def gone(word: str, seconds: float = 2.0) -> bool:
    """Whether no such process is left within so many seconds."""
    end = time.monotonic() + seconds
    while living(word):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
