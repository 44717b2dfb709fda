"""Commands in a folder of their own: clean environment, under a guard, limits of time, memory, output.

Where the machine can give it, a command has the files of the system's programs and its own, and no network;
elsewhere this keeps slips inside, and a command that sets out to read the machine can.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import IO

import msgspec

from evalkit.containment.folders import MARK, need_room
from evalkit.containment.guarded import Guarded, Limits, Roots
from evalkit.containment.machine import SYSTEM, this_machine

_SYSTEM = (
    "Applications|Library|System|Users|Volumes|bin|boot|dev|etc|home|lib|lib64|media|mnt|opt|private|proc"
    "|root|run|sbin|srv|sys|tmp|usr|var"
)
_END = r"""(?=[\s'"`:;|&)]|$)"""
_REST = r"""[^\s'"`:;|&)]*"""
_OUTSIDE = re.compile(
    rf"""(?:^|[\s'"`=:<>|&;(,])(?P<path>"""
    rf"~{_REST}"  # someone's home
    rf"|/(?:{_SYSTEM})(?:/{_REST}|{_END})"  # a path of the machine, and not a pattern such as /x/
    rf"|/{_END}"
    rf"""|(?:[^\s'"`=:<>|&;(,]*/)?\.\.(?:/{_REST}|{_END}))"""
)
#: This Python as a command finds it, whose way may not lead through folders that it does not see.
PYTHON = os.path.join(os.path.realpath(os.path.dirname(sys.executable)), os.path.basename(sys.executable))
_DEVICES = ("null", "zero", "random", "urandom", "stdin", "stdout", "stderr")
_HARMLESS = frozenset({*(f"/dev/{name}" for name in _DEVICES), "/usr/bin/env", "/bin/sh"})


class Bounds(msgspec.Struct, frozen=True):
    """Limits of a command: wall time in seconds, memory of a process and size of a file in MB, characters
    of output that are kept, processes at a time, MB that it may write in all."""

    seconds: float = 30.0
    memory_mb: int = 2_048
    file_mb: int = 16
    output: int = 20_000
    processes: int = 256
    written_mb: int = 256


class Finished(msgspec.Struct, frozen=True, gc=False):
    """How a command ended. ``status``: its exit status, 128 and more for a signal, None when out of time."""

    status: int | None
    output: str


def leaves_folder(command: str) -> str | None:
    """The first path in a command that leads out of the folder: absolute, ``~`` or with ``..``."""
    for found in _OUTSIDE.finditer(command):
        if found["path"] not in _HARMLESS:
            return found["path"]
    return None


@lru_cache(maxsize=1)
def _search_path() -> str:
    git = shutil.which("git")
    places = [os.path.dirname(PYTHON), *([os.path.dirname(git)] if git else []), "/usr/bin", "/bin"]
    return ":".join(dict.fromkeys(places))


@lru_cache(maxsize=1)
def readable() -> tuple[str, ...]:
    """The folders that a command may read: the system's programs, and this Python with its packages."""
    git = shutil.which("git")
    places = (
        os.path.realpath(sys.prefix),
        sys.base_prefix,
        *([os.path.dirname(os.path.realpath(git))] if git else []),
    )
    inside = tuple(f"{place}/" for place in SYSTEM)
    return (*SYSTEM, *(place for place in dict.fromkeys(places) if not f"{place}/".startswith(inside)))


def clean_environment(home: Path) -> dict[str, str]:
    """All that a command sees of the environment: nothing of the user's, the same on every run."""
    return {
        "PATH": _search_path(),
        "HOME": str(home),
        "TMPDIR": str(home),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "-p no:cacheprovider",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "GIT_PAGER": "cat",
        "GIT_AUTHOR_NAME": "agent",
        "GIT_AUTHOR_EMAIL": "agent@example.invalid",
        "GIT_AUTHOR_DATE": "2026-01-01T00:00:00+0000",
        "GIT_COMMITTER_NAME": "agent",
        "GIT_COMMITTER_EMAIL": "agent@example.invalid",
        "GIT_COMMITTER_DATE": "2026-01-01T00:00:00+0000",
    }


def run_isolated(
    command: str,
    folder: Path,
    scratch: Path,
    bounds: Bounds,
    extra: Mapping[str, str] = {},
    seen: tuple[str, ...] = (),
) -> Finished:
    """Run a shell command in ``folder``; ``scratch``, beside it, is its home.

    ``extra`` goes on top of the clean environment; ``seen`` are folders to read beside the system's. When it
    returns, no process of the command is left.
    """
    need_room(folder)
    environment = {**clean_environment(scratch), **extra, MARK: str(folder.parent)}
    with tempfile.TemporaryFile(dir=folder.parent) as sink:
        guarded = Guarded(
            ["/bin/sh", "-c", command],
            environment,
            folder,
            Limits(
                processes=bounds.processes,
                memory_mb=2 * bounds.memory_mb,
                written_mb=bounds.written_mb,
                cpu_s=max(1, int(bounds.seconds) + 1),
                file_mb=bounds.file_mb,
                address_mb=bounds.memory_mb,
                open_files=1_024,
            ),
            watched=(folder, scratch),
            network=False,
            roots=Roots((*readable(), *seen), (str(folder.parent),)),
            mark=f"{MARK}={folder.parent}",
            machine=this_machine(),
            stdout=sink,
            stderr=subprocess.STDOUT,
        )
        try:
            in_time = guarded.wait(bounds.seconds)
        finally:
            guarded.kill()
        text = _kept(sink, bounds.output)
    need_room(folder.parent)
    for path, name in ((folder, "/folder"), (scratch, "/home")):
        text = text.replace(str(path), name)
    if guarded.over:
        return Finished(_KILLED, f"{text}\n[ended: it {guarded.over}]".lstrip("\n"))
    code = guarded.code
    if not in_time or code is None:
        return Finished(None, text)
    return Finished(code if code >= 0 else 128 - code, text)


#: The status of a shell's command that was killed.
_KILLED = 137


def _kept(output: IO[bytes], characters: int) -> str:
    """The beginning of an output as text, and a note of what was left out."""
    size = output.seek(0, os.SEEK_END)
    output.seek(0)
    text = output.read(characters * 4).decode("utf-8", "replace")
    if len(text) > characters or size > characters * 4:
        return f"{text[:characters]}\n[the output is {size:,} bytes long; the rest is left out]"
    return text
