"""Several workers as processes, which a SIGTERM to their parent ends cleanly."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import msgspec

from evalkit.containment.workers import end_with
from evalkit.core.escaping import for_terminal
from evalkit.worker.store import Durability, StoreError, open_store
from evalkit.worker.worker import LEASE_SECONDS, Heartbeat, Stopping, Worker

#: The longest wait before a model that failed is asked again, in seconds.
LONGEST_PAUSE = 60.0


class Duty(msgspec.Struct, frozen=True):
    """What workers are to do. ``drain``: until nothing is left; else until told to stop."""

    url: str
    home: str
    workers: int = 1
    drain: bool = False
    lease_seconds: float = LEASE_SECONDS
    poll_seconds: float = 1.0
    durability: Durability = "full"


def work(duty: Duty) -> int:
    """Work with as many processes as asked for; the exit code: 0, or 1 where a worker failed."""
    if duty.workers == 1:
        return _work_here(duty, 0)
    # Spawned, not forked: a worker shares no connection with anyone.
    context = multiprocessing.get_context("spawn")
    crew = [
        context.Process(target=_member, args=(duty, number, os.getpid())) for number in range(duty.workers)
    ]
    stopping = Stopping()
    with _told_by_signals(stopping):
        for process in crew:
            process.start()
        while any(process.is_alive() for process in crew) and not stopping.asked:
            multiprocessing.connection.wait([process.sentinel for process in crew if process.is_alive()], 1.0)
        for process in crew:
            if process.is_alive():
                process.terminate()
            process.join()
    return int(any(process.exitcode for process in crew))


def _member(duty: Duty, number: int, parent: int) -> None:
    # Told by SIGTERM like any other time; what it holds after a moment is another's to take up.
    threading.Thread(target=end_with, args=(parent,), daemon=True).start()
    sys.exit(_work_here(duty, number))


def _work_here(duty: Duty, number: int) -> int:
    name = f"{socket.gethostname()}:{os.getpid()}:{number}"
    stopping = Stopping()

    def pause(times: int) -> None:
        with stopping.waiting():
            time.sleep(min(0.5 * 2 ** min(times, 10), LONGEST_PAUSE))

    heartbeat = Heartbeat(
        lambda: open_store(duty.url, durability=duty.durability), duty.lease_seconds, time.time
    )
    try:
        store = open_store(duty.url, durability=duty.durability)
        worker = Worker(
            store,
            Path(duty.home),
            name,
            seconds=duty.lease_seconds,
            pause=pause,
            stopping=stopping,
            heartbeat=heartbeat,
            tell=_tell,
        )
        with _told_by_signals(stopping):
            worker.run(drain=duty.drain, poll=duty.poll_seconds)
        store.shut()
    except StoreError as error:
        _tell(str(error))
        return 1
    finally:
        heartbeat.end()
    return 0


def _tell(line: str) -> None:
    print(for_terminal(f"evalkit: {line}"), file=sys.stderr, flush=True)


@contextmanager
def _told_by_signals(stopping: Stopping) -> Iterator[None]:
    """SIGTERM and SIGINT ask to stop; the handlers before come back afterwards."""

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
