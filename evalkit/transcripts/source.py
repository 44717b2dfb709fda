"""Where a recording comes from: its file, and its place in it."""

from __future__ import annotations

import msgspec


class Source(msgspec.Struct, frozen=True):
    """A file, by the path it was given, and a place in it (``entry 3``, ``line 12``), for errors and ids."""

    file: str
    place: str = ""

    def id(self, name: str = "") -> str:
        """The id of a recording: its file and, where the file holds several, its own name or place."""
        inner = name or self.place.replace(" ", "")
        return f"{self.file}#{inner}" if inner else self.file
