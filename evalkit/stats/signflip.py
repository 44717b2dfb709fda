"""The exact sign-flip test on paired differences, its range of differences, and Holm's correction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from math import comb, fsum, lcm, sqrt
from statistics import NormalDist

#: Steps of whole-number arithmetic above which the same recursion runs in doubles (relative error < 1e-10).
_WHOLE_STEPS = 2_000_000


def whole(values: Sequence[Fraction]) -> tuple[list[int], int]:
    """The values as whole numbers over one common denominator."""
    scale = lcm(*{value.denominator for value in values})
    return [value.numerator * (scale // value.denominator) for value in values], scale


def sign_flip(differences: Sequence[Fraction]) -> float | None:
    """The exact two-sided p-value of the mean difference under random signs; None where all are 0.

    Every assignment of signs to the non-zero differences is as likely under the null hypothesis; the p-value
    is the share whose sum is at least as far from 0 as the observed one (Fisher, The Design of Experiments,
    1935, section 21). The distribution of the sum is built up pair by pair, so it is exact for any number of
    pairs.
    """
    filled = [difference for difference in differences if difference]
    if not filled:
        return None
    signed, _ = whole(filled)
    sizes = sorted(abs(size) for size in signed)
    observed = abs(sum(signed))
    states = min(2 * sum(sizes) + 1, 1 << min(len(sizes), 60))
    if len(sizes) * states <= _WHOLE_STEPS:
        return _in_whole_numbers(sizes, observed)
    return _in_doubles(sizes, observed)


def _in_whole_numbers(sizes: list[int], observed: int) -> float:
    ways = {0: 1}
    # Sizes that are equal are taken together: of so many, k are positive in "n over k" ways.
    for size, number in Counter(sizes).items():
        signs = [(size * (2 * positive - number), comb(number, positive)) for positive in range(number + 1)]
        grown: dict[int, int] = {}
        for total, count in ways.items():
            for step, chosen in signs:
                grown[total + step] = grown.get(total + step, 0) + count * chosen
        ways = grown
    extreme = sum(count for total, count in ways.items() if abs(total) >= observed)
    return float(Fraction(extreme, 1 << len(sizes)))


def _in_doubles(sizes: list[int], observed: int) -> float:
    """The same recursion in probabilities: position k is the sum k - offset."""
    try:
        import numpy
    except ImportError:
        return _in_whole_numbers(sizes, observed)
    reach = sum(sizes)
    chances = numpy.zeros(2 * reach + 1)
    chances[reach] = 1.0
    spread = 0
    for size in sizes:
        inner = chances[reach - spread : reach + spread + 1] / 2
        chances[reach - spread : reach + spread + 1] = 0.0
        chances[reach - spread - size : reach + spread - size + 1] += inner
        chances[reach - spread + size : reach + spread + size + 1] += inner
        spread += size
    upper: list[float] = chances[reach + observed :].tolist()
    return min(1.0, fsum(upper) * 2) if observed else 1.0


def flip_range(
    clusters: Sequence[tuple[Fraction, int]], p: float | None, confidence: float = 0.95
) -> tuple[float, float] | None:
    """The mean differences that the sign-flip test does not reject; None for under 4 or without variance.

    ``clusters`` are sums of differences d, each over m scenarios that are flipped together. The test of a
    shift δ flips the signs of d−mδ. With the normal approximation of its distribution, variance Σ(d−mδ)²,
    δ is kept while (Σd − δΣm)² ≤ z²·Σ(d−mδ)²: between the roots of a quadratic (test inversion: Lehmann and
    Romano, Testing Statistical Hypotheses, 3rd ed. 2005, sections 3.5 and 15.2). ``p`` is the exact test's
    p-value at δ = 0: where the approximation says otherwise about 0 (few scenarios differ), the range ends
    at 0. It describes these scenarios; it is no interval of a population.
    """
    if not clusters:
        return None
    z2 = NormalDist().inv_cdf(0.5 + confidence / 2) ** 2
    signed, scale = whole([total for total, _ in clusters])
    sizes = [size for _, size in clusters]
    number, total = sum(sizes), sum(signed) / scale
    # a·δ² − 2b·δ + c ≤ 0
    a = number**2 - z2 * sum(size * size for size in sizes)
    b = number * total - z2 * sum(d * size for d, size in zip(signed, sizes, strict=True)) / scale
    c = total * total - z2 * sum(d * d for d in signed) / scale**2
    inner = b * b - a * c
    if a <= 0 or inner <= 1e-12:
        return None
    half = sqrt(inner)
    low, high = max(-1.0, (b - half) / a), min(1.0, (b + half) / a)
    if p is not None and p > 1 - confidence:
        return min(low, 0.0), max(high, 0.0)
    return (max(low, 0.0), high) if total > 0 else (low, min(high, 0.0))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment of p-values; None stays None (Scand. J. Statist. 6 (1979) 65)."""
    order = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(order):
        highest = max(highest, min(1.0, p * (len(order) - rank)))
        adjusted[place] = highest
    return adjusted
