"""What ``prove`` and ``falsify`` do with what they found: show it, save it, tell how far they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import click

if TYPE_CHECKING:
    from evalkit.search.proofs.counterexample import Counterexample

#: Seconds between lines of progress, on a terminal and elsewhere.
EVERY_ON_A_TERMINAL, EVERY = 0.2, 10.0
#: Lines of a transcript that are shown; of longer ones the middle is left out.
LINES = 60


class PropertyResult(Protocol):
    """The answer on a property."""

    @property
    def counterexample(self) -> Counterexample | None: ...

    # Last, because from here on the name is no decorator.
    @property
    def property(self) -> str: ...


def distinct_counterexamples(results: Sequence[PropertyResult]) -> list[tuple[Counterexample, list[str]]]:
    """The different counterexamples, each with the properties that it refutes."""
    found: dict[tuple[str, ...], tuple[Counterexample, list[str]]] = {}
    for result in results:
        shown = result.counterexample
        if shown is not None:
            found.setdefault(shown.moves, (shown, []))[1].append(result.property)
    return list(found.values())


def shortened(text: str) -> str:
    """A transcript without the middle, where it is long."""
    lines = text.splitlines()
    if len(lines) > LINES:
        cut = len(lines) - LINES
        lines[LINES // 2 : LINES // 2 + cut] = [f"       … {cut} lines more of the same kind …"]
    return "\n".join(lines)


def save_scenarios(results: Sequence[PropertyResult], path: Path) -> None:
    """Write the counterexamples as scenarios of one file; none where nothing is refuted."""
    texts = [result.counterexample.text for result in results if result.counterexample is not None]
    if texts:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("---\n".join(texts), encoding="utf-8")


def report_saved(path: Path, *, refuted: bool) -> None:
    """Say on standard error what became of ``--save``."""
    click.echo(f"saved {path}" if refuted else f"nothing is refuted, so {path} was not written", err=True)


def line_now_and_then() -> Callable[[Callable[[], str]], None]:
    """What writes a line of progress on standard error where it is time for one."""
    terminal = sys.stderr.isatty()
    pause = EVERY_ON_A_TERMINAL if terminal else EVERY
    last = time.monotonic()

    def tell(line: Callable[[], str]) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= pause:
            last = now
            click.echo(f"\r{line():<79}\r" if terminal else line(), nl=not terminal, err=True)

    return tell
