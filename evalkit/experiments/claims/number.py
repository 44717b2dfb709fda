"""A measured figure of an experiment, with its interval where it was sampled."""

from __future__ import annotations

import msgspec

from evalkit.stats.intervals import wilson


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
