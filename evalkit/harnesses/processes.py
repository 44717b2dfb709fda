"""A process group of its own, its output captured with a cap, and its end, whatever it started."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from evalkit.harnesses.surroundings import MARK

#: How much output is kept, half of it from the end; how much a harness may print before it is ended.
KEPT = 64 * 1024
FLOOD = 64 * 1024 * 1024


class Capture:
    """Reads a stream to its end; keeps its beginning and its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 1 << 16):
                self.total += len(chunk)
                free = KEPT // 2 - len(self._head)
                self._head += chunk[:free] if free > 0 else b""
                rest = chunk[free:] if free > 0 else chunk
                self._tail = (self._tail + rest)[-KEPT // 2 :]

    def text(self, since: int = 0) -> str:
        """What was kept; ``since`` leaves out what came before that many bytes."""
        if since == 0:
            self._thread.join(0.2)
        else:
            self._catch_up()
        head, tail = bytes(self._head), bytes(self._tail)
        if since >= len(head):
            fresh = self.total - since
            return tail[-fresh:].decode(errors="replace") if fresh > 0 else ""
        left_out = self.total - len(head) - len(tail)
        gap = f"\n… {left_out:,} bytes left out …\n".encode() if left_out > 0 else b""
        return (head[since:] + gap + tail).decode(errors="replace")

    def _catch_up(self) -> None:
        """Let what lies in the stream of a process that goes on be read."""
        end = time.monotonic() + 0.01
        while (
            self._thread.is_alive() and select.select([self._stream], [], [], 0)[0] and time.monotonic() < end
        ):
            self._thread.join(0.001)


class Group:
    """A command in a process group of its own. Ended with :meth:`kill`, which also finds strays."""

    def __init__(
        self, command: Sequence[str], env: dict[str, str], folder: str | Path, *, piped: bool = False
    ) -> None:
        self._mark = f"{MARK}={env[MARK]}".encode()
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=env,
            stdin=pipe if piped else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe if piped else subprocess.STDOUT,
            start_new_session=True,
        )
        stream = self.process.stderr if piped else self.process.stdout
        assert stream is not None
        self.output = Capture(stream)

    @property
    def exit(self) -> str:
        """How the process ended: ``exit:N`` or ``signal:NAME``."""
        code = self.process.poll()
        if code is None:
            return "running"
        if code >= 0:
            return f"exit:{code}"
        with contextlib.suppress(ValueError):
            return f"signal:{signal.Signals(-code).name}"
        return f"signal:{-code}"

    def kill(self) -> int:
        """End all of its processes; how many were running beside the first."""
        first = self.process.pid
        strays = 0
        for _ in range(50):
            running = self._running()
            strays = max(strays, len(running - {first}))
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(first, signal.SIGKILL)
            for pid in running:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(0.02)
            if self.process.returncode is not None and not self._running():
                break
            time.sleep(0.005)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None and stream is not self.output._stream:
                with contextlib.suppress(OSError):
                    stream.close()
        return strays

    def _running(self) -> set[int]:
        """Its processes that live: those of its session, and those that carry its mark."""
        found = set()
        for entry in Path("/proc").glob("[0-9]*") if os.path.isdir("/proc") else ():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                mine = int(session) == self.process.pid
                if state not in "ZX" and (
                    mine or self._mark in (entry / "environ").read_bytes().split(b"\0")
                ):
                    found.add(int(entry.name))
        return found
