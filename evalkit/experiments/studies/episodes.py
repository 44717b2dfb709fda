"""Episodes for studies, with what no store keeps: strategies in this process or its workers, and programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from evalkit.containment.workers import in_order
from evalkit.runs.plan import Plan, make_plan, sources_of
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.strategy import Strategy

if TYPE_CHECKING:
    from evalkit.harnesses.manifest import Harness
    from evalkit.harnesses.pinned_environment import Environment

#: By the place of a scenario: its episodes, by contender. What cannot be played is left out.
Played: TypeAlias = dict[int, dict[str, Episode]]


def played(scenarios: Sequence[Scenario], strategies: Sequence[Strategy], workers: int) -> Played:
    """Each strategy on each scenario, once (seed 0)."""
    found: Played = {}
    play = partial(_one, strategies)
    for place, episodes in enumerate(in_order(play, scenarios, workers)):
        found[place] = episodes
    return found


def _one(strategies: Sequence[Strategy], scenario: Scenario) -> dict[str, Episode]:
    arenas: dict[object, Arena] = {}
    found = {}
    for strategy in strategies:
        arena = arenas.get(strategy.offers)
        if arena is None:
            arena = arenas[strategy.offers] = Arena(scenario, strategy.offers)
        found[strategy.name] = run_episode(arena, strategy, 0)
    return found


def played_by_programs(scenarios: Sequence[Scenario], names: Sequence[str]) -> Played:
    """Each harness on each scenario that it can be asked, one after the other. PlanError for unknown ones."""
    from evalkit.runs.foreign import ready_harnesses

    found: Played = {}
    every = list(scenarios)
    plans = {name: make_plan(every, sources_of(every), (), 1, harnesses=(name,)) for name in names}
    ready = {name: ready_harnesses(plan) for name, plan in plans.items()}
    places = {scenario.name: place for place, scenario in enumerate(every)}
    for name, plan in plans.items():
        ((harness, environment),) = ready[name].values()
        for scenario, episode in _of_program(plan, harness, environment):
            found.setdefault(places[scenario.name], {})[name] = episode
    return found


def _of_program(plan: Plan, harness: Harness, environment: Environment) -> Iterator[tuple[Scenario, Episode]]:
    # Here and not above: a study of strategies alone needs no server.
    from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses

    contract = contract_of(harness)
    with server_for_harnesses() as server:
        runner = runner_of(harness, environment)
        try:
            for span in plan.spans(1):
                scenario = plan.scenarios[span.scenario]
                episode, _ = run_foreign(Arena(scenario, contract.offered), 0, contract, runner, server)
                yield scenario, episode
        finally:
            runner.close()
