"""What a run says of each scenario and contender, for holding two runs against each other."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.scoring.episode_fields import FAULTS, FLAGS

#: What a record counts episodes of: the faults, and each flag.
COUNTED = {name: name for name in FAULTS} | {name: f"{name}_episodes" for name in FLAGS}


#: What is compared of a scenario between two runs.
COMPARED = ("correct", *FAULTS)
#: A seed that was not played, in :attr:`Record.by_seed`.
_NOT_PLAYED = "-"


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One contender in one scenario: episodes, how many were correct, outcomes, faults and flags.

    ``faults`` counts episodes by name, flags included; those that never occurred are left out. ``by_seed``
    holds, where more than the first seed was played, a character for each seed by name: 1, 0, or - for one
    that was not played.
    """

    episodes: int
    correct: int
    outcomes: dict[str, int]
    faults: dict[str, int] = {}
    by_seed: dict[str, str] = {}

    def count(self, rate: str) -> int:
        """How many episodes were correct, or had a fault."""
        return self.correct if rate == "correct" else self.faults.get(rate, 0)

    def share(self, rate: str) -> Fraction:
        """The same as a share of the episodes."""
        return Fraction(self.count(rate), self.episodes)

    def seeds(self) -> frozenset[int]:
        """The seeds that were played; where it is not told which (an older baseline), the first ones."""
        told = self.by_seed.get("correct")
        if told is None:
            return frozenset(range(self.episodes))
        return frozenset(seed for seed, played in enumerate(told) if played != _NOT_PLAYED)

    def only(self, seeds: frozenset[int]) -> Record | None:
        """The record of these seeds alone; None where it cannot be told. Outcomes are those of all."""
        if seeds == self.seeds():
            return self
        if not self.by_seed or not seeds:
            return None
        counts = {
            name: sum(seed in seeds for seed, occurred in enumerate(told) if occurred == "1")
            for name, told in self.by_seed.items()
        }
        faults = {name: count for name, count in counts.items() if name != "correct" and count}
        return Record(len(seeds), counts["correct"], self.outcomes, faults)

    @property
    def outcome(self) -> str:
        """The outcomes in words: ``done/complete``, or ``done/complete 3, done/reachable 2``."""
        if len(self.outcomes) == 1:
            return next(iter(self.outcomes))
        ordered = sorted(self.outcomes.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{name} {count}" for name, count in ordered)


def contender_name(strategy: str, harness: str) -> str:
    """A contender's name: its strategy in the reference loop; a harness, with a strategy if it has one."""
    if harness == "loop":
        return strategy
    return harness if strategy in ("", harness) else f"{harness}:{strategy}"


def contender_names(store: Store) -> list[str]:
    """The names of a run's contenders in order."""
    return [contender_name(c.strategy, c.harness) for c in store.recipe.contenders]


def episode_name(scenario: str, contender: str, seed: int) -> str:
    """The name of an episode as ``evalkit show`` takes it: the first seed goes without saying."""
    return f"{scenario}/{contender}/{seed}" if seed else f"{scenario}/{contender}"


def first_reasons(store: Store) -> dict[str, dict[str, str]]:
    """By contender and scenario: what kept the first episode from being correct that was not."""
    names = contender_names(store)
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    query = (
        "select contender, scenario_name, why, min(cell) from episodes where counted and not correct "
        "group by contender, scenario_name"
    )
    for contender, scenario, why, _ in store.rows(query):
        found[names[contender]][scenario] = why
    return found


def records(store: Store) -> dict[str, dict[str, Record]]:
    """By contender and scenario. :func:`evalkit.stats.tally.make_tally` must have run."""
    names = contender_names(store)
    outcomes: dict[tuple[int, int], dict[str, int]] = {}
    query = "select contender, scenario, outcome, episodes from outcome_tally order by 1, 2, 3"
    for contender, scenario, outcome, episodes in store.rows(query):
        outcomes.setdefault((contender, scenario), {})[outcome] = episodes
    seeds = _by_seed(store)
    found: dict[str, dict[str, Record]] = {name: {} for name in names}
    for contender, scenario, name, episodes, correct, *faults in _tallied(store):
        occurred = {fault: count for fault, count in zip(COUNTED, faults, strict=True) if count}
        place = contender, scenario
        found[names[contender]][name] = Record(
            episodes, correct, outcomes[place], occurred, seeds.get(place, {})
        )
    return found


def shared(before: Record, after: Record) -> tuple[Record, Record] | None:
    """Two records of a scenario on the seeds that both have; None where these cannot be told, or are none.

    A rate over one seed and one over twenty do not vary alike: their difference is no noise about 0.
    """
    both = before.seeds() & after.seeds()
    one, other = before.only(both), after.only(both)
    return (one, other) if both and one is not None and other is not None else None


def _by_seed(store: Store) -> dict[tuple[int, int], dict[str, str]]:
    """What happened with each seed, of the scenarios of which more than the first was played."""
    marked = ("correct", *COUNTED)
    columns = ", ".join(f"group_concat(ifnull({name} > 0, 0), '')" for name in marked)
    query = (
        f"select contender, scenario, group_concat(seed), {columns} from (select * from episode "
        "where counted order by contender, scenario, seed) group by contender, scenario "
        "having max(seed) > 0"
    )
    found = {}
    for contender, scenario, played, *told in store.rows(query):
        seeds = [int(seed) for seed in played.split(",")]
        found[contender, scenario] = {
            name: _placed(seeds, marks)
            for name, marks in zip(marked, told, strict=True)
            if name == "correct" or "1" in marks
        }
    return found


def _placed(seeds: list[int], marks: str) -> str:
    if seeds == list(range(len(seeds))):
        return marks
    line = [_NOT_PLAYED] * (max(seeds) + 1)
    for seed, mark in zip(seeds, marks, strict=True):
        line[seed] = mark
    return "".join(line)


def _tallied(store: Store) -> Iterator[tuple[Any, ...]]:
    query = (
        f"select contender, scenario, scenario.name, episodes, correct, {', '.join(COUNTED.values())} "
        "from tally join scenario on scenario.id = scenario order by contender, scenario.name"
    )
    yield from store.rows(query)
