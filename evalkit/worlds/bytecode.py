"""Compiled modules for the Python of isolated runs, made once in a process and only read by the runs.

Without it every pytest run would compile pytest anew where its modules were installed uncompiled: a second
instead of a fifth of one.
"""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from functools import lru_cache
from multiprocessing.util import Finalize
from pathlib import Path

from evalkit.worlds.base import WorldError
from evalkit.worlds.command_folders import workshop
from evalkit.worlds.isolation import Bounds, run_isolated


@lru_cache(maxsize=1)
def pytest_bytecode() -> Path:
    """The folder of pytest's modules, compiled by a run of one test; removed when this process ends.

    WorldError where pytest cannot run here, so that no test is called red for that.
    """
    kept = ExitStack()
    folder, scratch = kept.enter_context(workshop())
    # Unlike atexit this also runs in the workers of a pool, and not in a fork of this process.
    Finalize(None, kept.close, exitpriority=0)
    cache = scratch / "bytecode"
    (folder / "test_nothing.py").write_text("def test_nothing():\n    assert True\n", encoding="utf-8")
    command = shlex.join([sys.executable, "-m", "pytest", "-q", f"--junitxml={scratch / 'report.xml'}"])
    writes = {"PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": ""}
    finished = run_isolated(command, folder, scratch, Bounds(seconds=120), writes)
    if finished.status != 0:
        kept.close()
        raise WorldError(f"pytest cannot run here: {' '.join(finished.output.split())[-300:] or 'no time'}")
    return cache


def for_command(command: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a command needs to read the compiled modules: variables, and the folders to read."""
    if "pytest" not in command:
        return {}, ()
    folder = str(pytest_bytecode())
    return {"PYTHONPYCACHEPREFIX": folder}, (folder,)
