"""What each framework gets wrong worst, how to see it, and which of its settings mend it: all measured."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from evalkit.reports.harnesses.league.figures import REFERENCE, League, Result, Row
from evalkit.stats.severity import DAMAGE

#: Faults that are told of a framework.
TOLD = 3


class Fault(msgspec.Struct, frozen=True):
    """A scenario that a harness gets wrong; ``mended`` are its variants that get it right."""

    harness: str
    scenario: str
    result: Result
    mended: tuple[str, ...]

    @property
    def command(self) -> str:
        """What shows it turn by turn."""
        return f"evalkit harnesses run {self.harness} {self.scenario}"


class Mending(msgspec.Struct, frozen=True):
    """What a variant makes of all that its harness played: right of the ``wrong``, or ``broken``."""

    variant: str
    mended: tuple[str, ...]
    wrong: int
    broken: tuple[str, ...]

    @property
    def command(self) -> str:
        """What shows one that it mends turn by turn."""
        return f"evalkit harnesses run {self.variant} {self.mended[0]}"


def mendings(league: League, harness: str) -> list[Mending]:
    """The variants of a harness that mend something, on its API; who mends most comes first."""
    row = league.rows[harness]
    found = []
    for name, other in _variants(league, harness).items():
        both = list(_both(row, other))
        mended = tuple(scenario for scenario, mine, theirs in both if theirs.correct and not mine.correct)
        broken = tuple(scenario for scenario, mine, theirs in both if mine.correct and not theirs.correct)
        if mended and other.api == row.api:
            found.append(Mending(name, mended, sum(not mine.correct for _, mine, _ in both), broken))
    return sorted(found, key=lambda mending: (-len(mending.mended), mending.variant))


def _variants(league: League, harness: str) -> dict[str, Row]:
    return {name: other for name, other in league.rows.items() if name.startswith(f"{harness}:")}


def _both(row: Row, other: Row) -> Iterator[tuple[str, Result, Result]]:
    """What both have a result of."""
    for mine, theirs in ((row.behaviours, other.behaviours), (row.library, other.library)):
        for scenario, result in mine.items():
            its = theirs.get(scenario)
            if its is not None and not result.why and not its.why:
                yield scenario, result, its


def faults(league: League, harness: str) -> list[Fault]:
    """The costliest faults of a harness, the worst first, no two of one kind and family.

    The order of harm is that of :data:`~evalkit.stats.severity.DAMAGE`; of equal ones a mended one first,
    then the shortest.
    """
    row = league.rows[harness]
    variants = _variants(league, harness)
    found: dict[tuple[str, str, str], Fault] = {}
    wrong = [Fault(harness, name, result, _mended(name, variants)) for name, result in _wrong(row)]
    for fault in sorted(wrong, key=_place):
        family = league.families.get(fault.scenario, "behaviours")
        found.setdefault((fault.result.damage, fault.result.outcome, family), fault)
    return list(found.values())[:TOLD]


def frameworks(league: League) -> list[str]:
    """The harnesses of which faults are told: no variants, and not the reference."""
    return sorted(name for name in league.rows if ":" not in name and name != REFERENCE)


def _wrong(row: Row) -> Iterator[tuple[str, Result]]:
    for results in (row.behaviours, row.library):
        for name, result in results.items():
            if not result.why and not result.correct:
                yield name, result


def _mended(scenario: str, variants: dict[str, Row]) -> tuple[str, ...]:
    """The variants that get a scenario right."""
    none = Result(why="not played")
    return tuple(
        name
        for name, row in variants.items()
        if (row.behaviours.get(scenario) or row.library.get(scenario, none)).correct
    )


def _place(fault: Fault) -> tuple[int, bool, int, str]:
    damage = fault.result.damage
    harm = DAMAGE.index(damage) if damage else len(DAMAGE)
    return harm, not fault.mended, fault.result.turns, fault.scenario
