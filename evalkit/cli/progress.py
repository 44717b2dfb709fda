"""Progress and the time that remains: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from evalkit.runs.run import Progress

#: Seconds between plain lines.
EVERY = 10.0
#: Seconds before anything is said of the remaining time.
EARLIEST = 2.0


class Remaining:
    """The time that a run still takes, from how fast it went since its first chunk was done.

    What a resumed run had before and what an engine takes to start are no part of its speed. What is run
    early is like what comes late (:meth:`~evalkit.runs.plan.Plan.spans`), so the mean over all of it is the
    best guess.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._there: int | None = None
        self._first: tuple[int, float] | None = None

    def seconds(self, done: int, total: int) -> float | None:
        """Seconds left; None where it is too early to say. The first call says what was there before."""
        if self._there is None:
            self._there = done
        elif self._first is not None:
            passed, ran = self._clock() - self._first[1], done - self._first[0]
            return None if passed < EARLIEST or ran <= 0 else (total - done) * passed / ran
        elif done > self._there:
            self._first = done, self._clock()
        return None


def in_words(seconds: float) -> str:
    """A span of time for people, in its two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress_of(
    total: int, *, quiet: bool, beside: Callable[[], str] | None = None
) -> Iterator[Progress | None]:
    """What to tell of finished episodes, on standard error; nothing where ``quiet``.

    ``beside`` is what else to tell, such as what was spent.
    """
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(total, beside)
    else:
        yield _lines(beside)


def _words(left: float | None, beside: Callable[[], str] | None) -> str:
    said = [beside()] if beside is not None else []
    if left is not None:
        said.append(f"about {in_words(left)} left")
    return ", ".join(said)


def _bar(total: int, beside: Callable[[], str] | None) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=Console(file=getattr(sys.stderr, "inner", sys.stderr)), transient=True) as bar:
        task = bar.add_task("episodes", total=total, left="")
        remaining = Remaining()

        def tell(done: int, total: int) -> None:
            left = remaining.seconds(done, total)
            bar.update(task, completed=done, left=_words(left, beside))

        yield tell


def _lines(beside: Callable[[], str] | None) -> Progress:
    last = time.monotonic()
    remaining = Remaining()

    def tell(done: int, total: int) -> None:
        nonlocal last
        left = remaining.seconds(done, total)
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            words = _words(left, beside)
            click.echo(f"{done} of {total} episodes{', ' if words else ''}{words}", err=True)

    return tell
