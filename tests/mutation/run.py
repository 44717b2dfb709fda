"""Tries a sample of mutants one after the other, and tells what became of each kind."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable

from tests.mutation.equivalent import EQUIVALENT
from tests.mutation.outside import reference as from_outside
from tests.mutation.places import PLACES, Place
from tests.mutation.planted import planted
from tests.mutation.trial import Mutant, Outcome, library, sample, tried, unsound, warm

#: The mutants that are made, the seed by which they are drawn, and the random scenarios from outside.
SIZE, SEED, OUTSIDE = 520, 22, 10_000
#: The share of the mutants that are not equivalent which has to be noticed.
ENOUGH = 0.95
COLUMNS = ("made", "scenarios", "tests", "equivalent", "survived")

Tell = Callable[[str], None]


def run(
    places: Iterable[Place] = PLACES,
    size: int = SIZE,
    seed: int = SEED,
    outside: int = OUTSIDE,
    tell: Tell = print,
) -> bool:
    """Whether enough of the sample, and all that once passed, is noticed. Tells of each, and a table."""
    chosen = list(places)
    warm(chosen)
    if failing := unsound(chosen):
        tell(f"fails though nothing is broken: {', '.join(failing)}")
        return False
    library_episodes = library()
    mine = [mutant for mutant in planted() if mutant.place in chosen]
    passed = []
    for mutant in mine:
        outcome = tried(mutant, library_episodes)
        tell(_line(mutant, outcome))
        if outcome.found not in ("scenarios", "tests"):
            passed.append(mutant.name)
    # Some changes reach nothing that runs; as many others are drawn for them.
    found: list[tuple[Mutant, Outcome]] = []
    for mutant in sample(chosen, 2 * size, seed):
        if len(found) == size:
            break
        outcome = tried(mutant, library_episodes)
        if outcome.found != "no mutant":
            found.append((mutant, outcome))
            tell(_line(mutant, outcome))
    same = _same([mutant for mutant, outcome in found if outcome.found == "survived"], outside, tell)
    return _table(found, same, tell) and _told(mine, passed, tell)


def _line(mutant: Mutant, outcome: Outcome) -> str:
    return f"{outcome.found:9}  {outcome.seconds:5.1f} s  {mutant.told}  [{outcome.by}]"


def _same(survivors: list[Mutant], outside: int, tell: Tell) -> set[tuple[str, str, str]]:
    """The survivors that are argued to be the same and at which random scenarios see nothing else."""
    argued = [mutant for mutant in survivors if mutant.key in EQUIVALENT]
    same = {mutant.key for mutant in argued if not mutant.place.plays}
    playing = [mutant for mutant in argued if mutant.place.plays]
    if not playing:
        return same
    began = time.monotonic()
    random_episodes = from_outside(outside)
    tell(f"{len(random_episodes):,} random scenarios played ({time.monotonic() - began:.0f} s)")
    for mutant in playing:
        outcome = tried(mutant, random_episodes, tests=False)
        if outcome.found == "survived":
            same.add(mutant.key)
        else:
            tell(f"argued to be equivalent, and is not: {mutant.told}  [{outcome.by}]")
    return same


def _table(found: list[tuple[Mutant, Outcome]], same: set[tuple[str, str, str]], tell: Tell) -> bool:
    counts: dict[str, Counter[str]] = {}
    for mutant, outcome in found:
        kind = "equivalent" if outcome.found == "survived" and mutant.key in same else outcome.found
        for row in (mutant.module.removeprefix("evalkit."), "all"):
            counts.setdefault(row, Counter()).update(("made", kind))
    every = counts.pop("all", Counter())
    width = max(map(len, counts), default=0)
    tell(f"\n{'module':<{width}}  " + "  ".join(COLUMNS))
    for row, count in (*sorted(counts.items()), ("all", every)):
        tell(f"{row:<{width}}  " + "  ".join(f"{count[name]:>{len(name)}}" for name in COLUMNS))
    for mutant, outcome in found:
        if outcome.found == "survived":
            reason = EQUIVALENT[mutant.key] if mutant.key in same else ""
            tell(
                f"{'equivalent' if reason else 'survived'}: {mutant.told}"
                + (f"\n    {reason}" if reason else "")
            )
    caught = every["scenarios"] + every["tests"]
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
