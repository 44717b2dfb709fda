"""What a scenario can tell apart: which strategies pass it, which fail it, and by what."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.tasks import Offered
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy


class Distinction(msgspec.Struct, frozen=True):
    """One scenario's verdict on each strategy, in how many of ``seeds`` runs it was correct.

    ``reasons`` says of the failing ones what their first wrong run was.
    """

    scenario: str
    family: str
    seeds: int
    correct: dict[str, int]
    reasons: dict[str, str]

    @property
    def passed(self) -> tuple[str, ...]:
        """The strategies that are correct in every run."""
        return tuple(name for name, count in self.correct.items() if count == self.seeds)

    @property
    def failed(self) -> tuple[str, ...]:
        """The strategies that are wrong in at least one run."""
        return tuple(name for name, count in self.correct.items() if count < self.seeds)

    @property
    def tells(self) -> bool:
        """Whether it tells any of them apart."""
        return bool(self.passed and self.failed)


def distinguish(
    scenario: Scenario, strategies: Mapping[str, Strategy] | None = None, seeds: int = 3
) -> Distinction:
    """Play a scenario with each strategy (without any, the presets); ``seeds`` times where it has choices."""
    chosen = strategies or {name: preset.strategy for name, preset in PRESETS.items()}
    runs = seeds if scenario.random else 1
    arenas: dict[Offered, Arena] = {}
    correct: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for name, strategy in chosen.items():
        arena = arenas.setdefault(strategy.offers, Arena(scenario, strategy.offers))
        correct[name] = 0
        for seed in range(runs):
            episode = run_episode(arena, strategy, seed)
            correct[name] += episode.correct
            if not episode.correct:
                reasons.setdefault(name, episode.why)
    return Distinction(scenario.name, scenario.family, runs, correct, reasons)
