"""Mutants that do the same as the original, each with the reason.

One that survives counts as equivalent only when it stands here and, where episodes pass through its place,
random scenarios from outside of the library gave equal episodes. It is known by its scope, what stood there
and what stands there.
"""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {}
