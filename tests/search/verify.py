"""What is measured of proofs and of the search for counterexamples: ``make verify``.

``python -m tests.search.verify [PART…]`` prints the figures of the parts: ``agreement`` with a brute force,
``proofs`` of ``gate`` with the larger alphabet, ``falsify`` over five seeds, ``mutants`` of evalkit's
own code. Without a part it does all.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

from evalkit.search.proofs.environment import Setting
from evalkit.search.proofs.prove import prove
from evalkit.strategies.presets import PRESETS
from tests.mutation.run import run as mutants
from tests.search.brute import agrees, compare
from tests.search.test_brute_force import CASES, DEPTH, LARGER, chosen
from tests.search.test_falsify import CAREFUL, SEVERAL, answer, looked_at

SEEDS = range(5)
#: Runs that may look for a planted bug, and with which a careful program is looked at.
RUNS = 400


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
    """In which run each planted bug is found, by seed, and that careful programs are never refuted."""
    print(f"planted bugs, the run that finds each of {RUNS}, by seed; - is not found:", flush=True)
    good = True
    for program, name, calls in SEVERAL:
        runs = []
        for seed in SEEDS:
            found = answer(looked_at(program, calls, seed, RUNS, (name,)), name)
            runs.append(found.run if found.answer == "refuted" else None)
        good = good and None not in runs
        said = ", ".join("-" if run is None else str(run) for run in runs)
        print(f"  {program}: {sum(run is not None for run in runs)} of {len(runs)} ({said})", flush=True)
    print("careful programs:", flush=True)
    for program, calls in CAREFUL:
        looked = [
            looked_at(program, calls, seed, RUNS if "." not in program else RUNS // 4) for seed in SEEDS
        ]
        refuted = [
            result.property for found in looked for result in found.results if result.answer == "refuted"
        ]
        good = good and not refuted
        runs = sum(found.runs for found in looked)
        limited = f", at most {calls} calls" if calls else ""
        print(f"  {program}{limited}: {runs:,} runs, refuted: {', '.join(refuted) or 'never'}", flush=True)
    return good


PARTS: dict[str, Callable[[], bool]] = {
    "agreement": agreement,
    "proofs": proofs,
    "falsify": falsified,
    "mutants": mutants,
}


def main(words: list[str]) -> int:
    """The exit code: 1 where something is not as it should be."""
    good = [PARTS[word]() for word in words or PARTS]
    return int(not all(good))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
