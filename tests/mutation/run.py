"""Tries a sample of mutants one after the other, and tells what became of each kind."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.log import LOG, Log
from tests.mutation.outside import BATCH
from tests.mutation.outside import reference as from_outside
from tests.mutation.places import PLACES, Place
from tests.mutation.planted import planted
from tests.mutation.trial import Mutant, Outcome, Reference, library, sample, together, tried, unsound, warm

#: The mutants that are made, the seed by which they are drawn, and the random scenarios from outside.
SIZE, SEED, OUTSIDE = 520, 22, 10_000
#: The share of the mutants that are not equivalent which has to be noticed.
ENOUGH = 0.95
#: Made; noticed by scenarios, by tests, and so caught; argued to be equivalent; and the rest.
COLUMNS = ("made", "scenarios", "tests", "caught", "equivalent", "survived")

Tell = Callable[[str], None]


def run(
    places: Iterable[Place] = PLACES,
    size: int = SIZE,
    seed: int = SEED,
    outside: int = OUTSIDE,
    tell: Tell = print,
    log: Path = LOG,
) -> bool:
    """Whether enough of the sample, and all that once passed, is noticed. Tells of each, and a table.

    What ``log`` has already is not tried again.
    """
    chosen, known = list(places), Log(log)
    mine = [mutant for mutant in planted() if mutant.place in chosen]
    trial = _Trial(chosen, known, tell)
    passed = [mutant.name for mutant in mine if trial.of(mutant).found not in ("scenarios", "tests")]
    # Some changes reach nothing that runs; as many others are drawn for them.
    found: list[tuple[Mutant, Outcome]] = []
    for mutant in sample(chosen, 2 * size, seed):
        if len(found) == size:
            break
        outcome = trial.of(mutant)
        if outcome.found != "no mutant":
            found.append((mutant, outcome))
    if trial.failing:
        tell(f"fails though nothing is broken: {', '.join(trial.failing)}")
        return False
    same = _same([mutant for mutant, outcome in found if outcome.found == "survived"], outside, known, tell)
    return _table(found, same, tell) and _told(mine, passed, tell)


class _Trial:
    """Tries mutants; what it needs for that is made ready when the first of them is not known yet."""

    def __init__(self, places: list[Place], known: Log, tell: Tell) -> None:
        self._places, self._known, self._tell = places, known, tell
        self._library: Reference | None = None
        #: Tests that fail though nothing is broken: what they say of mutants is worth nothing.
        self.failing: list[str] = []

    def of(self, mutant: Mutant) -> Outcome:
        """What became of a mutant, now or before."""
        outcome = self._known.outcome(mutant)
        if outcome is not None:
            return outcome
        if self._library is None:
            warm(self._places)
            self.failing = unsound(self._places)
            self._library = library()
        if self.failing:
            return Outcome("no mutant", "", 0.0)
        outcome = tried(mutant, self._library)
        self._known.keep(mutant, outcome)
        self._tell(_line(mutant, outcome))
        return outcome


def _line(mutant: Mutant, outcome: Outcome) -> str:
    return f"{outcome.found:9}  {outcome.seconds:5.1f} s  {mutant.told}  [{outcome.by}]"


def _same(survivors: list[Mutant], outside: int, known: Log, tell: Tell) -> set[tuple[str, str, str]]:
    """The survivors that are argued to be the same and at which random scenarios see nothing else."""
    argued = [mutant for mutant in survivors if mutant.key in EQUIVALENT]
    same = {mutant.key for mutant in argued}
    playing = [mutant for mutant in argued if mutant.place.plays]
    for batch in range(-(-outside // BATCH)):
        number = min(outside, (batch + 1) * BATCH)
        left = [mutant for mutant in playing if mutant.key in same and known.played(mutant) < number]
        if not left:
            continue
        began = time.monotonic()
        random_episodes = from_outside(number - batch * BATCH, batch)
        for company in companies(left, batch):
            # Who changes nothing changes nothing in company either; what is seen is looked for in each.
            if together(company, random_episodes):
                seen = {}
            else:
                outcomes = {mutant: tried(mutant, random_episodes, tests=False) for mutant in company}
                seen = {mutant: each for mutant, each in outcomes.items() if each.found != "survived"}
            for mutant in company:
                if mutant in seen:
                    same.discard(mutant.key)
                    tell(f"argued to be equivalent, and is not: {mutant.told}  [{seen[mutant].by}]")
                else:
                    known.keep_played(mutant, number)
        tell(f"{number:,} random scenarios played by {len(left)} ({time.monotonic() - began:.0f} s)")
    return same


def companies(mutants: Iterable[Mutant], batch: int) -> list[list[Mutant]]:
    """Mutants that are made at once, and in each batch others beside each other: none hides another for long.

    Of one function it is one, beside numbers that stand on different lines.
    """
    found: list[dict[tuple[str, int], Mutant]] = [{}, {}]
    for mutant in mutants:
        scope = place_of(mutant)
        turn = hashlib.blake2b(f"{batch} {mutant.told}".encode()).digest()[0] % 2
        company = next((each for each in (*found[turn:], *found[:turn]) if scope not in each), None)
        if company is None:
            found.append(company := {})
        company[scope] = mutant
    return [list(company.values()) for company in found if company]


def place_of(mutant: Mutant) -> tuple[str, int]:
    """What a mutant changes, so that no two are made there at once."""
    change = mutant.change
    assert change is not None
    return f"{mutant.module} {change.scope}", change.line if change.rule == "constant" else 0


def _table(found: list[tuple[Mutant, Outcome]], same: set[tuple[str, str, str]], tell: Tell) -> bool:
    counts: dict[str, Counter[str]] = {}
    for mutant, outcome in found:
        kind = "equivalent" if outcome.found == "survived" and mutant.key in same else outcome.found
        for row in (mutant.place.name, "all"):
            counts.setdefault(row, Counter()).update(("made", kind))
            counts[row]["caught"] += kind in ("scenarios", "tests")
    every = counts.pop("all", Counter())
    width = max(map(len, counts), default=0)
    tell(f"\n{'place':<{width}}  " + "  ".join(COLUMNS))
    for row, count in (*sorted(counts.items()), ("all", every)):
        tell(f"{row:<{width}}  " + "  ".join(f"{count[name]:>{len(name)}}" for name in COLUMNS))
    for mutant, outcome in found:
        if outcome.found == "survived":
            reason = EQUIVALENT[mutant.key] if mutant.key in same else ""
            tell(
                f"{'equivalent' if reason else 'survived'}: {mutant.told}"
                + (f"\n    {reason}" if reason else "")
            )
    caught = every["caught"]
    others = every["made"] - every["equivalent"]
    share = caught / others if others else 1.0
    tell(f"\n{caught} of {others} mutants that are not equivalent are noticed: {share:.1%}")
    return share >= ENOUGH


def _told(mine: list[Mutant], passed: list[str], tell: Tell) -> bool:
    tell(
        f"{len(mine) - len(passed)} of {len(mine)} that once passed are noticed"
        + "".join(f"; not: {n}" for n in passed)
    )
    return not passed
