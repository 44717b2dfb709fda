"""A claim, the experiment on it, and what the experiment found."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from evalkit.stats.intervals import wilson

if TYPE_CHECKING:
    from evalkit.experiments.claims.bench import Bench

Verdict: TypeAlias = Literal["shown", "example", "construction", "not shown", "outside"]
VERDICTS: dict[Verdict, str] = {
    "shown": "shown",
    "example": "shown by single scenarios",
    "construction": "true by construction",
    "not shown": "not shown",
    "outside": "outside what scripted models can say",
}


class Number(msgspec.Struct, frozen=True):
    """One measured figure: ``count`` of ``base``, or a mean where ``base`` is None.

    ``sampled`` says that the base are seeds of a population, so that an interval means something; of written
    scenarios there is none.
    """

    label: str
    count: float
    base: int | None = None
    sampled: bool = False

    @property
    def rate(self) -> float:
        """The share. ValueError for a mean and for an empty base."""
        if not self.base:
            raise ValueError(f"{self.label}: no base, so no share")
        return self.count / self.base

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval over the seeds. ValueError for an empty base."""
        found = wilson(self.count, self.base or 0)
        if found is None:
            raise ValueError(f"{self.label}: an empty base has no interval")
        return found

    def above(self, other: Number) -> bool:
        """Whether this share is larger: by intervals that do not overlap where both are sampled."""
        if self.sampled and other.sampled:
            return self.interval[0] > other.interval[1]
        return self.rate > other.rate

    @property
    def text(self) -> str:
        """The figure in words."""
        if self.base is None:
            return f"{self.label}: {self.count:.1f}"
        if not self.base:
            return f"{self.label}: n/a (nothing in the base)"
        if not self.sampled:
            return f"{self.label}: {self.count:.0f} of {self.base}"
        low, high = self.interval
        return (
            f"{self.label}: {100 * self.rate:.1f} % ({100 * low:.1f} to {100 * high:.1f}; "
            f"{self.count:.0f} of {self.base} seeds)"
        )


class Finding(msgspec.Struct, frozen=True):
    """What an experiment found. ``note`` says what the verdict leaves out."""

    numbers: tuple[Number, ...]
    shown: bool
    note: str = ""


class Claim(msgspec.Struct, frozen=True):
    """A claim of a seed or paper in our own words, and the experiment on it; None where none is possible.

    ``rule`` says what must be found for it to count as shown, before anything is run; without an experiment,
    why there is none. ``construction`` says what of the outcome follows from how evalkit defines its words or
    writes its populations: such a claim is illustrated, not tested.
    """

    id: str
    source: str
    says: str
    experiment: str
    rule: str
    run: Callable[[Bench], Finding] | None = None
    construction: str = ""


class Result(msgspec.Struct, frozen=True):
    """A claim with its finding. ``alone``: the written scenarios without any one of which it is not shown."""

    claim: Claim
    finding: Finding | None
    alone: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """How the claim came out."""
        if self.finding is None:
            return "outside"
        if not self.finding.shown:
            return "not shown"
        if self.claim.construction:
            return "construction"
        return "example" if self.alone else "shown"
