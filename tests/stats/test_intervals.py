"""Intervals against published values and statsmodels; their coverage on clustered data by simulation."""

from __future__ import annotations

import math
import random

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.regression.linear_model import OLS, WLS
from statsmodels.stats.proportion import proportion_confint

from evalkit.stats.intervals import (
    cluster_interval,
    exact,
    intraclass_correlation,
    ratio_interval,
    wilson,
)
from tests.stats.simulations import unlike

counts = st.integers(1, 400).flatmap(lambda base: st.tuples(st.integers(0, base), st.just(base)))


class TestWilson:
    def test_newcombe(self) -> None:
        # Newcombe, Statistics in Medicine 17 (1998) 857, table I: 81 of 263.
        assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=5e-5)

    @given(counts)
    def test_statsmodels(self, pair: tuple[int, int]) -> None:
        assert wilson(*pair) == pytest.approx(proportion_confint(*pair, method="wilson"), abs=1e-9)

    def test_empty(self) -> None:
        assert wilson(0, 0) is None

    @pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
    def test_never_leaves_what_a_share_can_be(self, confidence: float) -> None:
        for base in range(1, 60):
            for count in (0, base):
                low, high = wilson(count, base, confidence) or (-1.0, -1.0)
                assert 0 <= low < high <= 1


class TestExact:
    def test_newcombe(self) -> None:
        assert exact(81, 263) == pytest.approx((0.2527, 0.3676), abs=5e-5)

    def test_rule_of_three(self) -> None:
        # Nothing in 10: 1 - 0.025^(1/10).
        assert exact(0, 10) == pytest.approx((0, 1 - 0.025 ** (1 / 10)))

    @given(counts)
    def test_statsmodels(self, pair: tuple[int, int]) -> None:
        assert exact(*pair) == pytest.approx(proportion_confint(*pair, method="beta"), abs=1e-7)

    def test_empty(self) -> None:
        assert exact(0, 0) is None


def _clusters(draw: random.Random, number: int, size: int, rate: float, kind: str) -> list[tuple[int, int]]:
    """``independent``, ``copies`` (all seeds of a scenario alike), or ``mixed`` (beta between scenarios)."""
    found = []
    for _ in range(number):
        if kind == "independent":
            own = rate
        elif kind == "copies":
            own = float(draw.random() < rate)
        else:
            own = draw.betavariate(rate * 7 / 3, (1 - rate) * 7 / 3)
        found.append((sum(draw.random() < own for _ in range(size)), size))
    return found


class TestClustered:
    @pytest.mark.long
    @pytest.mark.parametrize("kind", ["independent", "copies", "mixed"])
    @pytest.mark.parametrize(("number", "size"), [(5, 5), (20, 5), (50, 3)])
    @pytest.mark.parametrize("rate", [0.3, 0.5])
    def test_coverage(self, kind: str, number: int, size: int, rate: float) -> None:
        draw = random.Random(20261130)
        covered = 0
        for _ in range(400):
            found = cluster_interval(_clusters(draw, number, size, rate, kind))
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= rate <= found.high
        assert covered >= 0.93 * 400

    @pytest.mark.parametrize(
        ("number", "rate", "spread"), [(20, 0.05, 0.6), (20, 0.02, 0.3), (50, 0.02, 0.6)]
    )
    def test_coverage_of_rare_events_in_strongly_differing_scenarios(
        self, number: int, rate: float, spread: float
    ) -> None:
        draw = random.Random(20261201)
        covered = 0
        for _ in range(300):
            found = cluster_interval(unlike(draw, number, 20, rate, spread))
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= rate <= found.high
        assert covered >= 0.93 * 300

    def test_copies_fool_the_unclustered_interval(self) -> None:
        draw = random.Random(20261130)
        missed = clustered = 0
        for _ in range(400):
            clusters = _clusters(draw, 20, 5, 0.5, "copies")
            low, high = wilson(sum(c for c, _ in clusters), 100) or (math.nan, math.nan)
            missed += not low <= 0.5 <= high
            found = cluster_interval(clusters)
            assert found.low is not None
            assert found.high is not None
            clustered += not found.low <= 0.5 <= found.high
        assert missed > 0.25 * 400
        assert clustered < 0.07 * 400

    @pytest.mark.parametrize("kind", ["independent", "copies", "mixed"])
    def test_statsmodels(self, kind: str) -> None:
        # The design effect by the cluster-robust variance of a regression on nothing but a constant, then
        # the exact interval at that effective sample size, shrunk by Korn and Graubard's (z / t)^2.
        clusters = _clusters(random.Random(7), 15, 6, 0.4, kind)
        ones = [[1.0] * count + [0.0] * (base - count) for count, base in clusters]
        values = numpy.concatenate(ones)
        groups = numpy.repeat(numpy.arange(len(clusters)), [base for _, base in clusters])
        fit = OLS(values, numpy.ones_like(values)).fit(cov_type="cluster", cov_kwds={"groups": groups})
        p, total = values.mean(), len(values)
        effective = min(total, p * (1 - p) / float(fit.bse[0]) ** 2)
        effective *= (stats.norm.ppf(0.975) / stats.t.ppf(0.975, len(clusters) - 1)) ** 2
        found = cluster_interval(clusters)
        theirs = proportion_confint(p * effective, effective, method="beta")
        assert (found.low, found.high) == pytest.approx(theirs, abs=1e-7)

    @pytest.mark.parametrize(
        ("clusters", "why"),
        [([], "empty base"), ([(0, 0), (0, 0)], "empty base"), ([(1, 3)], "single scenario")],
    )
    def test_too_little(self, clusters: list[tuple[int, int]], why: str) -> None:
        found = cluster_interval(clusters)
        assert (found.low, found.high) == (None, None)
        assert found.note.startswith("n/a: ")
        assert why in found.note

    def test_all_alike_is_exact_with_scenarios_as_units(self) -> None:
        found = cluster_interval([(0, 5)] * 10)
        assert (found.low, found.high) == pytest.approx(exact(0, 10))
        assert cluster_interval([(5, 5)] * 10).high == 1

    @pytest.mark.long
    @given(st.lists(st.tuples(st.integers(0, 9), st.integers(9, 9)), min_size=2, max_size=30))
    def test_always_a_number_in_order(self, clusters: list[tuple[int, int]]) -> None:
        found = cluster_interval(clusters)
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= sum(c for c, _ in clusters) / (9 * len(clusters)) <= found.high <= 1


class TestIntraclassCorrelation:
    def test_of_clusters_that_differ_by_less_than_chance_is_none(self) -> None:
        assert intraclass_correlation([(1, 2), (1, 2), (1, 2)]) == 0

    def test_of_observations_that_are_all_alike_is_none(self) -> None:
        assert intraclass_correlation([(5, 5), (5, 5)]) == 0

    @pytest.mark.parametrize("clusters", [[], [(3, 5)], [(1, 1), (0, 1)], [(0, 0), (2, 4)]])
    def test_of_too_little_is_none(self, clusters: list[tuple[int, int]]) -> None:
        assert intraclass_correlation(clusters) == 0

    def test_of_clusters_each_alike_within_is_whole(self) -> None:
        assert intraclass_correlation([(5, 5), (0, 5)]) == 1

    def test_of_unlike_sizes_by_hand(self) -> None:
        """Mean 0.6: MSB 0.49 + 1.96/6, MSW (3/4 + 5/6)/8, n₀ = 10 − 52/10."""
        assert intraclass_correlation([(1, 4), (5, 6)]) == pytest.approx(0.61875 / 1.56875)


class TestRatio:
    def test_by_hand(self) -> None:
        # Turns 4, 6, 8 in one episode each: mean 6, s = 2, t(2) = 4.3027, half = 4.3027 * 2 / sqrt(3).
        found = ratio_interval([(4, 1), (6, 1), (8, 1)])
        assert (found.low, found.high) == pytest.approx((6 - 4.9683, 6 + 4.9683), abs=1e-3)

    def test_statsmodels(self) -> None:
        # A ratio of sums is the weighted mean of y/x with weights x; its variance clustered by scenario.
        draw = random.Random(3)
        clusters = [(draw.uniform(1, 50), float(draw.randint(1, 6))) for _ in range(12)]
        y, x = (numpy.array(column) for column in zip(*clusters, strict=True))
        fit = WLS(y / x, numpy.ones_like(x), weights=x).fit(
            cov_type="cluster", cov_kwds={"groups": numpy.arange(12)}, use_t=True
        )
        found = ratio_interval(clusters)
        assert (found.low, found.high) == pytest.approx(tuple(fit.conf_int()[0]), rel=1e-9)

    def test_near_the_cluster_bootstrap(self) -> None:
        draw = random.Random(3)
        clusters = [(draw.gauss(10, 3) * size, float(size)) for size in [1, 2, 3, 4, 5] * 12]
        y, x = (numpy.array(column) for column in zip(*clusters, strict=True))
        theirs = stats.bootstrap(
            (y, x),
            lambda y, x, axis: y.sum(axis=axis) / x.sum(axis=axis),
            paired=True,
            n_resamples=4000,
            rng=numpy.random.default_rng(5),
        ).confidence_interval
        found = ratio_interval(clusters)
        assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=0.2)

    def test_coverage(self) -> None:
        draw = random.Random(20261130)
        covered = 0
        for _ in range(400):
            clusters = []
            for _ in range(20):
                mean = draw.gauss(10, 3)
                clusters.append((sum(draw.gauss(mean, 2) for _ in range(4)), 4.0))
            found = ratio_interval(clusters)
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= 10 <= found.high
        assert 0.92 * 400 <= covered <= 0.98 * 400

    @pytest.mark.parametrize("clusters", [[], [(3.0, 1.0)], [(3.0, 1.0), (3.0, 1.0)]])
    def test_too_little(self, clusters: list[tuple[float, float]]) -> None:
        found = ratio_interval(clusters)
        assert found.low is None
        assert found.note.startswith("n/a: ")
