"""Text of others where it is shown: on a terminal, in a cell of a table, in Markdown. One rule for each."""

from __future__ import annotations

import re
from typing import Any

#: What steers a terminal or turns the order of what is read: control codes but tab and newline, marks of
#: direction, line and paragraph separators, and halves of characters, which no terminal can be sent.
_STEERS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
#: Bold, dim and italic, which evalkit's own tables use, and their end.
_STYLE = "(\x1b\\[[0-3]m)"
#: What a spreadsheet takes for the beginning of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def for_terminal(text: str) -> str:
    r"""A text in which what steers a terminal is written out, ``\u001b``; in JSON that means the same."""
    # Most of what is shown is plain; so a help text needs no expression compiled.
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return re.sub(_STEERS, lambda found: f"\\u{ord(found[0]):04x}", text)


def for_styled_terminal(text: str) -> str:
    """As :func:`for_terminal`, with the styles of evalkit's own tables left as they are."""
    if "\x1b" not in text:
        return for_terminal(text)
    parts = re.split(_STYLE, text)
    return "".join(part if place % 2 else for_terminal(part) for place, part in enumerate(parts))


def for_csv(value: Any) -> Any:
    """A value of a table that no spreadsheet takes for a formula: a text that looks like one gets a ``'``."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def from_csv(text: str) -> str:
    """A text as it was before :func:`for_csv`."""
    return text[1:] if text[:1] == "'" and text[1:].startswith(_FORMULA) else text


def for_markdown(text: str) -> str:
    """A text on one line of Markdown, in a cell of a table too: no tag, no link, no new cell."""
    flat = " ".join(for_terminal(text).split("\n"))
    return flat.replace("<", "&lt;").replace("[", "\\[").replace("|", "\\|")
