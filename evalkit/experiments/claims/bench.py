"""Runs strategies on the library and on populations for the experiments, each pair once."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence

import msgspec

from evalkit.core.tasks import Checks, Limits
from evalkit.experiments.claims.number import Number
from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS
from evalkit.strategies.strategy import Strategy

Test = Callable[[Episode], object]
#: Behind a persona: the population without the limits of its scenario.
UNLIMITED = ", unlimited"


class Bench:
    """The scenarios that experiments draw on. ``seeds`` is how many episodes a population is worth."""

    def __init__(
        self, library: Iterable[Scenario], populations: Iterable[Scenario], seeds: int = 400
    ) -> None:
        every = list(library)
        self.library = [scenario for scenario in every if set(scenario.events) <= SUPPORTED_EVENTS]
        #: Scenarios that only a harness which can be killed and resumed can play.
        self.crashes = [scenario for scenario in every if "crash" in scenario.events]
        self.populations = {scenario.persona or "": scenario for scenario in populations}
        self.seeds = seeds
        self._arenas: dict[tuple[str, Checks, object], Arena] = {}
        self._played: dict[tuple[str, Checks, Strategy, int], Episode] = {}
        self._killed: dict[tuple[str, str], Episode] = {}
        #: The names of the scenarios that were asked for.
        self.asked: set[str] = set()

    def without(self, name: str) -> Bench:
        """The same but for one written scenario; what was played is known to both."""
        other = copy.copy(self)
        other.library = [scenario for scenario in self.library if scenario.name != name]
        other.crashes = [scenario for scenario in self.crashes if scenario.name != name]
        return other

    # What to play

    def family(self, *names: str) -> list[Scenario]:
        """The scenarios of families."""
        return [scenario for scenario in self.library if scenario.family in names]

    def where(self, test: Callable[[Scenario], object]) -> list[Scenario]:
        """The scenarios that fit a test."""
        return [scenario for scenario in self.library if test(scenario)]

    def pairs(self) -> list[tuple[Scenario, Scenario]]:
        """The twin pairs."""
        by_name = {scenario.name: scenario for scenario in self.library}
        return [
            (scenario, by_name[scenario.twin])
            for scenario in self.library
            if scenario.twin in by_name and scenario.name < (scenario.twin or "")
        ]

    # Playing

    def episode(self, scenario: Scenario, strategy: Strategy | str, seed: int = 0) -> Episode:
        """One episode of the reference loop."""
        chosen = PRESETS[strategy].strategy if isinstance(strategy, str) else strategy
        seed = seed if scenario.random or chosen.random else 0
        key = (scenario.name, scenario.task.checks, chosen, seed)
        if key not in self._played:
            self._played[key] = run_episode(self.arena(scenario, chosen), chosen, seed)
        # Behind a comma stands how it was changed.
        self.asked.add(scenario.name.partition(", ")[0])
        return self._played[key]

    def killed(
        self, kind: str, strategy: Strategy, runs: Callable[[Arena], Episode], scenarios: Sequence[Scenario]
    ) -> list[Episode]:
        """Episodes of a harness that is killed; ``kind`` names which."""
        for scenario in scenarios:
            self.asked.add(scenario.name)
            key = (scenario.name, kind)
            if key not in self._killed:
                self._killed[key] = runs(self.arena(scenario, strategy))
        return [self._killed[scenario.name, kind] for scenario in scenarios]

    def arena(self, scenario: Scenario, strategy: Strategy) -> Arena:
        """The arena of a scenario with a strategy's channels."""
        key = (scenario.name, scenario.task.checks, strategy.offers)
        if key not in self._arenas:
            self._arenas[key] = Arena(scenario, strategy.offers)
        return self._arenas[key]

    def count(
        self,
        label: str,
        scenarios: Sequence[Scenario],
        strategy: Strategy | str,
        test: Test,
        base: Test = lambda episode: True,
    ) -> Number:
        """On how many scenarios (seed 0) an episode passes a test, of those in the base."""
        episodes = [self.episode(scenario, strategy) for scenario in scenarios]
        inside = [episode for episode in episodes if base(episode)]
        return Number(label, sum(bool(test(episode)) for episode in inside), len(inside))

    def share(
        self,
        label: str,
        persona: str,
        strategy: Strategy | str,
        test: Test,
        base: Test = lambda episode: True,
    ) -> Number:
        """In how many seeds of a population an episode passes a test, of those in the base."""
        inside = [episode for episode in self.sample(persona, strategy) if base(episode)]
        return Number(label, sum(bool(test(episode)) for episode in inside), len(inside), sampled=True)

    def sample(self, persona: str, strategy: Strategy | str) -> list[Episode]:
        """The episodes of a population."""
        scenario = self.populations[persona.removesuffix(UNLIMITED)]
        if persona.endswith(UNLIMITED):
            scenario = msgspec.structs.replace(scenario, name=f"{scenario.name}{UNLIMITED}", limits=Limits())
        return [self.episode(scenario, strategy, seed) for seed in range(self.seeds)]

    def mean(
        self, label: str, persona: str, strategy: Strategy | str, value: Callable[[Episode], float]
    ) -> Number:
        """A mean over a population."""
        episodes = self.sample(persona, strategy)
        return Number(label, sum(map(value, episodes)) / len(episodes))


def premature(episode: Episode) -> bool:
    """Whether it stopped too early."""
    return bool(episode.premature_stop)


def completable(episode: Episode) -> bool:
    """Whether the ideal harness completes it: the base of premature stops."""
    return episode.premature_stop is not None


def with_checks(scenario: Scenario, checks: Checks) -> Scenario:
    """A scenario with other acceptance checks."""
    return msgspec.structs.replace(scenario, task=msgspec.structs.replace(scenario.task, checks=checks))
