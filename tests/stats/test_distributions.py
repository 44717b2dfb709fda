"""Our quantiles against scipy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evalkit.stats.distributions import beta_cdf, beta_quantile, t_quantile

shapes = st.floats(0.2, 5000)


@given(st.floats(0, 1), shapes, shapes)
def test_beta_cdf(x: float, a: float, b: float) -> None:
    assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), abs=1e-9)


@given(st.floats(0.001, 0.999), shapes, shapes)
def test_beta_quantile_undoes_the_cdf(p: float, a: float, b: float) -> None:
    assert beta_cdf(beta_quantile(p, a, b), a, b) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("p", [0.025, 0.5, 0.975])
def test_beta_quantile_of_ten_million_episodes(p: float) -> None:
    """The fraction takes some thousand steps there, most of all in the middle."""
    assert beta_quantile(p, 3e6, 7e6) == pytest.approx(stats.beta.ppf(p, 3e6, 7e6), abs=1e-11)


@pytest.mark.parametrize("freedom", [1, 2, 3, 9, 29, 400])
@pytest.mark.parametrize("p", [0.025, 0.5, 0.9, 0.975, 0.999])
def test_t_quantile(p: float, freedom: int) -> None:
    assert t_quantile(p, freedom) == pytest.approx(stats.t.ppf(p, freedom), rel=1e-8, abs=1e-12)


def test_t_quantile_of_the_printed_table() -> None:
    # Student's table in any textbook: 2.262 at 9 degrees of freedom, 12.706 at 1.
    assert t_quantile(0.975, 9) == pytest.approx(2.262, abs=5e-4)
    assert t_quantile(0.975, 1) == pytest.approx(12.706, abs=5e-4)
