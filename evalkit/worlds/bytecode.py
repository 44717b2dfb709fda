"""Compiled modules for the Python of isolated runs, made once in a process and only read by the runs.

Without it every pytest run would compile pytest anew where its modules were installed uncompiled: a second
instead of a fifth of one.
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from evalkit.worlds.isolation import Bounds, run_isolated
from evalkit.worlds.workshop import workshop


@lru_cache(maxsize=1)
def pytest_bytecode() -> Path:
    """The folder of pytest's modules, compiled by a run without tests; removed when this process ends."""
    kept = ExitStack()
    folder, scratch = kept.enter_context(workshop())
    atexit.register(_remove, kept, os.getpid())
    cache = scratch / "bytecode"
    options = ("-q", f"--junitxml={scratch / 'report.xml'}", "-p", "no:cacheprovider")
    (folder / "test_nothing.py").write_text("def test_nothing():\n    assert True\n", encoding="utf-8")
    writes = {"PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    run_isolated(
        shlex.join([sys.executable, "-m", "pytest", *options]), folder, scratch, Bounds(seconds=60), writes
    )
    return cache


def _remove(kept: ExitStack, owner: int) -> None:
    """A forked child has the same note, and must leave its parent's folder alone."""
    if os.getpid() == owner:
        kept.close()


def for_command(command: str) -> dict[str, str]:
    """What a command's environment needs in order to read the compiled modules."""
    return {"PYTHONPYCACHEPREFIX": str(pytest_bytecode())} if "pytest" in command else {}
