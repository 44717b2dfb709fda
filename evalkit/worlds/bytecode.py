"""Compiled modules for the pytest of isolated runs, which only read them.

Where pytest was installed uncompiled, they are made once in a process: else every run would compile pytest
anew, a second instead of a fifth of one.
"""

from __future__ import annotations

import shlex
import struct
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from importlib.util import MAGIC_NUMBER
from multiprocessing.util import Finalize
from pathlib import Path

from evalkit.worlds import command_cache
from evalkit.worlds.base import WorldError
from evalkit.worlds.command_folders import workshop
from evalkit.worlds.isolation import PYTHON, Bounds, run_isolated

_WORKS = ("pytest runs one test",)


def for_command(command: str) -> tuple[dict[str, str], tuple[str, ...]]:
    """What a command needs to read the compiled modules: variables, and the folders to read.

    WorldError where pytest cannot run here, so that no test is called red for that.
    """
    folder = pytest_bytecode() if "pytest" in command else None
    return ({}, ()) if folder is None else ({"PYTHONPYCACHEPREFIX": str(folder)}, (str(folder),))


@lru_cache(maxsize=1)
def pytest_bytecode() -> Path | None:
    """The folder of pytest's modules, compiled by a run of one test; removed when this process ends.

    None where they lie compiled beside their sources. WorldError as :func:`for_command`.
    """
    if _installed_compiled():
        with command_cache.in_turn(_WORKS):
            if not command_cache.get(_WORKS, bool):
                with workshop() as (folder, scratch):
                    _run_one_test(folder, scratch, {})
                command_cache.put(_WORKS, True)
        return None
    kept = ExitStack()
    folder, scratch = kept.enter_context(workshop())
    # Unlike atexit this also runs in the workers of a pool, and not in a fork of this process.
    Finalize(None, kept.close, exitpriority=0)
    cache = scratch / "bytecode"
    try:
        _run_one_test(folder, scratch, {"PYTHONPYCACHEPREFIX": str(cache), "PYTHONDONTWRITEBYTECODE": ""})
    except WorldError:
        kept.close()
        raise
    return cache


def _run_one_test(folder: Path, scratch: Path, variables: Mapping[str, str]) -> None:
    (folder / "test_nothing.py").write_text("def test_nothing():\n    assert True\n", encoding="utf-8")
    command = shlex.join([PYTHON, "-m", "pytest", "-q", f"--junitxml={scratch / 'report.xml'}"])
    finished = run_isolated(command, folder, scratch, Bounds(seconds=120), variables)
    if finished.status != 0:
        raise WorldError(f"pytest cannot run here: {' '.join(finished.output.split())[-300:] or 'no time'}")


def _installed_compiled() -> bool:
    """Whether each of pytest's modules lies compiled where it is installed."""
    sources = [file for folder in command_cache.pytest_folders() for file in Path(folder).rglob("*.py")]
    return bool(sources) and all(map(_is_compiled, sources))


def _is_compiled(source: Path) -> bool:
    """Whether Python finds a module compiled from this very source, as it tells by its time and size."""
    compiled = source.parent / "__pycache__" / f"{source.stem}.{sys.implementation.cache_tag}.pyc"
    try:
        about = source.stat()
        with compiled.open("rb") as file:
            head = file.read(16)
    except OSError:
        return False
    time, size = (number & 0xFFFF_FFFF for number in (int(about.st_mtime), about.st_size))
    return head == struct.pack("<4sIII", MAGIC_NUMBER, 0, time, size)
