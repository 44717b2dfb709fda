"""This process's own environment, kept from whoever reads its ``/proc`` folder."""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def hide_environment() -> bool:
    """Empty what ``/proc/PID/environ`` shows of this process; its own variables stay. Whether it was done.

    The system shows the place where the environment stood when the program began. The variables are written
    elsewhere, by the C library, and that place is filled with zeros. Keys stay in this process's memory.
    """
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        # env_start and env_end, the 50th and 51st field of proc(5).
        start, end = int(fields[47]), int(fields[48])
    except (OSError, ValueError, IndexError):
        return False
    if not 0 < start < end or end - start > 1 << 24:
        return False
    for name, value in os.environb.items():
        os.putenv(name, value)
    ctypes.memset(start, 0, end - start)
    return True
