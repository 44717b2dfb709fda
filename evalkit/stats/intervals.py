"""Confidence intervals of rates."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist


def wilson(count: int, base: int, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion; None for an empty base.

    (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n). Wilson, JASA 22 (1927) 209.
    """
    if base == 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = count / base
    centre = p + z * z / (2 * base)
    half = z * sqrt(p * (1 - p) / base + z * z / (4 * base * base))
    scale = 1 + z * z / base
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def cluster_interval(
    clusters: Sequence[tuple[int, int]], confidence: float = 0.95
) -> tuple[float, float] | None:
    """An interval of count over base, clustered; None where clusters are too few (under 2) or empty.

    Wilson's interval at the effective sample size: base over the design effect, the variance of the ratio
    estimator between clusters over the binomial one (Rao and Scott, Biometrics 48 (1992) 577). Without
    variance between clusters, where no design effect can be estimated, the cluster is the unit.
    """
    filled = [(count, base) for count, base in clusters if base]
    number = len(filled)
    total = sum(base for _, base in filled)
    if number < 2:
        return None
    count = sum(count for count, _ in filled)
    p = count / total
    between = sum((c - p * b) ** 2 for c, b in filled) * number / ((number - 1) * total**2)
    binomial = p * (1 - p) / total
    if between <= 0 or binomial <= 0:
        effective = float(number)
    else:
        effective = min(float(total), max(1.0, total * binomial / between))
    return _wilson_at(p, effective, confidence)


def _wilson_at(p: float, size: float, confidence: float) -> tuple[float, float]:
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    centre = p + z * z / (2 * size)
    half = z * sqrt(p * (1 - p) / size + z * z / (4 * size * size))
    scale = 1 + z * z / size
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)
