"""The sign-flip test against Fisher's own count, McNemar's exact test and scipy; Holm against statsmodels."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from evalkit.stats import signflip
from evalkit.stats.signflip import flip_range, holm, sign_flip
from evalkit.stats.strategy_comparison import Paired
from evalkit.stats.strategy_comparison import paired as paired_by_file
from tests.stats.simulations import null_errors

#: Darwin's maize, crossed less self-fertilised, in eighths of an inch (Fisher 1935, section 17).
DARWIN = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def fractions(values: list[int], over: int = 1) -> list[Fraction]:
    return [Fraction(value, over) for value in values]


def paired(differences: list[Fraction]) -> Paired:
    """Each scenario in a file of its own."""
    return paired_by_file(differences, range(len(differences)))


def range_of(differences: list[Fraction], p: float | None) -> tuple[float, float] | None:
    return flip_range([(difference, 1) for difference in differences], p)


class TestSignFlip:
    def test_fisher_on_darwin(self) -> None:
        # "In 863 cases of 32768 the difference is as great or greater": both tails, 1726.
        assert sign_flip(fractions(DARWIN)) == 1726 / 32768

    @given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 20))
    def test_of_yes_and_no_is_mcnemars_exact_test(self, better: int, worse: int, same: int) -> None:
        found = sign_flip(fractions([1] * better + [-1] * worse + [0] * same))
        if not better + worse:
            assert found is None
        else:
            table = [[same, better], [worse, 0]]
            assert found == pytest.approx(mcnemar(table, exact=True).pvalue)

    @settings(max_examples=25)
    @given(st.lists(st.integers(-10, 10), min_size=2, max_size=9).filter(any))
    def test_scipy(self, values: list[int]) -> None:
        theirs = permutation_test(
            (numpy.array(values, dtype=float),),
            lambda sample, axis: numpy.mean(sample, axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=numpy.inf,
        )
        assert sign_flip(fractions(values, 10)) == pytest.approx(min(1.0, theirs.pvalue))

    def test_in_doubles_as_in_whole_numbers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        draw = random.Random(1)
        values = fractions([draw.randint(-20, 24) for _ in range(150)], 20)
        whole = sign_flip(values)
        monkeypatch.setattr(signflip, "_WHOLE_STEPS", 0)
        assert sign_flip(values) == pytest.approx(whole, rel=1e-10)
        assert sign_flip(fractions([1, -1])) == 1

    def test_nothing_differs(self) -> None:
        assert sign_flip([]) is None
        assert sign_flip(fractions([0, 0])) is None


class TestErrorRate:
    """Scenarios × seeds under the null hypothesis: strategies that are alike on average."""

    def test_type_one_error_on_clustered_data(self) -> None:
        draw = random.Random(20261130)
        ours = naive = 0
        for _ in range(500):
            differences, better, worse = [], 0, 0
            for _ in range(25):
                # Each scenario leans one way, and its five seeds are copies of one another.
                one = draw.choice([-5, 0, 5])
                differences.append(Fraction(one, 5))
                better += max(one, 0)
                worse += max(-one, 0)
            p = paired(differences).p
            ours += p is not None and p <= 0.05
            naive += better + worse > 0 and binomtest(better, better + worse).pvalue <= 0.05
        assert ours <= 0.06 * 500
        assert naive >= 0.25 * 500

    def test_type_one_error_with_noise_within_scenarios(self) -> None:
        draw = random.Random(20261130)
        wrong = 0
        for _ in range(400):
            differences = []
            for _ in range(30):
                rate = draw.betavariate(0.5, 0.5)
                one = sum(draw.random() < rate for _ in range(3))
                other = sum(draw.random() < rate for _ in range(3))
                differences.append(Fraction(one - other, 3))
            p = paired(differences).p
            wrong += p is not None and p <= 0.05
        assert wrong <= 0.07 * 400

    def test_range_covers_the_mean_of_the_scenarios(self) -> None:
        draw = random.Random(20261130)
        covered = 0
        for _ in range(400):
            found = paired([Fraction(draw.choice([1, 1, 0, 0, 0, -1])) for _ in range(40)])
            assert found.low is not None
            assert found.high is not None
            covered += found.low <= 1 / 6 <= found.high
        assert covered >= 0.93 * 400


class TestRange:
    @given(st.lists(st.integers(-3, 3), min_size=4, max_size=60))
    def test_agrees_with_the_exact_test_about_zero(self, values: list[int]) -> None:
        differences = fractions(values, 3)
        p = sign_flip(differences)
        found = range_of(differences, p)
        if found is not None and p is not None:
            low, high = found
            assert low <= sum(values) / 3 / len(values) <= high
            assert (low <= 0 <= high) or p <= 0.05
            if p <= 0.05:
                assert low >= 0 or high <= 0

    def test_near_the_exact_inversion(self) -> None:
        draw = random.Random(3)
        differences = [Fraction(draw.choice([1, 1, 0, 0, 0, -1])) for _ in range(40)]
        low, high = range_of(differences, sign_flip(differences)) or (9, 9)
        kept = [
            delta / 100
            for delta in range(-100, 101)
            if (sign_flip([d - Fraction(delta, 100) for d in differences]) or 1) > 0.05
        ]
        assert (low, high) == pytest.approx((min(kept), max(kept)), abs=0.03)

    @pytest.mark.parametrize("values", [[], [1], [1, 1, 1], [2] * 30])
    def test_none_without_variance(self, values: list[int]) -> None:
        assert range_of(fractions(values), None) is None

    def test_ends_at_zero_only_where_the_exact_test_says_so(self) -> None:
        better = fractions([1] * 20 + [0] * 20)
        low, high = range_of(better, 0.001) or (0.0, 0.0)
        assert 0 < low < high
        assert range_of(better, 0.2) == (0.0, high)


class TestHolm:
    @pytest.mark.long
    @settings(max_examples=20)
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
    def test_statsmodels(self, values: list[float]) -> None:
        assert holm(values) == pytest.approx(list(multipletests(values, method="holm")[1]))

    def test_by_hand_and_none_stays_none(self) -> None:
        assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])


class TestPaired:
    def test_few_scenarios_give_counts_only(self) -> None:
        found = paired(fractions([1] * 19))
        assert (found.better, found.p, found.low) == (19, None, None)
        assert found.note == "fewer than 20 scenarios: counts only"
        assert paired(fractions([1] * 20)).p == 2 / 2**20

    def test_nothing_in_common_and_nothing_different(self) -> None:
        assert paired([]).note == "no scenario in common"
        assert paired([]).difference is None
        found = paired(fractions([0] * 30))
        assert (found.difference, found.p, found.note) == (0, None, "no scenario differs")


class TestVariants:
    """Variants of one file lean one way together: they are one observation of the test, not many."""

    def test_the_signs_of_a_file_are_flipped_together(self) -> None:
        # 20 files of five variants each that all differ alike: the test of 20, not of 100.
        differences = fractions([1] * 60 + [-1] * 40)
        files = [place // 5 for place in range(100)]
        assert paired_by_file(differences, files).p == sign_flip(fractions([5] * 12 + [-5] * 8))
        assert (paired(differences).p or 1) < 0.06 < (paired_by_file(differences, files).p or 0)

    def test_few_files_give_counts_only(self) -> None:
        assert paired_by_file(fractions([1] * 100), [place // 10 for place in range(100)]).p is None

    def test_the_range_is_that_of_the_inverted_test(self) -> None:
        draw = random.Random(9)
        files = [place // 3 for place in range(90)]
        lean = [draw.choice([1, 1, 0, 0, -1]) for _ in range(30)]
        differences = fractions([lean[file] for file in files])
        found = paired_by_file(differences, files)
        sums = [Fraction(3 * one) for one in lean]
        kept = [
            delta / 100
            for delta in range(-100, 101)
            if (sign_flip([d - Fraction(3 * delta, 100) for d in sums]) or 1) > 0.05
        ]
        assert (found.low, found.high) == pytest.approx((min(kept), max(kept)), abs=0.04)

    def test_files_that_cancel_out_are_no_evidence(self) -> None:
        files = [place // 2 for place in range(40)]
        assert paired_by_file(fractions([1, -1] * 20), files).p == 1


class TestSeedsOfTwoRuns:
    """A rate over one seed and one over twenty do not vary alike: the seeds that both have are compared."""

    @pytest.mark.long
    @pytest.mark.parametrize(("mine", "theirs"), [(1, 20), (20, 1)])
    def test_no_difference_is_found_where_there_is_none(self, mine: int, theirs: int) -> None:
        # Averaged over their own seeds a third to a half of these were called different.
        compared, gated = null_errors(30, 20, mine, theirs, 1)
        assert compared <= 0.1
        assert gated <= 0.1
