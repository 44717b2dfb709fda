"""One pass over the episodes: the counts of each contender in each scenario, kept in a temporary table.

All further figures add these up, in SQL. So a million episodes cost one scan and no memory here.
"""

from __future__ import annotations

from typing import TypeAlias

from evalkit.runs.store import WEIGHT, Store
from evalkit.scoring.episode_fields import COUNTS as SUMMED
from evalkit.scoring.episode_fields import FLAGS, RATES, SIZES

Key: TypeAlias = tuple[int, str, str]
Counts: TypeAlias = dict[str, int]

WEIGHTS = ("tp", "fp", "tn", "fn")
#: Columns that are added up over all episodes that count.
SUMS = (*SIZES, *FLAGS, *SUMMED)


def _columns() -> dict[str, str]:
    columns = {"episodes": "count(*)"}
    for rate in RATES:
        columns[rate] = f"ifnull(sum({rate}), 0)"
        columns[f"{rate}_base"] = f"count({rate})"
    columns |= {f"{flag}_episodes": f"ifnull(sum({flag} > 0), 0)" for flag in FLAGS}
    columns |= {name: f"ifnull(sum({name}), 0)" for name in SUMS}
    for name in WEIGHTS:
        columns[f"{name}_weight"] = f"ifnull(sum({WEIGHT} * {name} / max(1, tp + fp + tn + fn)), 0)"
    return columns


COUNTS: tuple[str, ...] = tuple(_columns())


def make_tally(store: Store) -> None:
    """Make the temporary tables ``tally`` and ``outcome_tally`` of a run anew, of the episodes that count."""
    counted = ", ".join(f"{expression} as {name}" for name, expression in _columns().items())
    base = store.base
    base.execute("pragma temp_store = memory")
    for table in ("tally", "outcome_tally"):
        base.execute(f"drop table if exists temp.{table}")
    base.execute(
        f"create temp table tally as select grouped.*, family, checks, population from "
        f"(select contender, scenario, {counted} from episode where counted "
        "group by contender, scenario) as grouped join scenario on scenario.id = grouped.scenario"
    )
    base.execute(
        "create temp table outcome_tally as select contender, scenario, ending || '/' || truth as outcome, "
        "count(*) as episodes, sum(correct) as correct from episode where counted "
        "group by contender, scenario, ending, truth"
    )


def counts_by_key(store: Store) -> dict[Key, Counts]:
    """The counts by contender, family and level of checks; ``scenarios`` is how many are in them."""
    sums = ", ".join(f"sum({name})" for name in COUNTS)
    query = (
        f"select contender, family, checks, count(*), {sums} from tally "
        "group by contender, family, checks order by contender, family, checks"
    )
    return {
        (contender, family, checks): dict(zip(("scenarios", *COUNTS), values, strict=True))
        for contender, family, checks, *values in store.rows(query)
    }


def outcomes_by_key(store: Store) -> dict[Key, list[tuple[str, int, int, int]]]:
    """(outcome, episodes of a scenario, how many had that outcome, how many of these were correct).

    Added up over the scenarios with so many episodes.
    """
    query = (
        "select contender, family, checks, outcome, whole.episodes, sum(part.episodes), sum(part.correct) "
        "from outcome_tally part join tally whole using (contender, scenario) "
        "group by contender, family, checks, outcome, whole.episodes "
        "order by contender, family, checks, outcome, whole.episodes"
    )
    found: dict[Key, list[tuple[str, int, int, int]]] = {}
    for contender, family, checks, *values in store.rows(query):
        outcome, size, count, correct = values
        found.setdefault((contender, family, checks), []).append((outcome, size, count, correct))
    return found


def sizes_by_key(store: Store, rate: str) -> dict[Key, list[tuple[int, int, int]]]:
    """For a rate: (base within a scenario, scenarios with that base, their counts added up).

    The sum of a scenario's shares is the sum of counts over bases: exact, in whole numbers until the end.
    """
    query = (
        f"select contender, family, checks, {rate}_base, count(*), sum({rate}) from tally "
        f"where {rate}_base > 0 group by contender, family, checks, {rate}_base "
        f"order by contender, family, checks, {rate}_base"
    )
    found: dict[Key, list[tuple[int, int, int]]] = {}
    for contender, family, checks, base, scenarios, count in store.rows(query):
        found.setdefault((contender, family, checks), []).append((base, scenarios, count))
    return found


def passes_by_key(store: Store) -> dict[Key, list[tuple[int, int, int]]]:
    """(episodes, correct ones, how many scenarios have just these), for pass^k."""
    query = (
        "select contender, family, checks, episodes, correct, count(*) from tally "
        "group by contender, family, checks, episodes, correct "
        "order by contender, family, checks, episodes, correct"
    )
    found: dict[Key, list[tuple[int, int, int]]] = {}
    for contender, family, checks, episodes, correct, scenarios in store.rows(query):
        found.setdefault((contender, family, checks), []).append((episodes, correct, scenarios))
    return found


def clusters_by_key(store: Store, columns: tuple[str, ...]) -> dict[Key, list[tuple[int, ...]]]:
    """The counts in ``columns`` of each sampled file: populations and live runs, for intervals.

    Variants of one file are one cluster; how many there are of it comes first.
    """
    live, entries = store.recipe.medium.live, store.recipe.entries
    query = (
        f"select contender, family, checks, scenario, 1, {', '.join(columns)} from tally "
        f"where {int(live)} or population order by contender, family, checks, scenario"
    )
    found: dict[Key, dict[str, tuple[int, ...]]] = {}
    for contender, family, checks, scenario, *values in store.rows(query):
        clusters = found.setdefault((contender, family, checks), {})
        file = entries[scenario].digest
        clusters[file] = tuple(map(sum, zip(clusters.get(file, (0,) * len(values)), values, strict=True)))
    return {key: list(clusters.values()) for key, clusters in found.items()}
