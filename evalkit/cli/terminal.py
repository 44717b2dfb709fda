"""What commands print: nothing of what others wrote steers the terminal that shows it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
