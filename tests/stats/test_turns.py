"""Quantiles of turns against numpy's."""

from __future__ import annotations

from collections import Counter

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.stats.turns import QUANTILES, quantile


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80), st.sampled_from(QUANTILES))
def test_numpy(turns: list[int], share: float) -> None:
    theirs = numpy.quantile(turns, share, method="inverted_cdf")
    assert quantile(sorted(Counter(turns).items()), share) == theirs


def test_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        quantile([], 0.5)
