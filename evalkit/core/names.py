"""What a name is, and names that were meant: the nearest to one that nobody knows; a count with its noun."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]*\Z")
#: What a name may be made of, for messages.
NAME_ALLOWED = "a-z, 0-9, '-', '_', '.'"

#: A longer name is no slip of a finger, and to compare it would take long.
LONGEST = 80


def is_name(text: str) -> bool:
    """Whether a scenario or a population may be called so."""
    return _NAME.match(text) is not None


def nearest(wrong: str, known: Iterable[str]) -> str | None:
    """The known name that is most like a wrong one; None where none is near, or it is too long for that."""
    if len(wrong) > LONGEST:
        return None
    by_text = {name.lower(): name for name in known}
    found = get_close_matches(wrong.lower(), by_text, n=1, cutoff=0.6)
    return by_text[found[0]] if found else None


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """`` (did you mean 'gate'?)``, or nothing."""
    name = nearest(wrong, known)
    return f" (did you mean {name!r}?)" if name is not None else ""


def among(wrong: str, known: Iterable[str], word: str = "known") -> str:
    """What follows a name that nobody knows: the one that was meant, and all there are."""
    names = tuple(known)
    return did_you_mean(wrong, names) + (f"; {word}: {', '.join(names)}" if names else "")


def counted(count: int, what: str) -> str:
    """``1 file``, ``2,000 files``."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
