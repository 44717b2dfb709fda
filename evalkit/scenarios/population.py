"""A population fitted to recordings: its parameters as facts, and what is assumed where nothing was seen.

The document is written by ``evalkit fit`` and read by ``evalkit run``; what its names mean stands in
docs/fit.md. Drawing from it: :mod:`evalkit.scenarios.population_draws`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from evalkit.core.names import NAME_ALLOWED, is_name

#: The field by which a document is a population and no scenario.
POPULATION = "population"
#: Bounds on what a run of one may ask for.
MOST_DRAWS, MOST_DRAWN = 200, 500
#: How its own figures were predicted: see ``evalkit fit --validate``.
Status: TypeAlias = Literal["not validated", "calibrated", "not calibrated"]


class Estimate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One parameter: ``count`` of ``base`` in ``tasks`` clusters; ``of`` is whose habit it is.

    ``effective`` is how many independent observations they are worth, ``correlation`` how much alike those of
    one task are. ``rate``, ``low`` and ``high`` (90 %) are left out where there is ``too_few``.
    """

    of: str
    count: int
    base: int
    tasks: int
    effective: float
    correlation: float
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    too_few: str = ""


class Range(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What nobody saw: from ``low`` to ``high``, and what it is a probability of."""

    low: float
    high: float
    says: str

    @property
    def middle(self) -> float:
        """What it is taken for while others are swept."""
        return (self.low + self.high) / 2


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How it predicted what it had not seen, beside resampling; ``says`` is that in a sentence."""

    status: Status = "not validated"
    says: str = "nobody has held it against recordings that it was not fitted to (evalkit fit --validate)"
    splits: int = 0
    figures: int = 0
    coverage: float | None = None
    resampling_coverage: float | None = None
    score: float | None = None
    resampling_score: float | None = None


class Population(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A fitted population. ``trials`` are runs of one task; ``refused`` says why it holds no truth.

    ``lengths`` are tool turns before an end of turn or an exit, by stage: how often none, one, two, …
    ``longest`` is how many turns the longest recording has, ``spans`` are the ends of turn from which its
    stage is called middle, and late. ``draws`` is from how many draws of the fit a run takes its tasks,
    ``drawn`` how many tasks of each.
    """

    population: str
    source: str
    recordings: int
    tasks: int
    trials: int
    grouped: str
    estimates: dict[str, Estimate]
    lengths: dict[str, list[int]]
    assumed: dict[str, Range]
    refused: str = ""
    models: list[str] = []
    calibration: Calibration = Calibration()
    longest: int = 100
    spans: tuple[int, int] = (1, 1)
    draws: int = 20
    drawn: int = 0

    def problem(self) -> tuple[tuple[str, ...], str] | None:
        """What is wrong with it, and where; None for nothing."""
        if not is_name(self.population):
            return (POPULATION,), f"{self.population!r} is not a name; allowed: {NAME_ALLOWED}"
        for field, most in (("draws", MOST_DRAWS), ("drawn", MOST_DRAWN)):
            if not 1 <= getattr(self, field) <= most:
                return (field,), f"expected 1 to {most}, found {getattr(self, field)}"
        if not any(map(sum, self.lengths.values())):
            return ("lengths",), "counts no tool turns of any stage"
        for name, found in self.estimates.items():
            if not 0 <= found.count <= found.base or not 0 <= found.correlation <= 1 or found.effective <= 0:
                return ("estimates", name), "its counts, correlation or effective size cannot be"
        for name, range_ in self.assumed.items():
            if not 0 <= range_.low <= range_.high <= 1:
                return ("assumed", name), f"expected 0 to 1 in order, found {range_.low} to {range_.high}"
        return None

    @property
    def truth(self) -> bool:
        """Whether it says what was true of the work."""
        return not self.refused


def status_line(population: Population) -> str:
    """Whether it is calibrated, in a sentence that names the population."""
    found = population.calibration
    return f"{population.population}: {found.status}: {found.says}. Interventions: not validated."
