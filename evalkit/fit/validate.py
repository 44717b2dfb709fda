"""A population held to what it was not fitted to: halves of the tasks, beside resampling the recordings.

Of each half-split by task a population is fitted to one half and predicts the figures of ``judge`` on the
other, as an interval of 90 %: those of the same number of drawn tasks, over draws of its parameters.
Resampling does the same with recordings: tasks drawn from those of the first half, drawn again for the
second. A figure that is 0 or 1 on all recordings is trivial and left out, and so is one that is another's
twin.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean

import msgspec

from evalkit.fit.drawn_recordings import record_of
from evalkit.fit.estimates import CLUSTERS, fitted
from evalkit.fit.judged_figures import MEANS, Figures, figures
from evalkit.fit.quantiles import OUTSIDE, middle
from evalkit.fit.recorded_runs import Seen
from evalkit.scenarios.population import Calibration, Population
from evalkit.scenarios.population_draws import Draw
from evalkit.strategies.presets import PRESETS
from evalkit.transcripts.formats.tau import tau_bench
from evalkit.transcripts.judging.outcome import RECORDED, Outcome
from evalkit.transcripts.source import Source

#: Strategies that can be judged on any recording: their figures are predicted, beside the recorded harness's.
PREDICTED = tuple(PRESETS[name].strategy for name in ("silence", "turn_cap", "verifier_claim"))
#: Draws of a prediction.
DRAWS = 60
#: How much worse than resampling is still calibrated.
COVERAGE_LESS, SCORE_TIMES = 0.05, 1.15

_NAMES = frozenset((RECORDED, *(strategy.name for strategy in PREDICTED)))
_Rows = tuple[Outcome, ...]


class UnvalidatedError(ValueError):
    """Recordings that cannot be split; one line."""


class Held(msgspec.Struct, frozen=True):
    """One figure of one split: what came, and the two predictions of it."""

    name: str
    value: float
    fitted: tuple[float, float]
    resampled: tuple[float, float]
    #: What its score is divided by, so that figures of unlike size count alike.
    unit: float = 1.0


class Verdict(msgspec.Struct, frozen=True):
    """Coverage and mean score of a population and of resampling, over figures and splits."""

    splits: int
    figures: int
    coverage: float
    resampling_coverage: float
    score: float
    resampling_score: float
    width: float
    resampling_width: float

    @property
    def calibrated(self) -> bool:
        """Whether it predicts about as well as resampling the recordings does."""
        near = self.coverage >= self.resampling_coverage - COVERAGE_LESS
        return near and self.score <= SCORE_TIMES * self.resampling_score


def validated(population: Population, seen: Sequence[Seen], splits: int = 20) -> Population:
    """The population with how it predicted. UnvalidatedError where there are too few tasks to split."""
    found = verdict(list(held_out(population, seen, half_splits(population, seen, splits))), splits)
    says = _says(found)
    for name, parts in left_out(seen):
        one = verdict(list(held_out(population, seen, iter([parts]))), 1)
        says += f"; without {name}, predicting it: {_coverages(one)}"
    calibration = Calibration(
        status="calibrated" if found.calibrated else "not calibrated",
        says=says,
        splits=found.splits,
        figures=found.figures,
        coverage=round(found.coverage, 3),
        resampling_coverage=round(found.resampling_coverage, 3),
        score=round(found.score, 3),
        resampling_score=round(found.resampling_score, 3),
    )
    return msgspec.structs.replace(population, calibration=calibration)


def _says(found: Verdict) -> str:
    return (
        f"{found.splits} half-splits by task, {found.figures} figures: {_coverages(found)}; mean score "
        f"{found.score:.2f} beside {found.resampling_score:.2f}, mean width {found.width:.2f} beside "
        f"{found.resampling_width:.2f}"
    )


def _coverages(found: Verdict) -> str:
    return (
        f"intervals of 90 % held {100 * found.coverage:.0f} % "
        f"(resampling {100 * found.resampling_coverage:.0f} %)"
    )


# Splits

#: The runs that a population is fitted to, and those that it predicts.
_Split = tuple[list[Seen], list[Seen]]


def half_splits(population: Population, seen: Sequence[Seen], splits: int) -> Iterator[_Split]:
    """Halves by task, drawn by the population's name. UnvalidatedError for too few tasks."""
    by_task = _by_task(seen)
    tasks = sorted(by_task)
    if len(tasks) < CLUSTERS:
        raise UnvalidatedError(f"{len(tasks)} tasks; {CLUSTERS} at least")
    for number in range(splits):
        shuffled = random.Random(f"{population.population} split {number}").sample(tasks, len(tasks))
        halves = shuffled[: len(tasks) // 2], shuffled[len(tasks) // 2 :]
        first, second = ([one for task in half for one in by_task[task]] for half in halves)
        yield first, second


def left_out(seen: Sequence[Seen]) -> Iterator[tuple[str, _Split]]:
    """For each model and each harness, where several are named: the runs of all others, and its own."""
    kinds: tuple[Callable[[Seen], str], ...] = (lambda one: one.life.model, lambda one: one.harness)
    for kind in kinds:
        names = sorted({kind(one) for one in seen if kind(one)})
        for name in names if len(names) > 1 else ():
            own = [one for one in seen if kind(one) == name]
            yield name, ([one for one in seen if kind(one) != name], own)


def _by_task(seen: Sequence[Seen]) -> dict[str, list[Seen]]:
    by_task: dict[str, list[Seen]] = {}
    for one in seen:
        by_task.setdefault(one.life.task, []).append(one)
    return by_task


# Predictions


def held_out(
    population: Population, seen: Sequence[Seen], splits: Iterator[_Split], number: int = 0
) -> Iterator[Held]:
    """Every figure of every split with its two predictions; ``number`` is that of the first split."""
    whole = figures(map(_rows, seen))
    kept = [name for name, value in whole.items() if value is not None and value not in (0, 1)]
    for place, (first, second) in enumerate(splits, number):
        actual = figures(map(_rows, second))
        name = f"{population.population}-{place}"
        own = fitted(name, [one.life for one in first], refused=population.refused)
        sizes = [len(runs) for runs in _by_task(second).values()]
        told = {task: [_rows(one) for one in runs] for task, runs in _by_task(first).items()}
        drawn = _intervals(kept, partial(_drawn, own, sizes))
        again = _intervals(kept, partial(_resampled, told, len(sizes), name))
        for figure in kept:
            value = actual[figure]
            if value is not None and figure in drawn and figure in again:
                unit = (whole[figure] or 1.0) if figure in MEANS else 1.0
                yield Held(figure, value, drawn[figure], again[figure], unit)


def _rows(one: Seen) -> _Rows:
    found = {row.strategy: row for row in one.outcomes}
    return tuple(found[name] for name in (RECORDED, *(strategy.name for strategy in PREDICTED)))


def _drawn(population: Population, sizes: Sequence[int], number: int) -> Figures:
    """The figures of recordings that a draw of a population writes: tasks with so many runs each."""
    draw = Draw(population, number)
    runs = []
    for task, size in enumerate(sizes):
        for trial in range(size):
            record = record_of(draw.life(task, trial), str(task), trial)
            runs.append(judged(record))
    return figures(runs)


def judged(record: dict[str, object]) -> _Rows:
    """What judgement says of a record, read as its file would be."""
    from evalkit.transcripts.judging.run import judge_recording

    return tuple(judge_recording(tau_bench(record, Source("drawn")), PREDICTED))


def _resampled(told: dict[str, list[_Rows]], number: int, name: str, draw: int) -> Figures:
    """The figures of tasks drawn from tasks that were drawn: the doubt of the first part, then chance."""
    chance = random.Random(f"{name} {draw}")
    first = chance.choices(list(told), k=len(told))
    return figures(run for task in chance.choices(first, k=number) for run in told[task])


def _intervals(names: Sequence[str], predict: Callable[[int], Figures]) -> dict[str, tuple[float, float]]:
    """The middle 90 % of each figure over draws."""
    values: dict[str, list[float]] = {name: [] for name in names}
    for draw in range(DRAWS):
        for name, value in predict(draw).items():
            if name in values and value is not None:
                values[name].append(value)
    return {name: middle(found) for name, found in values.items() if found}


# The verdict


def score(value: float, interval: tuple[float, float]) -> float:
    """Its width, and 2/α times how far it missed (Gneiting and Raftery, JASA 102 (2007) 359, 6.2)."""
    low, high = interval
    return high - low + 2 / OUTSIDE * (max(0.0, low - value) + max(0.0, value - high))


def verdict(found: Sequence[Held], splits: int) -> Verdict:
    """Coverage and mean score over figures, twins counted once."""
    kept = _without_twins(found)
    if not kept:
        raise UnvalidatedError("every figure is 0 or 1: there is nothing to predict")
    return Verdict(
        splits,
        len({one.name for one in kept}),
        fmean(_holds(one.value, one.fitted) for one in kept),
        fmean(_holds(one.value, one.resampled) for one in kept),
        fmean(score(one.value, one.fitted) / one.unit for one in kept),
        fmean(score(one.value, one.resampled) / one.unit for one in kept),
        fmean((one.fitted[1] - one.fitted[0]) / one.unit for one in kept),
        fmean((one.resampled[1] - one.resampled[0]) / one.unit for one in kept),
    )


def _holds(value: float, interval: tuple[float, float]) -> bool:
    return interval[0] - 1e-9 <= value <= interval[1] + 1e-9


def _without_twins(found: Sequence[Held]) -> list[Held]:
    """One of the figures that had the same value in every split."""
    series: dict[str, list[float]] = {}
    for one in found:
        series.setdefault(one.name, []).append(round(one.value, 9))
    first = {tuple(values): name for name, values in reversed(series.items())}
    kept = set(first.values())
    return [one for one in found if one.name in kept]
