"""Mutants that do the same as the original, each with the reason.

One that survives counts as equivalent only when it stands here and, where episodes pass through its place,
random scenarios from outside of the library gave equal episodes. It is known by its scope, what stood there
and what stands there.
"""

from __future__ import annotations

EQUIVALENT: dict[tuple[str, str, str], str] = {
    ("evalkit.stats.records._placed", "if seeds == list(range(len(seeds))): return marks", "pass"): (
        "A shorter way: where the seeds are 0 to n - 1 in order, the loop below puts each mark at its own "
        "place of a line of n, which is the line of marks again."
    ),
    ("evalkit.scoring.twins.twin_problem", "return ''", "return None"): (
        "Its only caller asks whether there is a problem, and None is as little one as no words."
    ),
}
