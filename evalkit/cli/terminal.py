"""What commands print: nothing of what others wrote steers the terminal that shows it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from evalkit.core.escaping import for_styled_terminal


class Plain:
    """A text stream that lets through what is read, and writes out what would steer."""

    def __init__(self, inner: Any) -> None:
        #: For a progress bar, which steers the terminal itself and shows numbers alone.
        self.inner = inner

    def write(self, text: str) -> int:
        self.inner.write(for_styled_terminal(text))
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@contextmanager
def plain() -> Iterator[None]:
    """In here standard output and standard error are :class:`Plain`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = Plain(sys.stdout), Plain(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def help_width() -> int:
    """Columns of a help text: those of the terminal, at most 78, as click has them.

    Left to itself click loads :mod:`shutil` for it, archives and all: a tenth of the start of ``--help``.
    """
    named = os.environ.get("COLUMNS", "")
    columns = int(named) if named.isdecimal() else 0
    # It may be closed, or no terminal.
    with suppress(AttributeError, ValueError, OSError):
        columns = columns or os.get_terminal_size(sys.__stdout__.fileno()).columns  # type: ignore[union-attr]
    return max(min(columns or 80, 80) - 2, 50)
