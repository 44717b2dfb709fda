"""pass^k by hand, by counting subsets and against scipy."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from evalkit.stats.pass_k import mean_pass_k, pass_k, pass_table


@given(st.lists(st.booleans(), min_size=1, max_size=8), st.integers(1, 8))
def test_is_the_share_of_subsets_that_are_all_right(results: list[bool], k: int) -> None:
    subsets = list(combinations(results, k))
    expected = Fraction(sum(map(all, subsets)), len(subsets)) if subsets else None
    assert pass_k(sum(results), len(results), k) == expected


@given(st.integers(1, 60), st.data())
def test_is_drawing_without_replacement(tries: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, tries))
    k = data.draw(st.integers(1, tries))
    assert pass_k(correct, tries, k) == pytest.approx(hypergeom.pmf(k, tries, correct, k), abs=1e-12)


def test_by_hand() -> None:
    # 3 of 4 right: 3 of 6 pairs are all right, 1 of 4 triples.
    assert pass_k(3, 4, 2) == Fraction(1, 2)
    assert pass_k(3, 4, 3) == Fraction(1, 4)


def test_averages_over_scenarios() -> None:
    # One scenario 3 of 4, two scenarios 4 of 4; five that are not random say nothing here.
    assert mean_pass_k([(4, 3, 1), (4, 4, 2), (1, 1, 5)], 2) == (pytest.approx((0.5 + 2) / 3), 3)


def test_without_seeds_there_is_none() -> None:
    assert pass_table([(1, 1, 5)]) == []
    assert pass_table([]) == []
    assert mean_pass_k([(2, 1, 1)], 3) is None
    assert [line["k"] for line in pass_table([(4, 2, 1)])] == [1, 2, 3]


def test_what_was_tried_once_is_left_out_whatever_k_and_what_was_tried_twice_is_not() -> None:
    assert mean_pass_k([(1, 1, 5), (4, 2, 1)], 1) == (0.5, 1)
    assert mean_pass_k([(1, 1, 5), (2, 1, 3)], 1) == (0.5, 3)
    assert pass_table([(1, 1, 5), (2, 1, 3)]) == [
        {"k": 1, "rate": 0.5, "scenarios": 3},
        {"k": 2, "rate": 0.0, "scenarios": 3},
    ]
