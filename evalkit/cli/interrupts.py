"""Ctrl-C, SIGTERM and SIGHUP: one exception, once, and an end within two seconds whatever is going on."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import click

from evalkit.containment.signal_errors import raise_again

#: Seconds from a signal to the end of the process; most commands need a fraction of it.
LONGEST = 1.9
#: Whether it was said already that the command was interrupted.
_said = threading.Event()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asks this process to end; ``exit_code`` is what a shell makes of that."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number


def exit_code(error: KeyboardInterrupt) -> int:
    """The exit code of a command that was interrupted."""
    return error.exit_code if isinstance(error, Interrupted) else 130


def say(line: str) -> None:
    """Say that the command was interrupted, and how it goes on: once, whatever else takes its time."""
    _said.set()
    click.echo(f"\n{line}", err=True)


@contextmanager
def interruptible() -> Iterator[None]:
    """In here signals end this process. One that it was started to ignore it goes on to ignore."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    wanted = [number for number in _SIGNALS if before[number] is not signal.SIG_IGN]
    for number in wanted:
        signal.signal(number, _interrupt)
    ready, told = os.pipe()
    os.set_blocking(told, False)
    others = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    threading.Thread(target=_last_resort, args=(ready, wanted), daemon=True).start()
    try:
        yield
    except Interrupted:
        # Not even the interpreter's own end may take longer.
        raise
    except BaseException:
        _restore(before, others, told)
        raise
    else:
        _restore(before, others, told)


def leave(code: int) -> None:
    """End this process at once where a signal asked for it and what is loaded would wait for its threads."""
    if code in (128 + number for number in _SIGNALS) and "distributed" in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        _end_children()
        os._exit(code)


def _end_children() -> None:
    """End workers that a thread is just starting: they would say in many lines that their parent is gone."""
    from pathlib import Path

    quiet, end = 0, time.monotonic() + 0.5
    while quiet < 4 and time.monotonic() < end:
        quiet += 1
        for place in Path("/proc/self/task").glob("*/children"):
            with suppress(OSError, ValueError):
                for child in map(int, place.read_text().split()):
                    program = Path(f"/proc/{child}/cmdline").read_bytes()
                    if b"spawn_main" in program or program == _OWN:
                        os.kill(child, signal.SIGKILL)
                        quiet = 0
        time.sleep(0.01)


def _own() -> bytes:
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


#: A child that has not become another program yet is still called as this one.
_OWN = _own()


def _restore(before: dict[signal.Signals, Any], others: int, told: int) -> None:
    signal.set_wakeup_fd(others)
    os.close(told)
    for number, handler in before.items():
        signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    # Once is enough: nothing may interrupt what is being put away.
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise_again(Interrupted)
    guarded = sys.modules.get("evalkit.containment.guarded")
    if guarded is not None:
        guarded.end_all()
    raise Interrupted(number)


def _last_resort(ready: int, wanted: list[signal.Signals]) -> None:
    """End the process where the main thread does not come to it: it may be deep in a library."""
    with open(ready, "rb", buffering=0) as stream:
        while told := stream.read(64):
            for number in wanted:
                if number in told:
                    time.sleep(LONGEST)
                    if not _said.is_set():
                        os.write(2, b"\nevalkit: interrupted\n")
                    os._exit(128 + number)
