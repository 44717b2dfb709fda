"""Kendall's tau against scipy, and where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from evalkit.stats.kendall import tau_b

VALUES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12)


@given(VALUES)
def test_as_scipy_has_it(pairs: list[tuple[int, int]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = tau_b(one, other)
    if found is None:
        assert len(set(one)) == 1 or len(set(other)) == 1
    else:
        assert found == pytest.approx(kendalltau(one, other).statistic)


def test_values_that_compare() -> None:
    assert tau_b([(1, 2), (1, 3), (0, 9)], [(1, 2), (1, 3), (0, 9)]) == 1
    assert tau_b([1, 2, 3], [3, 2, 1]) == -1
    with pytest.raises(ValueError, match="2 and 1"):
        tau_b([1, 2], [1])
