"""Drawing from a fitted population: first what its parameters may be, then a task, then a run of it.

A parameter's mean is drawn from a beta of its effective size, so that the doubt of the fit is carried; a
task's own value is drawn around it by the correlation of runs of one task; chance does the rest. All of it is
fixed by the population's name and the numbers of draw, task and trial.
"""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import accumulate

from evalkit.scenarios.life import CAUSES, KINDS, Act, Exit, Kind, Life, Part, Truth, Walk
from evalkit.scenarios.population import Estimate, Population

#: A parameter of a stage with fewer occasions is taken from all stages together.
OCCASIONS = 20
#: At so many times the longest recorded run a drawn one is broken off.
LONGER = 2


class Draw:
    """One draw of a population's parameters."""

    def __init__(self, population: Population, number: int) -> None:
        self.population = population
        self.number = number
        chance = self.random("means")
        estimates = population.estimates
        self.means = {
            name: _mean(found, _prior(name, estimates), chance) for name, found in sorted(estimates.items())
        }
        self._sums = {stage: list(accumulate(counts)) for stage, counts in population.lengths.items()}
        self._task = -1
        self._own: dict[str, float] = {}

    def life(self, task: int, trial: int = 0) -> Life:
        """A run of a drawn task."""
        return _Run(self, task, trial).life()

    def own(self, task: int) -> dict[str, float]:
        """What the parameters are for a task of this draw."""
        if task != self._task:
            chance = self.random(f"task {task}")
            estimates = self.population.estimates
            self._own = {
                name: _around(mean, estimates[name].correlation, chance) for name, mean in self.means.items()
            }
            self._task = task
        return self._own

    def length(self, stage: str, chance: random.Random) -> int:
        """How many tool turns stand in a stretch."""
        sums = self._sums.get(stage) or next(iter(self._sums.values()))
        place = chance.random() * sums[-1]
        return next(number for number, total in enumerate(sums) if place < total)

    def random(self, what: str) -> random.Random:
        """Chance of its own for a part of the draw."""
        return random.Random(f"{self.population.population} {self.number} {what}")


def _prior(name: str, estimates: dict[str, Estimate]) -> float:
    """What a parameter is taken for before it is counted: the same of all stages together, else one half."""
    pooled = next((one for one in _chain(name)[1:] if one in estimates), None)
    if pooled is None:
        return 0.5
    return (estimates[pooled].count + 0.5) / (estimates[pooled].base + 1)


def _mean(estimate: Estimate, prior: float, chance: random.Random) -> float:
    """A beta whose prior weighs as much as one occasion (Jeffreys' where it is one half).

    At what the base is worth if runs of one task are so much alike (Kish's design effect).
    """
    base = max(1, estimate.base)
    scale = 1 / (1 + max(0.0, base / max(1, estimate.tasks) - 1) * estimate.correlation)
    count = estimate.count
    return chance.betavariate((count + prior) * scale, (base - count + 1 - prior) * scale)


def _around(mean: float, correlation: float, chance: random.Random) -> float:
    """A task's own value: a beta around the mean, in which two runs of a task correlate so."""
    if not 0 < mean < 1 or correlation <= 0:
        return mean
    if correlation >= 1:
        return float(chance.random() < mean)
    weight = (1 - correlation) / correlation
    return chance.betavariate(max(mean * weight, 1e-9), max((1 - mean) * weight, 1e-9))


@lru_cache(maxsize=4096)
def _chain(name: str) -> tuple[str, ...]:
    """A parameter, then what stands for it where there is too little of it."""
    what, *rest = name.split(".")
    chain = [name]
    if len(rest) == 2:
        chain.append(f"{what}.all.{rest[1]}")
        chain += [f"{what}.all.all"] if what == "stops" else []
    elif rest:
        chain.append(f"{what}.all")
    if name == "repeats after a failure":
        chain.append("repeats")
    return tuple(chain)


def known_as(population: Population, name: str) -> str | None:
    """Which parameter stands for a name: itself with enough occasions, else all stages'; None for none."""
    last = None
    for one in _chain(name):
        found = population.estimates.get(one)
        if found is not None:
            last = one
            if found.base >= OCCASIONS:
                break
    return last


class _Run:
    """A run being drawn."""

    def __init__(self, draw: Draw, task: int, trial: int) -> None:
        self.population, self.task = draw.population, task
        self.length = draw.length
        self.own = draw.own(task)
        self.chance = draw.random(f"task {task} trial {trial}")
        #: Whether acts that change something, and acts that do not, were made.
        self.made: set[bool] = set()

    def rate(self, name: str, otherwise: float = 0.0) -> float:
        known = known_as(self.population, name)
        return otherwise if known is None else self.own[known]

    def happens(self, name: str, otherwise: float = 0.0) -> bool:
        return self.chance.random() < self.rate(name, otherwise)

    def life(self) -> Life:
        walk = Walk(self.population.spans)
        parts: list[Part] = []
        failed = False
        turns = 0
        exit: Exit | None = None
        while exit is None:
            first = walk.stage
            leaves = self._leaves(first) if turns < LONGER * self.population.longest else "broken off"
            acts = []
            for _ in range(self.length(first, self.chance)):
                act = self._act(first, failed)
                failed = act.failed
                walk.act(act)
                acts.append(act)
            turns += len(acts) + 1
            if leaves == "escalated":
                # The tool by which it hands over is the last of its acts.
                acts[-1:] = [Act(changes=True)]
            elif leaves is not None and not parts and not acts:
                # A run without a turn is no run.
                acts = [Act()]
            if leaves is not None:
                parts.append(Part(tuple(acts)))
                exit = leaves
                break
            stage = walk.stage
            kind = self._kind(stage)
            stops = self.happens(f"stops.{stage}.{kind}", 1.0)
            parts.append(Part(tuple(acts), kind, not stops and self.happens("answers")))
            walk.end(kind)
            failed = False
            exit = "done" if stops else None
        life = Life(f"task-{self.task}", tuple(parts), exit)
        return Life(life.task, life.parts, exit, self._truth(life))

    def _leaves(self, stage: str) -> Exit | None:
        if self.happens(f"hands over.{stage}"):
            return "escalated"
        return "broken off" if self.happens(f"breaks off.{stage}") else None

    def _act(self, stage: str, failed: bool) -> Act:
        again = self.happens("repeats after a failure" if failed else "repeats")
        changes = self.happens(f"changes.{stage}")
        # The first of its sort repeats nothing.
        again &= changes in self.made
        self.made.add(changes)
        return Act(changes, self.happens("fails"), again)

    def _kind(self, stage: str) -> Kind:
        weights = [self.rate(f"ends.{stage}.{kind}") for kind in KINDS]
        found: Kind = self.chance.choices(KINDS, weights if sum(weights) else None)[0]  # type: ignore[assignment]
        return found

    def _truth(self, life: Life) -> Truth:
        population = self.population
        if not population.truth:
            return ""
        if life.exit != "done":
            name = "right hand-overs" if life.exit == "escalated" else "right where it broke off"
            return "right" if self.happens(name) else "unknown"
        changed = "changed" if life.changed else "unchanged"
        if not self.happens(f"false.{changed}"):
            return "right"
        # Where nothing was changed nothing was done wrong.
        causes = CAUSES if life.changed else ("undone", "words")
        weights = [self.rate(f"cause.{changed}.{cause}") for cause in causes]
        if not sum(weights):
            return "unknown"
        cause: Truth = self.chance.choices(causes, weights)[0]  # type: ignore[assignment]
        return cause
