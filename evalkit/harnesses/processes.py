"""A harness's process: its output captured with a cap, and its end, whatever it started."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from evalkit.containment.folders import MARK
from evalkit.containment.guarded import Guarded, told_exit
from evalkit.containment.machine import this_machine

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
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            while True:
                select.select([self._stream], [], [])
                with self._lock:
                    if not self._take():
                        return

    def _take(self) -> bool:
        """Keep what lies in the stream; whether there may be more to come. The lock is held."""
        if not select.select([self._stream], [], [], 0)[0]:
            return True
        chunk = os.read(self._stream.fileno(), 1 << 16)
        self.total += len(chunk)
        free = KEPT // 2 - len(self._head)
        self._head += chunk[:free] if free > 0 else b""
        rest = chunk[free:] if free > 0 else chunk
        self._tail = (self._tail + rest)[-KEPT // 2 :]
        return bool(chunk)

    def text(self, since: int = 0, *, running: bool = False) -> str:
        """What was kept; ``since`` leaves out what came before that many bytes.

        The stream is read to its end, or of a process that goes on (``running``) as far as it has come.
        """
        if not running:
            self._thread.join(0.2)
        self._catch_up()
        with self._lock:
            head, tail, total = bytes(self._head), bytes(self._tail), self.total
        if since >= len(head):
            fresh = total - since
            return tail[-fresh:].decode(errors="replace") if fresh > 0 else ""
        left_out = total - len(head) - len(tail)
        gap = f"\n… {left_out:,} bytes left out …\n".encode() if left_out > 0 else b""
        return (head[since:] + gap + tail).decode(errors="replace")

    def _catch_up(self) -> None:
        """Read what was printed up to now: it may come faster than it is read, and the reader late."""
        end = time.monotonic() + 0.01
        with contextlib.suppress(OSError, ValueError), self._lock:
            while select.select([self._stream], [], [], 0)[0] and self._take() and time.monotonic() < end:
                pass


class Group:
    """A command under a guard, its output captured. Ended with :meth:`kill`, and all that it started too.

    OSError where it cannot be started. ``watched`` is the folder whose size is limited.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: dict[str, str],
        folder: str | Path,
        watched: str | Path,
        *,
        piped: bool = False,
    ) -> None:
        pipe = subprocess.PIPE
        self._guarded = Guarded(
            command,
            env,
            folder,
            watched=(watched,),
            mark=f"{MARK}={env[MARK]}",
            machine=this_machine(),
            stdin=pipe if piped else subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe if piped else subprocess.STDOUT,
        )
        self.process = self._guarded.guard
        stream = self.process.stderr if piped else self.process.stdout
        assert stream is not None
        self.output = Capture(stream)

    @property
    def running(self) -> bool:
        """Whether the command still runs."""
        return self._guarded.running

    @property
    def over(self) -> str:
        """The limit that it went over, once it has ended."""
        return self._guarded.over

    @property
    def exit(self) -> str:
        """How the process ended: ``exit:N`` or ``signal:NAME``."""
        return told_exit(self._guarded.code)

    def kill(self) -> int:
        """End all of its processes; how many were running beside the first."""
        return self._guarded.kill()
