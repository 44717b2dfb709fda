"""TOML as somebody wrote it: a document, or one kind of error."""

from __future__ import annotations

import tomllib
from typing import Any


def toml_of(data: bytes) -> dict[str, Any]:
    """A document. ValueError with a line where it is none, is no text, or is nested too deeply to be read."""
    try:
        return tomllib.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
