"""Sample sizes against statsmodels, a published example, and by simulation."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy
import pytest
from statsmodels.regression.mixed_linear_model import MixedLM
from statsmodels.stats.power import NormalIndPower

from evalkit.stats.power import (
    NotPlannable,
    assumed_variance,
    designs,
    pilot_variance,
    scenarios_needed,
)
from evalkit.stats.signflip import sign_flip


@pytest.mark.parametrize(("difference", "variance"), [(0.05, 0.3), (0.1, 0.25), (0.2, 0.5)])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_statsmodels(difference: float, variance: float, power: float) -> None:
    theirs = NormalIndPower(ddof=0).solve_power(
        effect_size=difference / variance**0.5, alpha=0.05, power=power, ratio=0
    )
    assert scenarios_needed(difference, power, variance) == pytest.approx(theirs, abs=1)


def test_by_hand() -> None:
    # (1.959964 + 0.841621)^2 * 0.2975 / 0.05^2 = 934.02
    variance = assumed_variance(0.05, 0.3)
    assert variance.between == pytest.approx(0.2975)
    assert scenarios_needed(0.05, 0.8, variance.between) == 935


def test_power_is_what_was_planned() -> None:
    draw = random.Random(20261130)
    number = scenarios_needed(0.2, 0.8, assumed_variance(0.2, 0.4).between)
    found = 0
    for _ in range(300):
        # better 0.3, worse 0.1: difference 0.2, discordant 0.4
        values = draw.choices([1, -1, 0], [0.3, 0.1, 0.6], k=number)
        p = sign_flip([Fraction(value) for value in values])
        found += p is not None and p <= 0.05
    assert 0.72 <= found / 300 <= 0.88


class TestPilot:
    def test_components_by_hand(self) -> None:
        # Ten scenarios, two seeds: (0, 1) five times, (0, 0) five times. Within: 5 * 0.5 / 10 = 0.25.
        # Means 0.5 and 0, variance 10/9 * 0.0625 = 0.069444; between = 0.069444 - 0.125 -> 0.
        variance = pilot_variance([(0, 1)] * 5 + [(0, 0)] * 5, "pilot")
        assert variance.within == pytest.approx(0.25)
        assert variance.between == 0
        # Between only: five at 1, five at 0, seeds alike: variance 10/9 * 0.25.
        variance = pilot_variance([(1, 1)] * 5 + [(0, 0)] * 5, "pilot")
        assert (variance.within, variance.between) == pytest.approx((0, 0.25 * 10 / 9))

    def test_recovers_what_was_drawn(self) -> None:
        draw = random.Random(20261130)
        data = []
        for _ in range(3000):
            mean = draw.gauss(0, 0.3)
            data.append([draw.gauss(mean, 0.5) for _ in range(3)])
        variance = pilot_variance(data, "drawn")
        assert variance.between == pytest.approx(0.09, abs=0.015)
        assert variance.within == pytest.approx(0.25, abs=0.015)

    def test_statsmodels(self) -> None:
        # Of balanced data the analysis of variance is the REML estimate, where that is inside its bounds.
        draw = random.Random(11)
        data = []
        for _ in range(40):
            mean = draw.gauss(0.1, 0.4)
            data.append([draw.gauss(mean, 0.5) for _ in range(4)])
        values = numpy.concatenate(data)
        groups = numpy.repeat(numpy.arange(40), 4)
        fit = MixedLM(values, numpy.ones((160, 1)), groups).fit(reml=True)
        variance = pilot_variance(data, "drawn")
        assert variance.between == pytest.approx(float(fit.cov_re[0, 0]), rel=1e-3)
        assert variance.within == pytest.approx(float(fit.scale), rel=1e-3)

    def test_more_seeds_need_fewer_scenarios(self) -> None:
        variance = pilot_variance([(0, 1), (1, 0), (1, 1), (0, 0), (-1, 1)] * 4, "pilot")
        found = designs(0.1, 0.8, variance)
        needed = [design.scenarios for design in found]
        assert needed == sorted(needed, reverse=True)
        assert all(design.episodes == 2 * design.scenarios * design.seeds for design in found)

    @pytest.mark.parametrize(
        ("data", "why"), [([[0.0]] * 9, "9 scenarios"), ([[1.0]] * 20, "no variance"), ([], "0 scenarios")]
    )
    def test_says_why_it_cannot(self, data: list[list[float]], why: str) -> None:
        with pytest.raises(NotPlannable, match=why):
            pilot_variance(data, "pilot")


def test_without_pilot() -> None:
    assert [design.seeds for design in designs(0.05, 0.8, assumed_variance(0.05))] == [1]
    with pytest.raises(NotPlannable, match="at least that share"):
        assumed_variance(0.5, 0.3)
    assert scenarios_needed(0.05, 0.8, 0.3, comparisons=10) > scenarios_needed(0.05, 0.8, 0.3)
    assert scenarios_needed(0.9, 0.8, 0.01) == 20
