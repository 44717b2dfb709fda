"""The middle of values that were drawn."""

from __future__ import annotations

from collections.abc import Sequence

#: What an interval of 90 % leaves out.
OUTSIDE = 0.10


def middle(values: Sequence[float]) -> tuple[float, float]:
    """The middle 90 % of values, interpolated (Hyndman and Fan's type 7); at least one value."""
    ordered = sorted(values)
    return _quantile(ordered, OUTSIDE / 2), _quantile(ordered, 1 - OUTSIDE / 2)


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])
