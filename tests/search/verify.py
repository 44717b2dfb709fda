"""What is measured of proofs and of the search for counterexamples: ``make verify``.

``python -m tests.search.verify [PART…]`` prints the figures of the parts: ``agreement`` with a brute force,
``proofs`` of ``gate`` with the larger alphabet, ``falsify`` (planted bugs) and ``careful`` (programs that
are right) over five seeds, ``mutants`` of evalkit's own code, ``simulations`` of the statistics. Without a
part it does all.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import prove
from evalkit.strategies.presets import PRESETS
from tests.mutation.run import run as mutants
from tests.search.brute import agrees, compare
from tests.search.test_brute_force import CASES, DEPTH, LARGER, chosen
from tests.search.test_falsify import CAREFUL, SEVERAL, answer, looked_at
from tests.stats.simulations import tables

SEEDS = range(5)
#: Runs that may look for a planted bug.
RUNS = 400
#: Runs with which a careful program is looked at: one that stays, one that is killed, one started for each.
STAYS, KILLED, STARTED = 200, 120, 40
#: Runs of each simulation.
SIMULATED = 2_000


def agreement() -> bool:
    """Cells (a property of a strategy with some moves) in which exploration and brute force agree."""
    cells = equal = played = 0
    for cases, turns in ((CASES, DEPTH), (LARGER, 3)):
        for name, (strategy, setting, names) in cases.items():
            compared, runs = compare(strategy, setting, chosen(strategy, names, setting), turns)
            played += runs
            for result, really in compared:
                cells += 1
                equal += agrees(result, really)
                if not agrees(result, really):
                    print(f"  {name}, {result.property}: {result.answer}, brute force {really}", flush=True)
    print(f"agreement with the brute force: {equal} of {cells} cells, {played:,} scripts played", flush=True)
    return equal == cells


def proofs() -> bool:
    """States, transitions and core seconds of ``gate`` with the larger alphabet, to the fixpoint."""
    print("gate, no_false_done, larger alphabet, full checks:", flush=True)
    held = True
    for items in (2, 3, 4):
        began = time.process_time()
        proof = prove(PRESETS["gate"].strategy, Setting(items, "full", 0, "full"), ("no_false_done",))
        (result,) = proof.results
        seconds = time.process_time() - began
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        held = held and result.answer == "proved"
        print(
            f"  {items} items: {result.answer}, {proof.moves} moves, {result.states:,} states,"
            f" {result.transitions:,} transitions, depth {result.depth}, {seconds:.1f} core seconds,"
            f" {memory} MB, reached {result.witnesses.count}",
            flush=True,
        )
    return held


def falsified() -> bool:
    """In which run each planted bug is found, by seed. What is found is not made small: that is tested."""
    print(f"planted bugs, the run that finds each of {RUNS}, by seed; - is not found:", flush=True)
    good = True
    for program, name, calls in SEVERAL:
        print(f"  {program}:", end="", flush=True)
        for seed in SEEDS:
            with as_found():
                found = answer(looked_at(program, calls, seed, RUNS, (name,)), name)
            refuted = found.answer == "refuted"
            good = good and refuted
            print(f" {found.run if refuted else '-'}", end="", flush=True)
        print(flush=True)
    return good


@contextmanager
def as_found() -> Iterator[None]:
    """Leave what a search finds as it is."""
    search = "evalkit.search.falsification.counterexample_search"
    with (
        patch(f"{search}.make_small", lambda script, alphabet, breaks: (script, True)),
        patch(f"{search}.Search._carried", lambda self, one, tried: None),
    ):
        yield


def careful() -> bool:
    """That programs which keep what they promise are never refuted, by seed."""
    print("careful programs, the runs of each seed:", flush=True)
    good = True
    for program, calls in CAREFUL:
        limited = f", at most {calls} calls" if calls else ""
        print(f"  {program}{limited}:", end="", flush=True)
        most = STARTED if "." in program else KILLED if "crash" in program else STAYS
        refuted: list[str] = []
        for seed in SEEDS:
            found = looked_at(program, calls, seed, most)
            refuted += [
                f"{each.property} (seed {seed})" for each in found.results if each.answer == "refuted"
            ]
            print(f" {found.runs}", end="", flush=True)
        print(f"; refuted: {', '.join(refuted) or 'never'}", flush=True)
        good = good and not refuted
    return good


def simulated() -> bool:
    """Type I errors and coverage, as docs/statistics.md has them."""
    for line in tables(SIMULATED):
        print(line, flush=True)
    return True


PARTS: dict[str, Callable[[], bool]] = {
    "agreement": agreement,
    "proofs": proofs,
    "falsify": falsified,
    "careful": careful,
    "mutants": mutants,
    "simulations": simulated,
}


def main(words: list[str]) -> int:
    """The exit code: 1 where something is not as it should be."""
    good = [PARTS[word]() for word in words or PARTS]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
