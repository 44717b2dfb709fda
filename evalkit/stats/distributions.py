"""Quantiles of the beta and of Student's distribution, without scipy: they sit on the interactive path."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, lgamma, log, log1p, sqrt

#: About the square root of the larger shape are needed; so many serve beyond 10⁸ episodes.
_STEPS = 20_000
_PRECISION = 1e-15
_TINY = 1e-300


def beta_cdf(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0.

    Its continued fraction by Lentz's method (Abramowitz and Stegun 26.5.8; DLMF 8.17.22).
    """
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(x, a, b) / a
    return 1 - front * _fraction(1 - x, b, a) / b


def _fraction(x: float, a: float, b: float) -> float:
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > _TINY else _TINY)
    value = d
    for step in range(1, _STEPS):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > _TINY else _TINY)
            c = 1 + term / c
            c = c if abs(c) > _TINY else _TINY
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def beta_quantile(p: float, a: float, b: float) -> float:
    """The x with I_x(a, b) = p, for 0 <= p <= 1."""
    return _bisect(lambda x: beta_cdf(x, a, b), p, 0.0, 1.0)


@lru_cache(maxsize=1024)
def t_quantile(p: float, freedom: float) -> float:
    """The quantile of Student's distribution, for 0 < p < 1 and ``freedom`` > 0 degrees.

    P(|T| > t) = I_x(ν/2, 1/2) with x = ν / (ν + t²) (Abramowitz and Stegun 26.7.1).
    """
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -t_quantile(1 - p, freedom)
    x = beta_quantile(2 * (1 - p), freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def _bisect(rising: Callable[[float], float], wanted: float, low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
