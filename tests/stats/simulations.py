"""What the statistics do in the long run: type I errors and coverage, by simulation.

``python -m tests.stats.simulations [RUNS] [claims]`` prints the tables of docs/statistics.md (``make
simulations``), or that of the reader of claims alone; the tests run a few hundred of the same.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from evalkit.reports.ci.baseline import baseline_of
from evalkit.reports.ci.gate import REGRESSION, judge
from evalkit.reports.ci.rules import Rules
from evalkit.runs.store import Store
from evalkit.stats.intervals import cluster_interval
from evalkit.stats.run_comparison import versus
from evalkit.stats.summary import summarize
from evalkit.stats.tally import make_tally
from evalkit.transcripts.judging.corrected_rates import Errors, corrected
from tests.made_runs import grid

#: The strategies of the made runs.
MANY = tuple(f"s{number}" for number in range(10))


def unlike(draw: random.Random, number: int, size: int, rate: float, spread: float) -> list[tuple[int, int]]:
    """Scenarios as (count, base): beta around ``rate``, intraclass correlation ``spread``."""
    found = []
    for _ in range(number):
        own = rate
        if spread:
            weight = (1 - spread) / spread
            own = draw.betavariate(rate * weight, (1 - rate) * weight)
        found.append((sum(draw.random() < own for _ in range(size)), size))
    return found


def coverage(runs: int, number: int, rate: float, spread: float, size: int = 20) -> float:
    """How often the interval of a rate holds it."""
    draw = random.Random(f"{number} {rate} {spread}")
    covered = 0
    for _ in range(runs):
        found = cluster_interval(unlike(draw, number, size, rate, spread))
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= rate <= found.high
    return covered / runs


def _results(draw: random.Random, rates: list[float], contenders: int, seeds: int) -> list[list[list[int]]]:
    return [[[int(draw.random() < rate) for _ in range(seeds)] for _ in range(contenders)] for rate in rates]


def _rates(draw: random.Random, scenarios: int) -> list[float]:
    return [draw.betavariate(2, 0.5) for _ in range(scenarios)]


def _is_found(store_a: Store, store_b: Store, rules: Rules) -> tuple[bool, bool]:
    """Whether ``compare`` and the gate call B worse or other than A, by a test."""
    make_tally(store_a)
    make_tally(store_b)
    found = versus(store_a, store_b)
    p_values = [d.p_holm for match in found.matches for d in match.differences]
    judged = judge(store_b, baseline_of(store_a), rules)
    tested = any(r.level == "regression" and "sign-flip" in r.message for r in judged.reasons)
    assert not tested or judged.code == REGRESSION
    return any(p is not None and p <= 0.05 for p in p_values), tested


def null_errors(
    runs: int, scenarios: int, seeds_a: int, seeds_b: int, contenders: int, seed: int = 0
) -> tuple[float, float]:
    """How often ``compare`` and the gate find a difference between two runs that have none.

    Each scenario has a rate of its own; each seed is drawn anew in each run, as for a live model.
    """
    draw = random.Random(f"{scenarios} {seeds_a} {seeds_b} {contenders} {seed}")
    compared = gated = 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(runs):
            rates = _rates(draw, scenarios)
            stores = [
                grid(
                    Path(name) / f"{side}{number}",
                    _results(draw, rates, contenders, seeds),
                    strategies=MANY[:contenders],
                )
                for side, seeds in (("a", seeds_a), ("b", seeds_b))
            ]
            one, other = _is_found(*stores, Rules(allowed_flips=scenarios))
            compared += one
            gated += other
            for store in stores:
                store.close()
    return compared / runs, gated / runs


def report_errors(runs: int, scenarios: int, contenders: int) -> float:
    """How often a report finds a strategy unlike its baseline where all are alike."""
    draw = random.Random(f"{scenarios} {contenders}")
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        for number in range(runs):
            results = _results(draw, _rates(draw, scenarios), contenders, 3)
            store = grid(Path(name) / f"{number}", results, strategies=MANY[:contenders])
            p_values = [row["p_holm"] for row in summarize(store)["pairs"]]
            wrong += any(p is not None and p <= 0.05 for p in p_values)
            store.close()
    return wrong / runs


#: Labelled turns that claim and that do not, and turns of which the share is wanted.
SAMPLES = ((124, 294, 100), (124, 294, 1000), (30, 100, 100))
#: How many of the claims a reader finds, and of the others leaves alone.
READERS = ((0.83, 0.99), (0.65, 0.99), (0.9, 0.9))


def corrected_coverage(
    runs: int, share: float, reader: tuple[float, float], sample: tuple[int, int, int]
) -> float:
    """How often the 90 % interval of a corrected share holds it; reader and turns are drawn each time."""
    (finds, spares), (claims, others, turns) = reader, sample
    draw = random.Random(f"{share} {reader} {sample}")

    def among(number: int, chance: float) -> int:
        return sum(draw.random() < chance for _ in range(number))

    covered = 0
    for _ in range(runs):
        found, spared = among(claims, finds), among(others, spares)
        claiming = among(turns, share)
        read = among(claiming, finds) + among(turns - claiming, 1 - spares)
        said = corrected(read, turns, Errors(found, claims - found, spared, others - spared))
        covered += said is not None and said.low <= share <= said.high
    return covered / runs


def claim_tables(runs: int) -> Iterator[str]:
    """The coverage of shares that rest on the reader of claims."""
    yield f"coverage of the 90 % interval of a share of claims, {runs:,} simulations each"
    yield ""
    shares = (0.05, 0.2, 0.5, 0.8, 0.95)
    yield "| labelled | turns | finds, spares | " + " | ".join(map(str, shares)) + " |"
    yield "| --- | --- | --- |" + " --- |" * len(shares)
    for claims, others, turns in SAMPLES:
        for reader in READERS:
            found = (corrected_coverage(runs, share, reader, (claims, others, turns)) for share in shares)
            cells = " | ".join(f"{100 * cell:.1f} %" for cell in found)
            yield f"| {claims} + {others} | {turns:,} | {reader[0]}, {reader[1]} | {cells} |"
    yield ""


def tables(runs: int) -> Iterator[str]:
    """The tables of docs/statistics.md."""
    yield from claim_tables(runs)
    yield f"differences found where there are none, of {runs:,} simulations each (at 5 %)"
    yield ""
    yield "| scenarios | contenders | seeds A | seeds B | compare | gate |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for scenarios, contenders, seeds_a, seeds_b in (
        (20, 1, 1, 1),
        (20, 1, 1, 20),
        (20, 1, 20, 1),
        (20, 1, 20, 20),
        (60, 1, 1, 20),
        (20, 10, 5, 5),
    ):
        one, other = null_errors(runs, scenarios, seeds_a, seeds_b, contenders)
        shares = f"{100 * one:.1f} % | {100 * other:.1f} %"
        yield f"| {scenarios} | {contenders} | {seeds_a} | {seeds_b} | {shares} |"
    yield ""
    alike = report_errors(runs, 30, 10)
    yield f"a report over 10 contenders that are alike, 30 scenarios: {100 * alike:.1f} %"
    yield ""
    yield f"coverage of the 95 % interval of a rate, 20 seeds a scenario, {runs:,} simulations each"
    yield ""
    yield "| scenarios | rate | alike (0) | 0.3 | 0.6 | 0.9 |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for number in (5, 10, 20, 50):
        for rate in (0.02, 0.05, 0.3):
            cells = (f"{100 * coverage(runs, number, rate, spread):.1f} %" for spread in (0, 0.3, 0.6, 0.9))
            yield f"| {number} | {rate} | " + " | ".join(cells) + " |"


def main(out: Callable[[str], object] = print) -> None:
    """Print the tables."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    for line in (claim_tables if "claims" in sys.argv[2:] else tables)(runs):
        out(line)


if __name__ == "__main__":
    main()
