"""Intervals of a fit hold what is true about as often as they say: a few repetitions of ``make fit``'s."""

from __future__ import annotations

from statistics import fmean

import pytest

from tests.fit import simulations


@pytest.mark.long
def test_intervals_over_tasks_hold_what_is_true() -> None:
    found = simulations.coverage(50)
    assert fmean(one.coverage for one in found.values()) >= 0.85
    often = {name: one for name, one in found.items() if one.mean_events >= simulations.EVENTS}
    assert len(often) > 10
    assert min(one.coverage for one in often.values()) >= 0.74, often


@pytest.mark.long
def test_runs_taken_for_independent_would_not_hold() -> None:
    """What the clusters are for: each run as a task of its own gives intervals that are too narrow."""
    apart = simulations.coverage(50, alone=True)
    together = simulations.coverage(50)
    assert apart["false.all"].coverage < together["false.all"].coverage - 0.05
