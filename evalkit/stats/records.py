"""What a run says of each scenario and contender, for holding two runs against each other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.runs.store import Store
from evalkit.scoring.figures import FAULTS, FLAGS

#: What a record counts episodes of: the faults, and each flag.
COUNTED = {name: name for name in FAULTS} | {name: f"{name}_episodes" for name in FLAGS}


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """One contender in one scenario: episodes, how many were correct, outcomes, faults and flags.

    ``faults`` counts episodes by name, flags included; those that never occurred are left out.
    """

    episodes: int
    correct: int
    outcomes: dict[str, int]
    faults: dict[str, int] = {}

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


def records(store: Store) -> dict[str, dict[str, Record]]:
    """By contender and scenario. :func:`evalkit.stats.tally.make_tally` must have run."""
    names = contender_names(store)
    outcomes: dict[tuple[int, int], dict[str, int]] = {}
    query = "select contender, scenario, outcome, episodes from outcome_tally order by 1, 2, 3"
    for contender, scenario, outcome, episodes in store.rows(query):
        outcomes.setdefault((contender, scenario), {})[outcome] = episodes
    found: dict[str, dict[str, Record]] = {name: {} for name in names}
    for contender, scenario, name, episodes, correct, *faults in _tallied(store):
        occurred = {fault: count for fault, count in zip(COUNTED, faults, strict=True) if count}
        found[names[contender]][name] = Record(episodes, correct, outcomes[contender, scenario], occurred)
    return found


def _tallied(store: Store) -> Iterator[tuple[Any, ...]]:
    query = (
        f"select contender, scenario, scenario.name, episodes, correct, {', '.join(COUNTED.values())} "
        "from tally join scenario on scenario.id = scenario order by contender, scenario.name"
    )
    yield from store.rows(query)
