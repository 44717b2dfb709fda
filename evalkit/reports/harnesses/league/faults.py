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


def faults(league: League, harness: str) -> list[Fault]:
    """The costliest faults of a harness, the worst first, no two of one kind and family.

    The order of harm is that of :data:`~evalkit.stats.severity.DAMAGE`; of equal ones a mended one first,
    then the shortest.
    """
    row = league.rows[harness]
    variants = {name: other for name, other in league.rows.items() if name.startswith(f"{harness}:")}
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
