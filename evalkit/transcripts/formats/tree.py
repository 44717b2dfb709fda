"""Runs whose lines have parents: the run is the chain up from the last leaf; siblings were left."""

from __future__ import annotations

from typing import Any


def chain(lines: list[dict[str, Any]], own: str, parent: str) -> list[dict[str, Any]]:
    """The lines of the last branch in their order; those without an id of their own stay where they stand.

    A line whose parent is not in the file goes on from the line before it, so that a file that was cut or
    begins anew after a compaction is read whole. Lines of one id are one node.
    """
    names: dict[str, str] = {}
    before = ""
    for line in lines:
        name = line.get(own)
        if not isinstance(name, str):
            continue
        above = line.get(parent)
        if name not in names:
            known = isinstance(above, str) and above in names
            names[name] = str(above) if known and above != name else before
        before = name
    kept: set[str] = set()
    name = before
    while name and name not in kept:
        kept.add(name)
        name = names.get(name, "")
    return [line for line in lines if not isinstance(line.get(own), str) or line[own] in kept]
