"""Whether intervals of a fit hold what is true: a known persona, fitted again and again.

What is true of a parameter is its share in a very long run of the persona: where tasks differ, ends of turn
of tasks that go on are more frequent than their tasks, so it is no parameter of the persona itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from evalkit.fit.counting import Counts
from evalkit.fit.estimates import fitted
from evalkit.scenarios.life import Life
from evalkit.scenarios.population_draws import Draw
from tests.fit.made import lives, persona

#: Tasks of the long run.
LONG = 3_000
#: Events from which on a parameter is held by itself.
EVENTS = 20
#: Where its stages are middle, and late.
SPANS = (1, 3)


class Held(msgspec.Struct):
    """How often a parameter had a number, how often its interval held, and its events added up."""

    truth: float
    numbers: int = 0
    held: int = 0
    events: int = 0
    times: int = 0

    @property
    def coverage(self) -> float:
        """The share of intervals that held."""
        return self.held / self.numbers

    @property
    def mean_events(self) -> float:
        """Events of one fit."""
        return self.events / self.times


def coverage(repetitions: int, tasks: int = 30, trials: int = 4, *, alone: bool = False) -> dict[str, Held]:
    """The parameters that had a number at least once; ``alone`` takes each run for a task of its own."""
    found: dict[str, Held] = {}
    true = _true(trials)
    for seed in range(1, repetitions + 1):
        runs = lives(tasks, trials, seed)
        if alone:
            runs = [msgspec.structs.replace(run, task=str(number)) for number, run in enumerate(runs)]
        for name, one in fitted("p", runs, spans=SPANS).estimates.items():
            if name not in true:
                continue
            held = found.setdefault(name, Held(true[name]))
            held.times += 1
            held.events += min(one.count, one.base - one.count)
            if one.low is not None and one.high is not None:
                held.numbers += 1
                held.held += one.low <= true[name] <= one.high
    return {name: held for name, held in sorted(found.items()) if held.numbers}


def _true(trials: int) -> dict[str, float]:
    draw = Draw(persona(LONG, trials), 0)
    counts = Counts(_lives(draw, trials), spans=SPANS)
    shares = {}
    for name, counted in counts.rates.items():
        clusters = counted.clusters
        shares[name] = sum(c for c, _ in clusters) / sum(b for _, b in clusters)
    return shares


def _lives(draw: Draw, trials: int) -> Iterator[Life]:
    return (draw.life(task, trial) for task in range(LONG) for trial in range(trials))
