"""Mutants that once passed every test, written down so that they are tried each time."""

from __future__ import annotations

import ast

from tests.mutation.places import PLACES
from tests.mutation.trial import Mutant, source_of

#: What is wrong, in which module, what stands there, and what stands there instead.
_PLANTED = (
    (
        "refusals are counted in all",
        "evalkit.loop.transitions",
        'refusals=state.refusals if protocol == "refusal" else 0',
        "refusals=state.refusals",
    ),
    (
        "a skip stands after its item was done",
        "evalkit.loop.transitions",
        "state = replace(state, skips=tuple([name for name in state.skips if name not in done]))",
        "pass",
    ),
    (
        "progress does not reset the stretch of nudges",
        "evalkit.core.continuation",
        "self._stretch = self._nudges = self._repeating = 0",
        "self._stretch = self._repeating = 0",
    ),
    (
        "the ideal driver counts pauses",
        "evalkit.scoring.ideal",
        'self._turns += turn.kind != "pause"\n'
        '        self._unsettling += turn.kind != "pause" or place <= self._place',
        "self._turns += 1\n        self._unsettling += 1",
    ),
    (
        "the cap ignores twice the ideal's turns",
        "evalkit.scoring.arena",
        "max(thresholds.TURN_CAP, 2 * self._ideal(seed).turns)",
        "thresholds.TURN_CAP",
    ),
)


def planted() -> list[Mutant]:
    """The five of them."""
    places = {module: place for place in PLACES for module in place.modules}
    made = []
    for name, module, before, after in _PLANTED:
        source = source_of(module)
        if source.count(before) != 1:
            raise ValueError(
                f"{module} no longer has {before!r} once: the planted mutant {name!r} is to be rewritten"
            )
        # Lines keep their numbers, by which functions are found.
        after += "\n" * (before.count("\n") - after.count("\n"))
        made.append(Mutant(places[module], module, ast.parse(source.replace(before, after)), None, name))
    return made
