"""How far the constants carry: who is first with each threshold of over-continuation halved and doubled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from evalkit.core import thresholds
from evalkit.experiments.studies.episodes import Played, played, played_by_programs
from evalkit.experiments.studies.study import Study, Table
from evalkit.loop.state import SUPPORTED_EVENTS
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.episode import Episode
from evalkit.stats.kendall import tau_b
from evalkit.stats.ranking import LEVELS
from evalkit.strategies.strategy import Strategy

#: What each threshold is multiplied with.
FACTORS = (0.5, 2.0)
#: Marks a rank that is another one with some threshold halved or doubled.
TURNS = "†"
#: So many contenders whose places turn are named; of more their number is told.
NAMED = 4
_GROUPS = {"full": "full checks", "weak": "weak checks", "none": "no checks", "harnesses": "harnesses"}
#: What contenders are ordered by, best first: as :func:`evalkit.stats.ranking.standing`.
Standing: TypeAlias = tuple[float, float, float]

_REPEATING = thresholds.GOING_ON.index("REPEATING_TURNS")


class ThresholdChange(msgspec.Struct, frozen=True):
    """The thresholds, one of them changed: its name and its value; with no name all are as they are."""

    name: str
    value: float
    limits: tuple[float, ...]


def settings() -> list[ThresholdChange]:
    """The thresholds as they are, then each halved and doubled."""
    now = {name: float(getattr(thresholds, name)) for name in thresholds.GOING_ON}
    found = [ThresholdChange("", 0.0, tuple(now.values()))]
    for name, value in now.items():
        for factor in FACTORS:
            changed = now | {name: factor * value}
            found.append(ThresholdChange(name, factor * value, tuple(changed.values())))
    return found


def correct_at(episode: Episode, limits: Sequence[float]) -> bool:
    """Whether an episode is correct by other thresholds; the ideal harness stays what it is."""
    if not episode.but_for_going_on or episode.ending == "never":
        return False
    passed = [found > limit for found, limit in zip(episode.stretches, limits, strict=True)]
    # Whoever repeats calls on work that can be finished may yet finish it.
    passed[_REPEATING] = passed[_REPEATING] and episode.truth != "reachable"
    return not any(passed)


def standings(episodes: Mapping[str, Iterable[Episode]], limits: Sequence[float]) -> dict[str, Standing]:
    """What each contender is ordered by: shares of the scenarios that it played."""
    found = {}
    for name, mine in episodes.items():
        every = list(mine)
        counts = (
            -sum(correct_at(episode, limits) for episode in every),
            sum(episode.false_done for episode in every),
            sum(bool(episode.premature_stop) for episode in every),
        )
        found[name] = tuple(count / len(every) for count in counts)
    return found  # type: ignore[return-value]


def places(found: Mapping[str, Standing]) -> dict[str, int]:
    """The place of each contender, from 1; who ties shares one."""
    order = sorted(found.values())
    return {name: 1 + order.index(standing) for name, standing in found.items()}


def thresholds_study(
    scenarios: Sequence[Scenario],
    strategies: Sequence[Strategy],
    harnesses: Sequence[str] = (),
    some: Sequence[Scenario] | None = None,
    workers: int = 1,
) -> Study:
    """The study: strategies on scenarios at each level of checks, harness programs on ``some`` of them."""
    able = [scenario for scenario in scenarios if set(scenario.events) <= SUPPORTED_EVENTS]
    groups: dict[str, dict[str, list[Episode]]] = {}
    # Programs first: one that cannot be started is told before everything else is played.
    abroad = played_by_programs(list(some or scenarios), harnesses) if harnesses else {}
    ours = played(able, strategies, workers)
    for level in LEVELS:
        mine = {place: ours[place] for place, scenario in enumerate(able) if scenario.task.checks == level}
        groups[level] = _by_contender(mine)
    groups["harnesses"] = _by_contender(abroad)
    groups = {name: group for name, group in groups.items() if group}
    orders = {name: [standings(group, each.limits) for each in settings()] for name, group in groups.items()}
    bases = {name: {who: len(mine) for who, mine in group.items()} for name, group in groups.items()}
    return _told(orders, bases)


def _by_contender(found: Played) -> dict[str, list[Episode]]:
    episodes: dict[str, list[Episode]] = {}
    for of_scenario in found.values():
        for name, episode in of_scenario.items():
            episodes.setdefault(name, []).append(episode)
    return episodes


def _told(orders: dict[str, list[dict[str, Standing]]], bases: dict[str, dict[str, int]]) -> Study:
    rows = []
    figures: list[dict[str, Any]] = []
    for number, setting in enumerate(settings()):
        if not setting.name:
            continue
        taus = {name: _tau(order[0], order[number]) for name, order in orders.items()}
        turned = {name: _turned(order[0], order[number]) for name, order in orders.items()}
        base = getattr(thresholds, setting.name)
        figures.append({"threshold": setting.name, "value": setting.value, "tau": taus, "turned": turned})
        cells = ["n/a" if tau is None else f"{tau:.3f}" for tau in taus.values()]
        said = [_said(name, every, len(bases[name])) for name, every in turned.items() if every]
        rows.append((setting.name, f"{base} → {setting.value:g}", *cells, "; ".join(said) or "none"))
    heads = tuple(f"τ, {_GROUPS[name]}" for name in orders)
    heads = ("constant", "value", *heads, "places that turn")
    tables = [Table("Each constant halved and doubled", heads, tuple(rows))]
    tables += [_order_table(name, order, bases[name]) for name, order in orders.items()]
    words = (
        "The thresholds from which on going on is for nothing (`evalkit/core/thresholds.py`, D3.5) are "
        "choices. Here each is halved and doubled, the others left, and contenders are ordered anew as the "
        "report orders them: correct, then fewer false dones, then fewer premature stops, as shares of the "
        "scenarios played. τ is Kendall's tau-b with the order as it is; 1 is the same order. The ideal "
        "harness, which the accepted outcomes come from, is not changed.",
        f"{TURNS} marks a place that is another with some constant halved or doubled; behind it the places "
        "that it takes.",
    )
    return Study(
        "thresholds",
        "How far the constants carry",
        "evalkit study thresholds",
        words,
        tuple(tables),
        {"settings": figures, "orders": {name: order[0] for name, order in orders.items()}},
    )


def _tau(one: Mapping[str, Standing], other: Mapping[str, Standing]) -> float | None:
    return tau_b([one[name] for name in one], [other[name] for name in one])


def _turned(one: Mapping[str, Standing], other: Mapping[str, Standing]) -> list[str]:
    before, after = places(one), places(other)
    return [name for name in one if before[name] != after[name]]


def _said(name: str, every: list[str], whole: int) -> str:
    who = ", ".join(every) if len(every) <= NAMED else f"{len(every)} of {whole}"
    return f"{_GROUPS[name]}: {who}"


def _order_table(name: str, orders: list[dict[str, Standing]], bases: Mapping[str, int]) -> Table:
    every = [places(order) for order in orders]
    rows = []
    for who, place in sorted(every[0].items(), key=lambda pair: (pair[1], pair[0])):
        least, most = (pick(found[who] for found in every) for pick in (min, max))
        mark = f"{place}" if least == most else f"{place} {TURNS} {least} to {most}"
        counts = [round(-order[who][0] * bases[who]) for order in orders]
        span = "" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
        rows.append((mark, who, f"{counts[0]} of {bases[who]}", span))
    title = _GROUPS[name] if name == "harnesses" else f"strategies, {_GROUPS[name]}"
    return Table(f"The {title}", ("place", "contender", "correct", "with other constants"), tuple(rows))
