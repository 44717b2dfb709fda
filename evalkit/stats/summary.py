"""``summary.json``: the counts of a run, added up as whole numbers and divided last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import lcm
from typing import Any, TypeAlias

from evalkit.core.prices import cost
from evalkit.models.ledger import read_spending
from evalkit.runs.plan import Entry, Recipe
from evalkit.runs.store import WEIGHT, Store
from evalkit.scoring.episode_fields import FLAGS, RATES, SIZES
from evalkit.stats import tally
from evalkit.stats.causes import causes
from evalkit.stats.intervals import cluster_interval, ratio_interval
from evalkit.stats.pass_k import pass_table
from evalkit.stats.ranking import LEVELS, leads
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.strategy_comparison import adjust, paired_comparisons
from evalkit.stats.tally import WEIGHTS, Counts, Key
from evalkit.stats.telemetry import stops_by_family
from evalkit.stats.turns import turns_to_the_end
from evalkit.stats.twins import twin_rows

SCHEMA = "evalkit.summary/1"

Row: TypeAlias = dict[str, Any]


def is_sample(recipe: Recipe, entries: Sequence[Entry]) -> bool:
    """Whether scenarios of a run are a sample and no written library: of a live model, or all are drawn."""
    return recipe.medium.live or (bool(entries) and all(entry.population for entry in entries))


def summarize(store: Store) -> dict[str, Any]:
    """The content of ``summary.json`` for a run."""
    recipe = store.recipe
    tally.make_tally(store)
    ((void, unexercised),) = store.rows(
        "select ifnull(sum(ending = 'void'), 0), ifnull(sum(not_exercised), 0) from episode"
    )
    (played,) = next(store.rows("select count(distinct scenario) from episode"))
    episodes = store.count()
    entries = recipe.entries
    rows = _rows(store)
    pairs, first = paired_comparisons(store), leads(store, rows)
    _adjust(pairs, first, store)
    spending = read_spending(store.folder)
    return {
        **({} if spending is None else {"spending": spending}),
        "schema": SCHEMA,
        "run": {
            "id": recipe.id,
            "scenarios": played,
            "episodes": episodes,
            "seeds": recipe.seeds,
            "void": void,
            "void_reasons": void_reasons(store),
            "raised": raised(store),
            "not_exercised": unexercised,
            "evalkit": recipe.evalkit,
            "baseline": recipe.baseline,
            "model": recipe.medium.model,
            "sampled": is_sample(recipe, entries),
            "gateable": bool(episodes - void - unexercised) and void * 100 <= episodes,
            "not_expressible": dict(sorted(recipe.not_expressible.items())),
        },
        "rows": rows,
        "pairs": pairs,
        "leads": first,
        "twins": twin_rows(store),
        "causes": causes(store),
        "stops": stops_by_family(store),
        "turns": turns_to_the_end(store),
    }


def _adjust(pairs: list[Row], first: list[Row], store: Store) -> None:
    """Holm over pairs and leads together; a lead over the baseline, or of it, is a pair and counts once."""
    recipe = store.recipe
    base = next(((c.strategy, c.harness) for c in recipe.contenders if c.strategy == recipe.baseline), None)
    known = {(pair["checks"], (pair["strategy"], pair["harness"])): pair for pair in pairs}
    own: list[Row] = []
    twice: list[tuple[Row, Row]] = []
    for lead in first:
        if not lead.get("next"):
            continue
        both = [(row["strategy"], row["harness"]) for row in (lead, lead["next"])]
        pair = next((known.get((lead["checks"], one)) for one in both if one != base), None)
        if base in both and pair is not None:
            twice.append((lead, pair))
        else:
            own.append(lead)
    adjust([*pairs, *own])
    for lead, pair in twice:
        lead["p_holm"] = pair["p_holm"]


def void_reasons(store: Store, most: int = 3) -> list[str]:
    """What failed in void episodes, the most frequent first: a reason and how often it came."""
    query = (
        "select note, count(*), min(cell) from episode where ending = 'void' "
        "group by note order by count(*) desc, min(cell) limit ?"
    )
    return [f"{note} ({times:,} times)" for note, times, _ in store.rows(query, (most,))]


def raised(store: Store) -> list[str]:
    """A line for each contender that broke by itself: how often, and what it said first."""
    names = contender_names(store)
    query = (
        "select contender, count(*), min(cell) from episode where ending = 'error' and note <> '' "
        "group by contender order by contender"
    )
    found = []
    for contender, episodes, cell in list(store.rows(query)):
        ((note, scenario),) = store.rows("select note, scenario_name from episodes where cell = ?", (cell,))
        often = "an episode" if episodes == 1 else f"{episodes:,} episodes"
        found.append(f"{names[contender]} failed by itself in {often}, first in {scenario}: {note}")
    return found


def _rows(store: Store) -> list[Row]:
    entries = store.recipe.entries
    keys = sorted({(entry.family, entry.checks) for entry in entries})
    families = sorted({family for family, _ in keys})
    levels = [level for level in LEVELS if any(checks == level for _, checks in keys)]
    wanted = [
        ("all", "all"),
        *((family, "all") for family in families),
        *(("all", level) for level in levels),
    ]
    found = _Found(store)
    rows = []
    for number, contender in enumerate(store.recipe.contenders):
        for family, checks in wanted:
            mine = [(number, f, c) for f, c in keys if family in ("all", f) and checks in ("all", c)]
            row: Row = {
                "strategy": contender.strategy,
                "harness": contender.harness,
                "family": family,
                "checks": checks,
            }
            rows.append(row | found.figures(mine))
    return rows


class _Found:
    """What the queries gave, by contender, family and level of checks."""

    def __init__(self, store: Store) -> None:
        self.counts = tally.counts_by_key(store)
        self.outcomes = tally.outcomes_by_key(store)
        self.sizes = {rate: tally.sizes_by_key(store, rate) for rate in RATES}
        self.passes = tally.passes_by_key(store)
        columns = (
            *(name for rate in RATES for name in (rate, f"{rate}_base")),
            "turns",
            "tokens",
            "episodes",
        )
        self.clusters = {
            key: [dict(zip(("scenarios", *columns), values, strict=True)) for values in rows]
            for key, rows in tally.clusters_by_key(store, columns).items()
        }

    def figures(self, keys: Sequence[Key]) -> Row:
        """One row's figures: the sums over ``keys``."""
        total = _added(self.counts[key] for key in keys if key in self.counts)
        episodes = total.get("episodes", 0)
        clusters = _joined(self.clusters, keys)
        sampled = bool(clusters) and sum(cluster["scenarios"] for cluster in clusters) == total["scenarios"]
        row: Row = {"episodes": episodes, "scenarios": total.get("scenarios", 0)}
        for rate in RATES:
            pairs = [(cluster[rate], cluster[f"{rate}_base"]) for cluster in clusters] if sampled else None
            row[rate] = _rate(total, rate, _joined(self.sizes[rate], keys), pairs)
        silent = total.get("silent", 0)
        row["premature_stop"]["silent"] = silent
        row["premature_stop"]["declared"] = row["premature_stop"]["count"] - silent
        row |= _outcomes(_joined(self.outcomes, keys))
        row |= _decisions(total)
        for name in SIZES:
            row[name] = total[name] / episodes if episodes else None
        row |= _cost(total)
        if sampled:
            for name in ("turns", "tokens"):
                spread = ratio_interval([(cluster[name], cluster["episodes"]) for cluster in clusters])
                row[f"{name}_interval"] = {"low": spread.low, "high": spread.high, "note": spread.note}
        for name in FLAGS:
            row[name] = total.get(name, 0)
        row["gateable"] = total.get("no_requests_episodes", 0) * 100 <= episodes
        row["flagged"] = {name: total[f"{name}_episodes"] for name in FLAGS if total.get(f"{name}_episodes")}
        row["pass_k"] = pass_table(_merged(_joined(self.passes, keys)))
        return row


def _added(parts: Iterable[Counts]) -> Counts:
    total: Counts = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0) + value
    return total


def _joined(lists: dict[Key, list[Any]], keys: Sequence[Key]) -> list[Any]:
    return [value for key in keys for value in lists.get(key, ())]


def _merged(groups: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    merged: dict[tuple[int, int], int] = {}
    for tries, correct, scenarios in groups:
        merged[tries, correct] = merged.get((tries, correct), 0) + scenarios
    return [(*key, scenarios) for key, scenarios in sorted(merged.items())]


def _rate(
    total: Counts,
    rate: str,
    sizes: list[tuple[int, int, int]],
    clusters: list[tuple[int, int]] | None,
) -> Row:
    """A rate by episodes (``count`` of ``base``) and by scenarios, seeds averaged within each.

    ``interval``, the method or why there is none, is there for what was sampled: a written library gets none.
    """
    count, base = total.get(rate, 0), total.get(f"{rate}_base", 0)
    scale = lcm(*(size for size, _, _ in sizes))
    shares = sum(counted * (scale // size) for size, _, counted in sizes) / scale
    scenarios = sum(number for _, number, _ in sizes)
    row: Row = {
        "count": count,
        "base": base,
        "rate": count / base if base else None,
        "low": None,
        "high": None,
        "scenario_count": shares,
        "scenario_base": scenarios,
        "scenario_rate": shares / scenarios if scenarios else None,
    }
    if clusters is not None:
        spread = cluster_interval(clusters)
        row |= {"low": spread.low, "high": spread.high, "interval": spread.note}
    return row


def _outcomes(parts: list[tuple[str, int, int, int]]) -> Row:
    """Each outcome's episodes, its scenarios (seeds averaged within each), and those of them correct."""
    scale = lcm(*(size for _, size, _, _ in parts))
    episodes: Counts = {}
    shares: Counts = {}
    right: Counts = {}
    for outcome, size, counted, correct in parts:
        episodes[outcome] = episodes.get(outcome, 0) + counted
        shares[outcome] = shares.get(outcome, 0) + counted * (scale // size)
        right[outcome] = right.get(outcome, 0) + correct * (scale // size)
    return {
        "outcomes": dict(sorted(episodes.items())),
        "scenario_outcomes": {name: share / scale for name, share in sorted(shares.items())},
        "correct_outcomes": {name: share / scale for name, share in sorted(right.items()) if share},
    }


def _decisions(total: Counts) -> Row:
    """The confusion matrix, whole and with weight 1 for each episode; precision and recall of the latter.

    Precision: of the runs ended as done the share where the oracle held, tp / (tp + fp). Recall: of the
    decisions at which it held the share that ended as done, tp / (tp + fn). None for an empty base.
    """
    weights = {name: total.get(f"{name}_weight", 0) for name in WEIGHTS}
    ended, held = weights["tp"] + weights["fp"], weights["tp"] + weights["fn"]
    return {
        "decisions": {name: total.get(name, 0) for name in WEIGHTS},
        "decisions_weighted": {name: weight / WEIGHT for name, weight in weights.items()},
        "precision": weights["tp"] / ended if ended else None,
        "recall": weights["tp"] / held if held else None,
    }


def _cost(total: Counts) -> Row:
    """Mean cost in assumed US dollars, and the whole cost over the correct episodes; None where none is."""
    episodes, correct = total.get("episodes", 0), total.get("correct", 0)
    tokens, output = total.get("tokens", 0), total.get("output_tokens", 0)
    usd = cost(tokens - output, output)
    return {
        "usd": usd / episodes if episodes else None,
        "per_correct": {
            "turns": total["turns"] / correct if correct else None,
            "tokens": tokens / correct if correct else None,
            "usd": usd / correct if correct else None,
        },
    }
