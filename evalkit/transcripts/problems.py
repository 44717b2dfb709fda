"""What could not be read, and reading that cannot stop the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from evalkit.transcripts.recording import Recording, Unreadable
from evalkit.transcripts.source import Source


class Problem(msgspec.Struct, frozen=True):
    """What could not be read: the file, the place in it (empty for all of it), and why, in one line."""

    file: str
    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.why}" if self.place else f"{self.file}: {self.why}"


Found = Recording | Problem


#: What reading a value of an unexpected shape may raise.
ODD = (Unreadable, RecursionError, TypeError, ValueError, KeyError, IndexError, AttributeError)


def one(read: Callable[[Any, Source], Recording], value: Any, source: Source) -> Found:
    """The recording that a value is, or why it is none."""
    try:
        return read(value, source)
    except ODD as error:
        return problem_of(source, error)


def guard(take: Callable[[Any], None], value: Any, source: Source) -> Problem | None:
    """Have a part of a recording taken; why it could not be, or None."""
    try:
        take(value)
    except ODD as error:
        return problem_of(source, error)
    return None


def problem_of(source: Source, error: Exception) -> Problem:
    """What an error says of a value."""
    if isinstance(error, Unreadable):
        why = str(error)
    elif isinstance(error, RecursionError):
        why = "is nested too deep"
    else:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        why = f"is not of the shape of its format ({said[:100]})"
    return Problem(source.file, source.place, why)
