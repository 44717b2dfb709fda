"""Progress: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

from evalkit.runs.run import Progress

#: Seconds between plain lines.
EVERY = 10.0


@contextmanager
def progress_of(total: int, *, quiet: bool) -> Iterator[Progress | None]:
    """What to tell of finished episodes, on standard error; nothing where ``quiet``."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        yield from _bar(total)
    else:
        yield _lines()


def _bar(total: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("episodes", total=total)
        yield lambda done, _: bar.update(task, completed=done)


def _lines() -> Progress:
    last = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY:
            last = now
            click.echo(f"{done} of {total} episodes", err=True)

    return tell
