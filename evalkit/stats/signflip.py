"""The exact sign-flip test on paired differences, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import lcm


def sign_flip(differences: Sequence[Fraction]) -> float | None:
    """The exact two-sided p-value of the mean difference under random signs; None where all are 0.

    Every assignment of signs to the non-zero differences is as likely under the null hypothesis; the p-value
    is the share whose sum is at least as far from 0 as the observed one (Fisher, The Design of Experiments,
    1935, section 21). The distribution of the sum is built up as whole numbers, so it is exact for any
    number of pairs.
    """
    filled = [difference for difference in differences if difference]
    if not filled:
        return None
    scale = lcm(*(difference.denominator for difference in filled))
    sizes = [abs(int(difference * scale)) for difference in filled]
    observed = abs(sum(int(difference * scale) for difference in filled))
    ways = {0: 1}
    for size in sizes:
        grown: dict[int, int] = {}
        for total, count in ways.items():
            grown[total + size] = grown.get(total + size, 0) + count
            grown[total - size] = grown.get(total - size, 0) + count
        ways = grown
    extreme = sum(count for total, count in ways.items() if abs(total) >= observed)
    return float(Fraction(extreme, 1 << len(sizes)))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment of p-values; None stays None (Scand. J. Statist. 6 (1979) 65)."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        adjusted[place] = highest
    return adjusted
