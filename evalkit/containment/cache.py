"""Where evalkit keeps what can be made again."""

from __future__ import annotations

import os
from pathlib import Path

#: Names another folder for it.
CACHE = "EVALKIT_CACHE"


def cache_base() -> Path | None:
    """The user's folder for it; None where no home is known."""
    named = os.environ.get(CACHE)
    if named:
        return Path(named).expanduser().resolve()
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evalkit"
    except RuntimeError:
        return None
