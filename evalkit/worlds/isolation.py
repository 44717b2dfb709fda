"""Commands in a folder of their own: clean environment, own process group, limits of time, memory, output.

This keeps slips inside and makes runs repeatable. It is no jail: a command that sets out to read the machine
can. For models that are not trusted, run evalkit itself in a container.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

#: Every process of a command has it, so that those which leave the group are found.
MARK = "EVALKIT_FOLDER"
#: How often to look for processes that are left.
_LOOKS = 200

# The shell sets the limits and becomes the command: nothing runs between fork and exec in this process.
# Some systems refuse one of them (macOS: memory).
_LIMITED = (
    '{ ulimit -c 0; ulimit -t "$1"; ulimit -f "$2"; ulimit -v "$3"; } 2>/dev/null; exec /bin/sh -c "$4"'
)

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
_DEVICES = ("null", "zero", "random", "urandom", "stdin", "stdout", "stderr")
_HARMLESS = frozenset({*(f"/dev/{name}" for name in _DEVICES), "/usr/bin/env", "/bin/sh"})


class Bounds(msgspec.Struct, frozen=True):
    """Limits of a command: wall time in seconds, memory of a process and size of a file in MB, characters
    of output that are kept."""

    seconds: float = 30.0
    memory_mb: int = 2_048
    file_mb: int = 16
    output: int = 20_000


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
    places = [os.path.dirname(sys.executable), *([os.path.dirname(git)] if git else []), "/usr/bin", "/bin"]
    return ":".join(dict.fromkeys(places))


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
    command: str, folder: Path, scratch: Path, bounds: Bounds, extra: Mapping[str, str] = {}
) -> Finished:
    """Run a shell command in ``folder``; ``scratch``, beside it, is its home and takes its output.

    ``extra`` goes on top of the clean environment. When it returns, no process of the command is left.
    """
    environment = {**clean_environment(scratch), **extra, MARK: str(folder)}
    limits = (max(1, int(bounds.seconds) + 1), bounds.file_mb * 2_048, bounds.memory_mb * 1_024)
    output = scratch / ".output"
    with output.open("wb") as sink:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _LIMITED, "sh", *map(str, limits), command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            in_time = _wait(process, bounds.seconds)
        finally:
            _kill_group(process.pid)
            process.wait()
            kill_strays(folder)
    status = process.returncode
    text = _kept(output, bounds.output)
    for path, name in ((folder, "/folder"), (scratch, "/home")):
        text = text.replace(str(path), name)
    return Finished(None if not in_time else status if status >= 0 else 128 - status, text)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether a process ends in time. It is not reaped, so that its group's number stays its own."""
    if not hasattr(os, "pidfd_open"):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
    handle = os.pidfd_open(process.pid)
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def _kill_group(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def kill_strays(folder: Path) -> None:
    """End what a command of ``folder`` left behind outside its group, where the system lets us look.

    A killed process takes a moment to be gone, so it looks again until there is none.
    """
    mark = os.fsencode(f"{MARK}={folder}")
    for _ in range(_LOOKS):
        left = [process for process, environment in _environments() if mark in environment.split(b"\0")]
        if not left:
            return
        for process in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def _environments() -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    try:
        names = os.listdir("/proc")
    except OSError:
        return found
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                found.append((int(name), file.read()))
        except OSError:
            continue
    return found


def _kept(output: Path, characters: int) -> str:
    """The beginning of an output as text, and a note of what was left out."""
    size = output.stat().st_size
    with output.open("rb") as file:
        text = file.read(characters * 4).decode("utf-8", "replace")
    if len(text) > characters or size > characters * 4:
        return f"{text[:characters]}\n[the output is {size:,} bytes long; the rest is left out]"
    return text
