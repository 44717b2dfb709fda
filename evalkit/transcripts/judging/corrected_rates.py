"""Shares that rest on the reader of claims, with its measured errors in their interval.

The estimator is Rogan and Gladen's (1978), the interval Lang and Reiczigel's (2014): each of the three counts
is moved towards one half, so that a reader that made no error in its sample is not taken for one that makes
none.
"""

from __future__ import annotations

from typing import NamedTuple

_Z = 1.6449  # 90 %


class Errors(NamedTuple):
    """A reader against labelled turns: right and missed claims, right and wrong no-claims."""

    tp: int
    fn: int
    tn: int
    fp: int


#: The rules on labelled ends of turn while they were not fitted to them (``docs/judge.md``).
HELD_OUT = Errors(tp=128, fn=34, tn=335, fp=6)


class Share(NamedTuple):
    """A corrected share and its 90 % interval."""

    share: float
    low: float
    high: float


def corrected(count: int, base: int, errors: Errors = HELD_OUT) -> Share | None:
    """The share of turns that claim, given how many were read as a claim; None for an empty base.

    None too for a reader that is no better than chance: then nothing can be said.
    """
    if not base:
        return None
    square = _Z * _Z
    read = (count + square / 2) / (base + square)
    finds = (errors.tp + 1) / (errors.tp + errors.fn + 2)
    spares = (errors.tn + 1) / (errors.tn + errors.fp + 2)
    better = finds + spares - 1
    if better <= 0:
        return None
    share = (read + spares - 1) / better
    inner = min(1.0, max(0.0, share))
    variance = (
        read * (1 - read) / (base + square)
        + inner**2 * finds * (1 - finds) / (errors.tp + errors.fn + 2)
        + (1 - inner) ** 2 * spares * (1 - spares) / (errors.tn + errors.fp + 2)
    ) / better**2
    half = _Z * variance**0.5
    plain = (count / base + spares - 1) / better
    return Share(min(1.0, max(0.0, plain)), max(0.0, share - half), min(1.0, share + half))
