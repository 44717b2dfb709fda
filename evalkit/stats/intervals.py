"""Confidence intervals of rates and means, for what was sampled: populations and live runs."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from statistics import NormalDist

import msgspec

from evalkit.stats.distributions import beta_quantile, t_quantile


class Interval(msgspec.Struct, frozen=True):
    """An interval, or None twice; ``note`` is the method, or why there is none."""

    low: float | None
    high: float | None
    note: str


def none_because(why: str) -> Interval:
    """No interval, and why."""
    return Interval(None, None, f"n/a: {why}")


def wilson(count: float, base: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """Wilson's score interval of a proportion; None for an empty base.

    (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n). Wilson, JASA 22 (1927) 209.
    """
    if base <= 0:
        return None
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    p = count / base
    centre = p + z * z / (2 * base)
    half = z * sqrt(p * (1 - p) / base + z * z / (4 * base * base))
    scale = 1 + z * z / base
    return max(0.0, (centre - half) / scale), min(1.0, (centre + half) / scale)


def exact(count: float, base: float, confidence: float = 0.95) -> tuple[float, float] | None:
    """The exact interval of a proportion; None for an empty base. An effective base need not be whole.

    Quantiles α/2 of Beta(k, n−k+1) and 1−α/2 of Beta(k+1, n−k). Clopper, Pearson, Biometrika 26 (1934) 404.
    """
    if base <= 0:
        return None
    tail = (1 - confidence) / 2
    low = 0.0 if count <= 0 else beta_quantile(tail, count, base - count + 1)
    high = 1.0 if count >= base else beta_quantile(1 - tail, count + 1, base - count)
    return low, high


#: Clusters with, or without, what is counted: with fewer than these the spread between them cannot be told.
_FEW = 5


def cluster_interval(clusters: Sequence[tuple[int, int]], confidence: float = 0.95) -> Interval:
    """An interval of count over base where observations come in clusters (scenarios) of (count, base).

    The exact interval at the effective sample size: base over the design effect, which is the variance of the
    ratio estimator between clusters over the binomial one, shrunk by (z / t)² for the few degrees of freedom,
    clusters minus one (Korn and Graubard, Survey Methodology 24 (1998) 193). Where what is counted occurred,
    or failed to occur, in fewer than five clusters (and not in all) a design effect estimated from them is
    too small about as often as not: then the cluster is the unit, the effective size at most their number.
    So it is at a rate of 0 or 1: P(all 0) ≤ (1−p)^clusters for means in [0, 1].
    """
    filled = [(count, base) for count, base in clusters if base]
    number = len(filled)
    if not number:
        return none_because("empty base")
    if number < 2:
        return none_because("a single scenario has no variance between scenarios")
    effective, units = effective_size(filled, confidence)
    if units:
        note = f"exact, {number} scenarios as units"
    else:
        note = f"exact at the effective size, clustered by {number} scenarios"
    p = sum(count for count, _ in filled) / sum(base for _, base in filled)
    low, high = exact(p * effective, effective, confidence) or (None, None)
    return Interval(low, high, note)


def effective_size(clusters: Sequence[tuple[int, int]], confidence: float = 0.95) -> tuple[float, bool]:
    """How many independent observations clusters of (count, base > 0) are worth, two at least of them.

    And whether the cluster is the unit (:func:`cluster_interval` says when).
    """
    number = len(clusters)
    total = sum(base for _, base in clusters)
    p = sum(count for count, _ in clusters) / total
    few = min(sum(count > 0 for count, _ in clusters), sum(count < base for count, base in clusters))
    effective = float(number)
    if p not in (0, 1):
        between = (
            sum((count - p * base) ** 2 for count, base in clusters) * number / ((number - 1) * total**2)
        )
        if between > 0:
            effective = min(float(total), p * (1 - p) / between)
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        effective *= (z / t_quantile(0.5 + confidence / 2, number - 1)) ** 2
    units = few < min(_FEW, number)
    return (min(effective, float(number)) if units else effective), units


def intraclass_correlation(clusters: Sequence[tuple[int, int]]) -> float:
    """How much alike observations of one cluster of (count, base) are: 0 not at all, 1 wholly.

    The analysis of variance estimator for clusters of unlike sizes, cut to 0 to 1: (MSB − MSW) / (MSB +
    (n₀ − 1)·MSW). Fleiss, Levin, Paik, Statistical Methods for Rates and Proportions, 3rd ed. 2003, ch. 15.
    """
    filled = [(count, base) for count, base in clusters if base]
    number, total = len(filled), sum(base for _, base in filled)
    if number < 2 or total <= number:
        return 0.0
    mean = sum(count for count, _ in filled) / total
    between = sum((count - mean * base) ** 2 / base for count, base in filled) / (number - 1)
    within = sum(count * (base - count) / base for count, base in filled) / (total - number)
    size = (total - sum(base * base for _, base in filled) / total) / (number - 1)
    scale = between + (size - 1) * within
    return min(1.0, max(0.0, (between - within) / scale)) if scale > 0 else 0.0


def ratio_interval(clusters: Sequence[tuple[float, float]], confidence: float = 0.95) -> Interval:
    """An interval of a ratio of sums (turns per episode, tokens per correct episode) over clusters.

    R ± t·sqrt(G/(G−1)·Σ(y−R·x)²) / Σx with G−1 degrees of freedom: the ratio estimator's linearised variance
    (Cochran, Sampling Techniques, 3rd ed. 1977, section 6.4).
    """
    number = len(clusters)
    base = sum(x for _, x in clusters)
    if not base:
        return none_because("empty base")
    if number < 2:
        return none_because("a single scenario has no variance between scenarios")
    ratio = sum(y for y, _ in clusters) / base
    spread = sum((y - ratio * x) ** 2 for y, x in clusters) * number / (number - 1)
    if spread <= 0:
        return none_because("no variance between scenarios")
    half = t_quantile(0.5 + confidence / 2, number - 1) * sqrt(spread) / base
    return Interval(ratio - half, ratio + half, f"t, clustered by {number} scenarios")
