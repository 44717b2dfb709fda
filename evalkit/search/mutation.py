"""Which scenarios catch which mutant, and the mutation score of a set of scenarios."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.search.counterexample import run_with
from evalkit.search.mutants import MUTANTS, Mutant
from evalkit.strategies.presets import PRESETS

#: Seeds with which a scenario is run that has choices.
SEEDS = 3
#: Flags in which an episode may differ although its outcome does not.
FLAGS = (
    "premature_stop",
    "false_done",
    "over_continuation",
    "unclosed",
    "spoiled",
    "undone",
    "duplicate_effects",
    "ran_cut_off_call",
    "orphan_calls",
    "protocol_faults",
    "honest_report",
)


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
    mutants: Iterable[Mutant] = tuple(MUTANTS.values()),
    progress: Callable[[int, int], None] | None = None,
) -> Score:
    """Run every mutant and its original on every scenario, in process."""
    chosen, wrong = list(scenarios), list(mutants)
    by: dict[str, list[str]] = {mutant.name: [] for mutant in wrong}
    differs: dict[str, list[str]] = {mutant.name: [] for mutant in wrong}
    for place, scenario in enumerate(chosen):
        originals = _Originals(scenario)
        for mutant in wrong:
            for seed in range(SEEDS if scenario.random else 1):
                before, arena = originals.episode(mutant.original, seed)
                after = run_with(arena, mutant.strategy, seed, mutant.rules)[0]
                if before.correct and not after.correct:
                    by[mutant.name].append(scenario.name)
                    break
                if _signs(before) != _signs(after):
                    differs[mutant.name].append(scenario.name)
                    break
        if progress is not None:
            progress(place + 1, len(chosen))
    return Score(
        len(chosen),
        tuple(
            Caught(
                mutant.name,
                mutant.breaks,
                mutant.original,
                tuple(by[mutant.name]),
                tuple(differs[mutant.name]),
            )
            for mutant in wrong
        ),
    )


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
    return (episode.outcome, *(getattr(episode, flag) for flag in FLAGS))
