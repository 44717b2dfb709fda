"""Which scenarios catch which mutant, and the mutation score of a set of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from evalkit.containment.workers import in_order
from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode_fields import MARKS, Episode
from evalkit.search.mutation_testing.mutants import MUTANTS
from evalkit.search.proofs.counterexample import run_with
from evalkit.strategies.presets import PRESETS

#: Seeds with which a scenario is run that has choices.
SEEDS = 3


class Caught(msgspec.Struct, frozen=True):
    """One mutant: the scenarios on which it is wrong and the original is right, and those that see a change.

    ``differs`` are scenarios whose outcome or flags change, one or both being wrong, or both right.
    """

    mutant: str
    breaks: str
    original: str
    by: tuple[str, ...]
    differs: tuple[str, ...]

    @property
    def survives(self) -> bool:
        """Whether no scenario notices it."""
        return not self.by and not self.differs


class Score(msgspec.Struct, frozen=True):
    """The mutation score of a set of scenarios."""

    scenarios: int
    mutants: tuple[Caught, ...]

    @property
    def caught(self) -> int:
        """The mutants that some scenario notices."""
        return sum(not caught.survives for caught in self.mutants)

    @property
    def made_incorrect(self) -> int:
        """The mutants that are wrong somewhere where the original is right."""
        return sum(bool(caught.by) for caught in self.mutants)

    @property
    def survivors(self) -> tuple[str, ...]:
        """The mutants that nobody notices."""
        return tuple(caught.mutant for caught in self.mutants if caught.survives)

    @property
    def unproved(self) -> tuple[str, ...]:
        """The mutants whose change is noticed but wrong nowhere."""
        return tuple(caught.mutant for caught in self.mutants if caught.differs and not caught.by)


def mutation_score(
    scenarios: Iterable[Scenario],
    names: Iterable[str] = MUTANTS,
    progress: Callable[[int, int], None] | None = None,
    workers: int = 1,
) -> Score:
    """Run every mutant of these names and its original on every scenario, in ``workers`` processes."""
    chosen, wrong = list(scenarios), tuple(names)
    by: dict[str, list[str]] = {name: [] for name in wrong}
    differs: dict[str, list[str]] = {name: [] for name in wrong}
    judge = partial(_judged, names=wrong)
    for place, (incorrect, changed) in enumerate(in_order(judge, chosen, workers)):
        scenario = chosen[place].name
        for name in incorrect:
            by[name].append(scenario)
        for name in changed:
            differs[name].append(scenario)
        if progress is not None:
            progress(place + 1, len(chosen))
    return Score(
        len(chosen),
        tuple(
            Caught(name, MUTANTS[name].breaks, MUTANTS[name].original, tuple(by[name]), tuple(differs[name]))
            for name in wrong
        ),
    )


def _judged(scenario: Scenario, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """The mutants that a scenario makes incorrect, and those that it only sees a change of."""
    originals = _Originals(scenario)
    incorrect, changed = [], []
    for name in names:
        mutant = MUTANTS[name]
        for seed in range(SEEDS if scenario.random else 1):
            before, arena = originals.episode(mutant.original, seed)
            after = run_with(arena, mutant.strategy, seed, mutant.rules)[0]
            if before.correct and not after.correct:
                incorrect.append(name)
                break
            if _signs(before) != _signs(after):
                changed.append(name)
                break
    return incorrect, changed


class _Originals:
    """The episodes of the unchanged strategies on one scenario; a mutant is offered the same channels."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._arenas: dict[Offered, Arena] = {}
        self._episodes: dict[tuple[str, int], Episode] = {}

    def episode(self, original: str, seed: int) -> tuple[Episode, Arena]:
        strategy = PRESETS[original].strategy
        arena = self._arenas.get(strategy.offers)
        if arena is None:
            arena = self._arenas[strategy.offers] = Arena(self._scenario, strategy.offers)
        episode = self._episodes.get((original, seed))
        if episode is None:
            episode = self._episodes[original, seed] = run_with(arena, strategy, seed)[0]
        return episode, arena


def _signs(episode: Episode) -> tuple[object, ...]:
    return (episode.outcome, *(getattr(episode, flag) for flag in (*MARKS, "honest_report")))
