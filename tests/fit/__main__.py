"""``make fit``: parameters with their counts, how they predicted, bounds by strategy, and a simulation.

The shipped populations are always there. Where real recordings are at hand (``EVALKIT_SHARED``) those of
tau-bench are fitted again and their bounds are told; else the bounds are of recordings that a known persona
wrote.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean

import msgspec

from evalkit.fit import report
from evalkit.fit.bounds import bounds, sentence
from evalkit.fit.estimates import population_of
from evalkit.fit.grouping import Grouping
from evalkit.fit.recorded_runs import Reading
from evalkit.fit.validate import PREDICTED, validated
from evalkit.scenarios.population import Population, status_line
from evalkit.scenarios.suites import library_folder
from evalkit.scenarios.yaml_source import read_yaml
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.labels import Labels
from tests.fit.made import recordings
from tests.fit.simulations import EVENTS, coverage

#: Which tasks and models the names of the shared recordings tell.
BY = r"(?P<model>gpt-4o)-airline\.json#task(?P<task>\d+)"
#: What the simulation is held to.
MEAN, SINGLE = 0.87, 0.80


def main() -> None:
    """Print all tables; ``--validate`` splits the recordings again (minutes). Exit 1 below a bound."""
    for file in sorted((library_folder() / "fitted").glob("*.yaml")):
        (source,) = read_yaml(file.read_text(encoding="utf-8"), file.name)
        _shipped(msgspec.convert(source.value, Population))
    with tempfile.TemporaryDirectory() as folder:
        base = os.environ.get("EVALKIT_SHARED")
        real = Path(base) / "real/trajectories/tau-bench" if base else None
        if real is not None and real.is_dir():
            _recorded("tau-bench airline", [real], BY)
        else:
            _recorded("a known persona", [recordings(Path(folder))], None)
    if not _simulated():
        sys.exit(1)


def _head(title: str) -> None:
    print(f"\n## {title}\n")


def _shipped(population: Population) -> None:
    _head(f"{population.population}: {population.source}")
    for line in report.head_lines(population):
        print(line)
    print()
    print(report.table(report.HEADS, report.parameter_rows(population)))
    for line in (report.too_few_line(population), *report.assumed_lines(population)):
        print(f"\n{line}")
    print(f"\n{status_line(population)}")


def _recorded(name: str, paths: Iterable[Path], by: str | None) -> None:
    strategies = [preset.strategy for preset in PRESETS.values()]
    reading = Reading(Grouping(by), Labels(), [*strategies, *PREDICTED])
    seen = reading.read(paths)
    _head(f"Bounds: {name}")
    print(sentence(seen))
    for regime in ("assumed", "whatever comes"):
        rows = bounds(seen, strategies)
        print(f"\n{regime}:\n")
        print(report.table(report.BOUND_HEADS, report.bound_rows(rows, regime)))
        print(f"\n{report.unbounded_line(rows, regime)}")
    if "--validate" in sys.argv:
        population = population_of("tau-airline", [one.life for one in seen], "", "")
        print(f"\n{status_line(validated(population, seen))}")


def _simulated(repetitions: int = 200) -> bool:
    _head(f"Simulation: a known persona with repeated trials, fitted {repetitions} times")
    found = coverage(repetitions)
    rows = [
        [name, f"{one.truth:.3f}", f"{one.mean_events:.0f}", str(one.numbers), f"{one.coverage:.2f}"]
        for name, one in found.items()
    ]
    print(report.table(("parameter", "true", "events", "had a number", "held"), rows))
    mean = fmean(one.coverage for one in found.values())
    single = min(one.coverage for one in found.values() if one.mean_events >= EVENTS)
    print(
        f"\nmean {mean:.3f} (at least {MEAN}); least with {EVENTS} events: {single:.2f} (at least {SINGLE})"
    )
    return mean >= MEAN and single >= SINGLE


if __name__ == "__main__":
    main()
