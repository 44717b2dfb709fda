"""Kendall's tau: how far two orders of the same things agree."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from typing import Any


def tau_b(one: Sequence[Any], other: Sequence[Any]) -> float | None:
    """Kendall's tau-b of two rankings by values that compare; None where one of them ties everything.

    Pairs in the same order less pairs in opposite order, over the geometric mean of the pairs that each
    ranking does not tie (Kendall, "The treatment of ties in ranking problems", Biometrika 33, 1945).
    ValueError for sequences of different lengths.
    """
    if len(one) != len(other):
        raise ValueError(f"two rankings of {len(one)} and {len(other)} things")
    agree = untied_one = untied_other = 0
    for (a, x), (b, y) in combinations(zip(one, other, strict=True), 2):
        first, second = (a > b) - (a < b), (x > y) - (x < y)
        agree += first * second
        untied_one += first != 0
        untied_other += second != 0
    if not untied_one or not untied_other:
        return None
    return agree / sqrt(untied_one * untied_other)
