"""Prose and tables on a terminal, or in a pipe: no wider than it is where that can be, and nothing is cut."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: Where a cell is broken in two if the table is too wide: in front of an interval.
_BREAK = " ("


def console_of(width: int | None = None) -> Console:
    """Standard output, ``width`` columns wide; else as wide as the terminal or ``COLUMNS`` say, or 80."""
    from rich.console import Console

    return Console(width=width, highlight=False, markup=False, emoji=False)


def print_prose(console: Console, lines: Iterable[str], hanging: int | None = None) -> None:
    """Print lines, the long ones over several.

    What goes over stands ``hanging`` columns from the left; without it as far as its line is indented, and
    two more.
    """
    for line in lines:
        indent = line[: len(line) - len(line.lstrip())]
        rest = f"{indent}  " if indent else ""
        parts = textwrap.wrap(
            line.strip(),
            console.width,
            initial_indent=indent,
            subsequent_indent=rest if hanging is None else " " * hanging,
            break_long_words=False,
            break_on_hyphens=False,
        )
        console.print("\n".join(parts), soft_wrap=True)


def print_entries(lines: Iterable[str], hanging: int | None = None) -> None:
    """Print lines of data, as wide as the terminal or ``COLUMNS`` say; in a pipe without it each is whole.

    There programs take them up. What goes over stands ``hanging`` columns from the left, without it two more
    than its line.
    """
    console = console_of()
    fits = console.file.isatty() or "COLUMNS" in os.environ
    for line in lines:
        if fits:
            print_prose(console, (line,), hanging or len(line) - len(line.lstrip()) + 2)
        else:
            console.print(line, soft_wrap=True)


def print_rows(console: Console, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, names on the left and figures on the right; where it is too wide, cells of two lines."""
    shown = _table(heads, rows)
    if console.measure(shown, options=console.options.update(max_width=100_000)).maximum > console.width:
        shown = _table(heads, [[cell.replace(_BREAK, f"\n{_BREAK.strip()}") for cell in row] for row in rows])
    console.print(shown)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    from rich import box
    from rich.table import Table

    shown = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for place, head in enumerate(heads):
        shown.add_column(head, justify="right" if place else "left", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    return shown
