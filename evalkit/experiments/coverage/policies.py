"""Where a policy for a stop reason makes a difference: each value against the default, on every scenario."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from evalkit.scenarios.moves import VERBS, verb_of
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.presets import PRESETS

#: The strategy whose policies are changed one by one; its own policies are the defaults.
BASE = "checks_first"
#: What may stand in the place of each default.
VALUES: tuple[tuple[str, Any], ...] = (
    ("pause", "as_content"),
    ("pause", "stop"),
    ("cut_off", "continue"),
    ("cut_off", "fail_calls"),
    ("cut_off", "as_content"),
    ("cut_off", "stop"),
    ("overflow", "raise_limit"),
    ("overflow", "as_content"),
    ("overflow", "stop"),
    ("repeats", "own_key"),
    ("refusal", "fallback"),
    ("refusal", "retry"),
    ("refusal", "as_content"),
    ("refusal", "stop"),
    ("empty", "stop"),
    ("unknown", "nudge"),
    ("unknown", "stop"),
    ("faults", "fail"),
    ("check", "each_tool_turn"),
    ("limit_checked", "before_done"),
    ("nudges", 1),
)
MOVES = tuple(verb for verb in VERBS if verb not in ("turn", "repeat", "either", "crash"))


class Difference(msgspec.Struct, frozen=True):
    """What a policy value does instead of the default, on the scenarios where the run differs.

    ``better`` and ``worse`` count the scenarios that only one of the two gets right; ``turns`` and ``tokens``
    are means over the differing scenarios, default first.
    """

    policy: str
    value: Any
    differs: tuple[str, ...]
    correct: tuple[int, int]
    better: int
    worse: int
    turns: tuple[float, float]
    tokens: tuple[float, float]


def differences(scenarios: Iterable[Scenario]) -> list[Difference]:
    """Each value of :data:`VALUES` against the default, by playing all scenarios with both; seed 0."""
    base = PRESETS[BASE].strategy
    pairs: dict[tuple[str, Any], list[tuple[str, Episode, Episode]]] = {value: [] for value in VALUES}
    for scenario in scenarios:
        arena = Arena(scenario, base.offers)
        usual = run_episode(arena, base, 0)
        for policy, value in VALUES:
            other = run_episode(arena, base.but(**{policy: value}), 0)
            if _essence(usual) != _essence(other):
                pairs[policy, value].append((scenario.name, usual, other))
    return [_difference(policy, value, found) for (policy, value), found in pairs.items()]


def _essence(episode: Episode) -> tuple[object, ...]:
    return episode.outcome, episode.correct, episode.turns, episode.tokens


def _difference(policy: str, value: Any, found: list[tuple[str, Episode, Episode]]) -> Difference:
    count = len(found) or 1
    return Difference(
        policy,
        value,
        tuple(name for name, _, _ in found),
        (sum(one.correct for _, one, _ in found), sum(other.correct for _, _, other in found)),
        sum(other.correct > one.correct for _, one, other in found),
        sum(other.correct < one.correct for _, one, other in found),
        (sum(one.turns for _, one, _ in found) / count, sum(other.turns for _, _, other in found) / count),
        (sum(one.tokens for _, one, _ in found) / count, sum(other.tokens for _, _, other in found) / count),
    )


def moves_of(scenario: Scenario) -> set[str]:
    """The moves of a scenario, events included."""
    return {verb_of(move) for move in walk(scenario.moves)}


def moves_by_policy(scenarios: Iterable[Scenario], found: list[Difference]) -> dict[tuple[str, str], int]:
    """For each move and policy value, on how many scenarios with that move the value makes a difference."""
    verbs = {scenario.name: moves_of(scenario) for scenario in scenarios}
    return {
        (move, f"{difference.policy}={difference.value}"): sum(
            move in verbs[name] for name in difference.differs
        )
        for move in MOVES
        for difference in found
    }
