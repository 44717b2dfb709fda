"""How many scenarios and seeds a comparison needs, from assumptions or from the variance of a pilot run."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from statistics import NormalDist

import msgspec

from evalkit.stats.strategy_comparison import FEWEST

#: Assumed without a pilot: the share of scenarios on which two strategies differ.
DISCORDANT = 0.3
#: Fewer scenarios in a pilot give no variance to plan with.
PILOT_FEWEST = 10
SEEDS = (1, 2, 3, 5, 10, 20)


class Variance(msgspec.Struct, frozen=True):
    """The variance of a paired difference: ``between`` scenarios, and ``within`` one between seeds.

    ``seeds_known`` is false where a pilot has one seed a scenario: then ``within`` is part of ``between``.
    """

    between: float
    within: float
    source: str
    seeds_known: bool = True

    def of_mean(self, seeds: int) -> float:
        """The variance of one scenario's difference, averaged over seeds."""
        return self.between + self.within / seeds


class Design(msgspec.Struct, frozen=True):
    """A number of scenarios and seeds; ``episodes`` for both strategies together."""

    seeds: int
    scenarios: int
    episodes: int


class NotPlannable(ValueError):
    """No variance to plan with; one line says why."""


def assumed_variance(difference: float, discordant: float = DISCORDANT) -> Variance:
    """Without a pilot: pairs of yes and no, of which a share is discordant: ψ − δ² (Miettinen 1968).

    All of it is taken to lie between scenarios, so seeds are no help: the careful assumption.
    """
    if discordant < abs(difference):
        raise NotPlannable(
            f"a difference of {difference:g} needs at least that share of scenarios to differ, "
            f"got {discordant:g}"
        )
    return Variance(discordant - difference**2, 0.0, f"assumed: {discordant:.0%} of the scenarios differ")


def pilot_variance(differences: Sequence[Sequence[float]], source: str) -> Variance:
    """From a pilot: for each scenario its paired differences, one for each seed.

    One-way analysis of variance: within = pooled variance between seeds; between = variance of the means of
    scenarios less within over (harmonic mean of) seeds, 0 at least (Searle, Casella, McCulloch, Variance
    Components, 1992, section 3.6). NotPlannable for few scenarios or no variance at all.
    """
    filled = [values for values in differences if values]
    number = len(filled)
    if number < PILOT_FEWEST:
        raise NotPlannable(f"n/a: the pilot has {number} scenarios in common, {PILOT_FEWEST} are needed")
    means = [sum(values) / len(values) for values in filled]
    centre = sum(means) / number
    of_means = sum((mean - centre) ** 2 for mean in means) / (number - 1)
    freedom = sum(len(values) - 1 for values in filled)
    squares = sum((value - mean) ** 2 for values, mean in zip(filled, means, strict=True) for value in values)
    within = squares / freedom if freedom else 0.0
    seeds = number / sum(1 / len(values) for values in filled)
    between = max(0.0, of_means - within / seeds)
    if between + within <= 0:
        raise NotPlannable("n/a: in the pilot every scenario differs by the same, so there is no variance")
    return Variance(between, within, source, freedom > 0)


def scenarios_needed(
    difference: float, power: float, variance: float, *, alpha: float = 0.05, comparisons: int = 1
) -> int:
    """n = (z₁₋α/2 + z_power)² · variance / difference², at least 20: below that no test is made.

    The two-sided test of a mean of paired differences (Lachin, Controlled Clinical Trials 2 (1981) 93).
    ``comparisons`` divides α: Holm's first step, so enough for the hardest of them.
    """
    normal = NormalDist()
    z = normal.inv_cdf(1 - alpha / (2 * comparisons)) + normal.inv_cdf(power)
    return max(FEWEST, ceil(z * z * variance / difference**2))


def designs(
    difference: float,
    power: float,
    variance: Variance,
    *,
    alpha: float = 0.05,
    comparisons: int = 1,
    seeds: Sequence[int] = SEEDS,
) -> list[Design]:
    """Enough scenarios for each number of seeds; with nothing within scenarios, one seed only."""
    found = []
    for each in seeds if variance.within > 0 else (1,):
        needed = scenarios_needed(
            difference, power, variance.of_mean(each), alpha=alpha, comparisons=comparisons
        )
        found.append(Design(each, needed, 2 * needed * each))
    return found
