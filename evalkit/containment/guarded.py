"""A program under a guard: whatever it does, it and all that it starts are gone when it is ended."""

from __future__ import annotations

import errno
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from weakref import WeakSet

import msgspec

from evalkit.containment.environment import hide_environment
from evalkit.containment.strays import end_strays
from evalkit.containment.ways import Machine

#: Imported, not run as a script: so it is compiled once.
_GUARD = (
    f"import sys; sys.path.append({str(Path(__file__).parent)!r}); import guard; "
    "sys.exit(guard.main(sys.argv[1:]))"
)
#: Seconds that a guard gets to end everything.
_PATIENCE = 4.0


class Limits(msgspec.Struct, frozen=True):
    """What all processes of a program may take together, and what each of them may; 0 is no limit.

    Together: processes, memory in MB, MB and number of files in the watched folders. Each: seconds of
    processor time, MB of a file, MB of address space, open files.
    """

    processes: int = 512
    memory_mb: int = 4_096
    written_mb: int = 2_048
    files: int = 100_000
    cpu_s: int = 0
    file_mb: int = 1_024
    address_mb: int = 0
    open_files: int = 4_096


#: What a program may take where nothing else is said.
DEFAULT = Limits()

_running: WeakSet[Guarded] = WeakSet()
_closing = threading.Event()


def end_all() -> None:
    """This process ends: so does, at once, every program that it started, and none starts any more."""
    _closing.set()
    for guarded in list(_running):
        guarded.guard.terminate()


class Roots(msgspec.Struct, frozen=True):
    """The files that a program has: absolute paths to read, and to read and write. No other is there."""

    seen: tuple[str, ...]
    own: tuple[str, ...]


class Guarded:
    """A program that was started. OSError where it cannot be, with the system's reason.

    ``mark`` is a line of its environment that no other program has: where its guard itself is killed, what
    carries it is ended all the same. ``machine`` says how it can be held here. ``watched`` are the folders
    whose size is limited. ``network`` and ``roots`` leave it without one, and without all other files,
    where the machine can.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path,
        limits: Limits | None = None,
        *,
        watched: Sequence[str | Path] = (),
        network: bool = True,
        roots: Roots | None = None,
        mark: str = "",
        machine: Machine,
        stdin: int | IO[Any] = subprocess.DEVNULL,
        stdout: int | IO[Any],
        stderr: int | IO[Any],
    ) -> None:
        if _closing.is_set():
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        hide_environment()
        heard, told = os.pipe()
        if not machine.files:
            roots = None
        named = {
            "parent": os.getpid(),
            "status": told,
            "way": machine.way,
            "network": int(network or not machine.network),
            **msgspec.structs.asdict(limits or DEFAULT),
        }
        self._mark = mark
        #: How the command ended: its exit status, or minus the signal; None before, or where it was ended.
        self.code: int | None = None
        #: The limit that it went over.
        self.over = ""
        #: How many processes were running beside the first at its end.
        self.left = 0
        self._heard = heard
        self._said = b""
        try:
            self.guard = subprocess.Popen(
                [
                    *(sys.executable, "-I", "-S", "-c", _GUARD),
                    *(f"{name}={value}" for name, value in named.items()),
                    *(f"watched={place}" for place in watched),
                    *(f"seen={place}" for place in (roots.seen if roots else ())),
                    *(f"own={place}" for place in (roots.own if roots else ())),
                    "--",
                    *command,
                ],
                cwd=folder,
                env=dict(environment),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(told,),
                start_new_session=True,
            )
        except BaseException:
            os.close(heard)
            raise
        finally:
            os.close(told)
        self.pid = self.guard.pid
        _running.add(self)
        try:
            self._begin()
        except BaseException:
            self.kill()
            raise

    def _begin(self) -> None:
        """Wait until the command runs."""
        line = self._line()
        kind, _, rest = line.partition(" ")
        if kind == "refused":
            number = int(rest)
            raise OSError(number, os.strerror(number))
        # A command can be quicker than its guard, and end it first.
        if kind == "ended":
            self._said = f"{line}\n".encode() + self._said
        elif kind != "running" and (kind or self.guard.wait() >= 0):
            raise OSError(0, rest or "its guard does not start")

    def _line(self, seconds: float | None = None) -> str:
        """The next line that the guard told; empty where it is gone, or says nothing for so long."""
        while b"\n" not in self._said:
            if not _readable(self._heard, seconds):
                return ""
            piece = os.read(self._heard, 4096)
            if not piece:
                return ""
            self._said += piece
        line, _, self._said = self._said.partition(b"\n")
        return line.decode(errors="replace")

    @property
    def running(self) -> bool:
        """Whether it still runs; once it does not, nothing of it does."""
        if self.guard.poll() is None:
            return True
        self._ended()
        return False

    def wait(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        if hasattr(os, "pidfd_open") and self.guard.returncode is None:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(self.guard.pid)
                try:
                    _readable(handle, seconds)
                finally:
                    os.close(handle)
            return not self.running
        with suppress(subprocess.TimeoutExpired):
            self.guard.wait(seconds)
        return not self.running

    def kill(self) -> int:
        """End it and all that it started; how many processes were running beside the first."""
        if self.guard.poll() is None:
            self.guard.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.guard.wait(_PATIENCE)
        if self.guard.poll() is None:
            self.guard.kill()
            self.guard.wait()
        self._ended()
        for stream in (self.guard.stdin, self.guard.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        return self.left

    def _ended(self) -> None:
        """Hear the guards' last words: where the outer one was killed, the inner one ends everything yet."""
        if self._heard < 0:
            return
        told = False
        while line := self._line(_PATIENCE):
            kind, _, rest = line.partition(" ")
            if kind == "ended" and not told:
                code, left, why = rest.split(" ", 2)
                told = True
                self.code = None if code == "-" else int(code)
                self.left = int(left)
                self.over = why if why not in ("told", "parent") else ""
        _running.discard(self)
        os.close(self._heard)
        self._heard = -1
        if not told:
            self.left = max(self.left, end_strays(self._mark, self.guard.pid))
        if self.code is None and self.guard.returncode < 0:
            self.code = self.guard.returncode


def _readable(handle: int, seconds: float | None) -> bool:
    # Not select(2), which knows no descriptor above 1,023.
    asked = select.poll()
    asked.register(handle, select.POLLIN)
    return bool(asked.poll(None if seconds is None else seconds * 1000))


def told_exit(code: int | None) -> str:
    """How a process ended, in words: ``exit:N`` or ``signal:NAME``."""
    if code is None:
        return "running"
    if code >= 0:
        return f"exit:{code}"
    with suppress(ValueError):
        return f"signal:{signal.Signals(-code).name}"
    return f"signal:{-code}"
