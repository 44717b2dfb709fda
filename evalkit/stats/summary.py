"""``summary.json``: the counts of a run, added up as whole numbers and divided last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from evalkit.runs.store import WEIGHT, Store
from evalkit.stats.compare import paired_comparisons
from evalkit.stats.intervals import cluster_interval

SCHEMA = "evalkit.summary/1"

Row: TypeAlias = dict[str, Any]

#: Counts that are sums of a column over all episodes that are not void.
_SUMS = ("turns", "tokens", "excess_turns", "excess_tokens", "duplicate_effects", "protocol_faults")
_FLAGS = ("spoiled", "undone", "ran_cut_off_call", "orphan_calls", "lost_work", "over_reported")
_RATES: dict[str, tuple[str, str]] = {
    # rate: (what is counted, what is its base)
    "premature_stop": ("sum(premature_stop)", "count(premature_stop)"),
    "false_done": ("sum(false_done)", "count(*)"),
    "over_continuation": ("sum(over_continuation)", "count(*)"),
    "unclosed": ("sum(unclosed)", "count(unclosed)"),
    "correct": ("sum(correct)", "count(*)"),
    "honest_report": ("sum(honest_report)", "count(honest_report)"),
}
RATES: tuple[str, ...] = tuple(_RATES)
_WEIGHTS = ("tp", "fp", "tn", "fn")


def summarize(store: Store) -> dict[str, Any]:
    """The content of ``summary.json`` for a run."""
    recipe = store.recipe
    (void,) = next(store.rows("select count(*) from episode where ending = 'void'"))
    (played,) = next(store.rows("select count(distinct scenario) from episode"))
    return {
        "schema": SCHEMA,
        "run": {
            "id": recipe.id,
            "scenarios": played,
            "episodes": store.count(),
            "seeds": recipe.seeds,
            "void": void,
            "evalkit": recipe.evalkit,
            "baseline": recipe.baseline,
            "gateable": bool(store.count()) and void * 100 <= store.count(),
            "not_expressible": dict(sorted(recipe.not_expressible.items())),
        },
        "rows": _rows(store),
        "pairs": paired_comparisons(store.rows, recipe.contenders, recipe.baseline),
        "twins": _twins(store),
    }


def _rows(store: Store) -> list[Row]:
    cells = _cells(store)
    outcomes = _outcomes(store)
    clusters = _clusters(store)
    rows = []
    for number, contender in enumerate(store.recipe.contenders):
        mine = {key[1:]: value for key, value in cells.items() if key[0] == number}
        families = sorted({family for family, _ in mine})
        levels = [level for level in ("full", "weak", "none") if any(checks == level for _, checks in mine)]
        wanted: list[tuple[str, str, Callable[[str, str], bool]]] = [("all", "all", lambda f, c: True)]
        wanted += [(name, "all", lambda f, c, name=name: f == name) for name in families]  # type: ignore[misc]
        wanted += [("all", level, lambda f, c, level=level: c == level) for level in levels]  # type: ignore[misc]
        for family, checks, belongs in wanted:
            keys = [key for key in mine if belongs(*key)]
            row: Row = {
                "strategy": contender.strategy,
                "harness": contender.harness,
                "family": family,
                "checks": checks,
            }
            total = _added([mine[key] for key in keys])
            row.update(_figures(total))
            found: dict[str, int] = {}
            for key in keys:
                for outcome, count in outcomes.get((number, *key), {}).items():
                    found[outcome] = found.get(outcome, 0) + count
            row["outcomes"] = dict(sorted(found.items()))
            _set_intervals(row, [c for key in keys for c in clusters.get((number, *key), ())])
            rows.append(row)
    return rows


def _cells(store: Store) -> dict[tuple[int, str, str], dict[str, int]]:
    """Counts by contender, family and level of checks."""
    columns = ["count(*)", "count(distinct scenario)"]
    names = ["episodes", "scenarios"]
    for rate, (counted, base) in _RATES.items():
        columns += [counted, base]
        names += [rate, f"{rate}_base"]
    columns.append("sum(silent)")
    names.append("silent")
    for name in (*_SUMS, *_FLAGS, *_WEIGHTS):
        columns.append(f"sum({name})")
        names.append(name)
    for name in _WEIGHTS:
        columns.append(f"sum({WEIGHT} * {name} / max(1, tp + fp + tn + fn))")
        names.append(f"{name}_weight")
    query = (
        f"select contender, family, checks, {', '.join(columns)} from episodes "
        "where ending <> 'void' group by contender, family, checks order by contender, family, checks"
    )
    return {
        (contender, family, checks): dict(zip(names, (value or 0 for value in values), strict=True))
        for contender, family, checks, *values in store.rows(query)
    }


def _outcomes(store: Store) -> dict[tuple[int, str, str], dict[str, int]]:
    query = (
        "select contender, family, checks, outcome, count(*) from episodes where ending <> 'void' "
        "group by contender, family, checks, outcome order by contender, family, checks, outcome"
    )
    found: dict[tuple[int, str, str], dict[str, int]] = {}
    for contender, family, checks, outcome, count in store.rows(query):
        found.setdefault((contender, family, checks), {})[outcome] = count
    return found


def _clusters(store: Store) -> dict[tuple[int, str, str], list[Row]]:
    """Counts of each population scenario, for intervals that are clustered by scenario."""
    sums = ", ".join(f"{counted}, {base}" for counted, base in _RATES.values())
    query = (
        f"select contender, family, checks, {sums} from episodes where ending <> 'void' and population "
        "group by contender, family, checks, scenario order by contender, family, checks, scenario"
    )
    found: dict[tuple[int, str, str], list[Row]] = {}
    for contender, family, checks, *values in store.rows(query):
        counts = {rate: (values[2 * place] or 0, values[2 * place + 1]) for place, rate in enumerate(_RATES)}
        found.setdefault((contender, family, checks), []).append(counts)
    return found


def _added(parts: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _figures(total: dict[str, int]) -> Row:
    episodes = total["episodes"]
    row: Row = {"episodes": episodes, "scenarios": total["scenarios"]}
    for rate in _RATES:
        base = total[f"{rate}_base"]
        row[rate] = {
            "count": total[rate],
            "base": base,
            "rate": total[rate] / base if base else None,
            "low": None,
            "high": None,
        }
    row["premature_stop"]["silent"] = total["silent"]
    row["premature_stop"]["declared"] = total["premature_stop"] - total["silent"]
    row["decisions"] = {name: total[name] for name in _WEIGHTS}
    row["decisions_weighted"] = {name: total[f"{name}_weight"] / WEIGHT for name in _WEIGHTS}
    for name in ("turns", "tokens", "excess_turns", "excess_tokens"):
        row[name] = total[name] / episodes if episodes else None
    for name in ("duplicate_effects", "protocol_faults", *_FLAGS):
        row[name] = total[name]
    return row


def _set_intervals(row: Row, clusters: list[Row]) -> None:
    """Intervals are for populations; a written library is no sample and gets none."""
    if len(clusters) != row["scenarios"]:
        return
    for rate in _RATES:
        interval = cluster_interval([cluster[rate] for cluster in clusters])
        if interval is not None:
            row[rate]["low"], row[rate]["high"] = interval


def _twins(store: Store) -> list[Row]:
    """Pairs told apart, by contender; beside them the two references of section 3."""
    query = (
        "select contender, scenario_name, pair, sum(twin), count(*) from episodes "
        "where pair is not null and ending <> 'void' group by contender, scenario_name, pair "
        "order by contender, scenario_name"
    )
    halves: dict[int, dict[str, tuple[str, int, int]]] = {}
    for contender, name, pair, right, seeds in store.rows(query):
        halves.setdefault(contender, {})[name] = (pair, right, seeds)
    rows = []
    for number, contender in enumerate(store.recipe.contenders):
        mine = halves.get(number, {})
        pairs, told, right_pairs = 0, 0, []
        for name, (pair, right, seeds) in mine.items():
            other = mine.get(pair)
            if other is None or name > pair:
                continue
            pairs += 1
            if right == seeds and other[1] == other[2]:
                told += 1
                right_pairs.append(f"{name} / {pair}")
        if pairs:
            rows.append(
                {
                    "strategy": contender.strategy,
                    "harness": contender.harness,
                    "pairs": pairs,
                    "right": told,
                    "rate": told / pairs,
                    "words_alone": 0.0,
                    "coin_at_most": 0.25,
                    "told_apart": right_pairs,
                }
            )
    return rows
