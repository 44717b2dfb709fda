"""The shared folder of real recordings, where there is one; tests that need it are skipped where not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def trajectories() -> Path:
    """The folder of real trajectories: below ``EVALKIT_SHARED``, or ``shared`` beside the repository."""
    base = os.environ.get("EVALKIT_SHARED")
    folder = Path(base) if base else Path(__file__).resolve().parents[3] / "shared"
    if not (folder / "real" / "trajectories").is_dir():
        pytest.skip("no shared folder of real trajectories")
    return folder / "real" / "trajectories"
