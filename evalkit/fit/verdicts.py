"""What a strategy's verdict of done rests on, and so what is certain of it before any run."""

from __future__ import annotations

from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition
from evalkit.strategies.presets import ChecksFirst


def never_false(condition: Condition) -> bool:
    """Whether a verdict of done rests on the task's full checks, so that it is right by construction."""
    if isinstance(condition, c.All):
        return any(map(never_false, condition.parts))
    if isinstance(condition, c.Any_):
        return all(map(never_false, condition.parts))
    return isinstance(condition, c.acceptance | ChecksFirst)


def met_when_right(condition: Condition) -> bool:
    """Whether complete work is enough for a verdict of done."""
    if isinstance(condition, c.All):
        return all(map(met_when_right, condition.parts))
    if isinstance(condition, c.Any_):
        return any(map(met_when_right, condition.parts))
    return isinstance(condition, c.acceptance | ChecksFirst | c.silence)
