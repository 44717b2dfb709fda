"""pass^k: the chance that k tries of the same scenario are all correct."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb

#: The numbers of tries that are shown, as far as there are so many seeds.
TRIES = (1, 2, 3, 5, 8, 10, 20, 50)


def pass_k(correct: int, tries: int, k: int) -> Fraction | None:
    """The unbiased estimate C(correct, k) / C(tries, k) for one scenario; None for fewer than k tries.

    The share of k-subsets of the tries that are all correct (Yao and others, tau-bench, 2024, section 4).
    """
    if k < 1 or tries < k:
        return None
    return Fraction(comb(correct, k), comb(tries, k))


def mean_pass_k(groups: Sequence[tuple[int, int, int]], k: int) -> tuple[float, int] | None:
    """pass^k averaged over scenarios, and how many there were; None where none has k tries.

    ``groups`` are (tries, correct, number of scenarios). A scenario that was tried once, because nothing in
    it is random, is left out: seeds do not matter there, and it would hide those in which they do.
    """
    total, scenarios = Fraction(0), 0
    for tries, correct, number in groups:
        value = None if tries == 1 else pass_k(correct, tries, k)
        if value is not None:
            total += value * number
            scenarios += number
    return (float(total / scenarios), scenarios) if scenarios else None


def pass_table(groups: Sequence[tuple[int, int, int]]) -> list[dict[str, float | int]]:
    """pass^k for the usual k; empty where no scenario was tried more than once."""
    most = max((tries for tries, _, _ in groups), default=0)
    table: list[dict[str, float | int]] = []
    if most < 2:
        return table
    for k in TRIES:
        if k <= most and (found := mean_pass_k(groups, k)):
            table.append({"k": k, "rate": found[0], "scenarios": found[1]})
    return table
