"""The strategy with the least expected cost, for costs that its user states; or what he has to decide.

An episode costs one of these: a false done, a premature stop that was not handed over, a look by a person (an
escalation); and its tokens. Of a written library the figures are exact, k of n scenarios, seeds averaged. Of
a population they are means over draws; a winner is named only where it stays one over all that is assumed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import msgspec

from evalkit.fit.quantiles import middle
from evalkit.fit.uncertainty import cell_of, populations_of
from evalkit.runs.store import Store
from evalkit.scenarios.drawn_scenarios import MIDDLE
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.summary import is_sample

#: What may cost something: how an episode's own count of it is read.
COSTS = {
    "false_done": "false_done",
    "premature_stop": "ending not in ('done', 'escalated') and ifnull(premature_stop, 0)",
    "look": "ending = 'escalated'",
    "token": "tokens",
}
#: Costs of a false done in looks, for the map.
RATIOS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
#: Where nothing is assumed.
EXACT = "exact"
#: Two costs closer than this part of the larger are a tie.
_TIE = 1e-9

#: What one unit of each costs.
Prices = Mapping[str, float]
#: Of one contender: how often each costs something in an episode, by level and draw.
Rates = dict[str, dict[int, dict[str, float]]]


class Group(msgspec.Struct, frozen=True):
    """What stands together: a population, or a written library at one level of checks.

    ``says`` is what its figures may claim; empty where they are exact.
    """

    name: str
    sampled: bool
    says: str
    rates: dict[str, Rates]
    assumed: tuple[str, ...] = ()


class Choice(msgspec.Struct, frozen=True):
    """The costs of a group: ``by_level`` who has the least, ``winner`` who has it at all levels.

    ``costs`` are means in the middle of what is assumed, by contender, least first, each with the ends of its
    middle 90 % over draws (None where the figures are exact). ``apart`` is by how much the first is cheaper
    than the second there, with the same ends.
    """

    group: str
    winner: str | None
    by_level: dict[str, tuple[str, ...]]
    costs: dict[str, tuple[float, float | None, float | None]]
    apart: tuple[str, float, float | None, float | None] | None = None


# From runs


def groups_of(stores: Sequence[Store]) -> list[Group]:
    """What runs let choose from. ValueError for runs of different scenarios, or one name twice."""
    found: dict[str, Group] = {}
    scenarios: dict[str, set[str]] = {}
    for store in stores:
        for group, names in _groups(store):
            other = found.get(group.name)
            if other is None:
                found[group.name], scenarios[group.name] = group, names
                continue
            if scenarios[group.name] != names:
                raise ValueError(
                    f"{group.name}: the runs are of different scenarios; choose from each by itself"
                )
            twice = sorted(other.rates.keys() & group.rates.keys())
            if twice:
                raise ValueError(f"{twice[0]!r} is in two of the runs; name one of them")
            found[group.name] = msgspec.structs.replace(other, rates={**other.rates, **group.rates})
    return list(found.values())


def _groups(store: Store) -> list[tuple[Group, set[str]]]:
    populations = populations_of(store.recipe)
    kinds: dict[int, tuple[str, str, int]] = {}
    for place, entry in enumerate(store.recipe.entries):
        cell = cell_of(entry.name)
        if cell is not None and cell.population in populations:
            kinds[place] = cell.population, cell.level, cell.draw
        else:
            kinds[place] = f"checks: {entry.checks}", EXACT, 0
    sums = _sums(store, kinds)
    names = contender_names(store)
    found = []
    for name in dict.fromkeys(kind[0] for kind in kinds.values()):
        rates = {names[contender]: of[name] for contender, of in sums.items() if name in of}
        sampled = name in populations
        status = populations[name].calibration.status if sampled else ""
        says = f"{status}; interventions: not validated" if sampled else ""
        entries = [store.recipe.entries[place] for place, kind in kinds.items() if kind[0] == name]
        if is_sample(store.recipe, entries) and not sampled:
            says = "a sample, of which no interval is told here"
        own = {entry.name for entry in entries}
        if rates:
            assumed = tuple(populations[name].assumed) if sampled else ()
            found.append((Group(name, sampled, says, rates, assumed), own))
    return found


def _sums(store: Store, kinds: dict[int, tuple[str, str, int]]) -> dict[int, dict[str, Rates]]:
    """The rates by contender and group: seeds averaged within a scenario, scenarios within a draw."""
    columns = ", ".join(f"avg({expression})" for expression in COSTS.values())
    query = (
        f"select contender, scenario, {columns} from episode where counted "
        "group by contender, scenario order by contender, scenario"
    )
    rows: dict[int, dict[str, dict[str, dict[int, list[tuple[float, ...]]]]]] = {}
    for contender, scenario, *values in store.rows(query):
        name, level, draw = kinds[scenario]
        by_draw = rows.setdefault(contender, {}).setdefault(name, {}).setdefault(level, {})
        by_draw.setdefault(draw, []).append(tuple(values))
    return {
        contender: {
            name: {
                level: {
                    draw: dict(zip(COSTS, map(fmean, zip(*values, strict=True)), strict=True))
                    for draw, values in draws.items()
                }
                for level, draws in levels.items()
            }
            for name, levels in of.items()
        }
        for contender, of in rows.items()
    }


# The choice


def cost_of(rates: Mapping[str, float], prices: Prices) -> float:
    """The expected cost of an episode."""
    return sum(prices[name] * rates[name] for name in prices)


def centre(group: Group) -> str:
    """The level in the middle of what is assumed."""
    return MIDDLE if group.sampled else EXACT


def choice(group: Group, prices: Prices) -> Choice:
    """Who has the least expected cost, at each level of what is assumed."""
    by_draw = {
        name: {level: {d: cost_of(r, prices) for d, r in draws.items()} for level, draws in rates.items()}
        for name, rates in group.rates.items()
    }
    middle_of = centre(group)
    levels = list(next(iter(by_draw.values())))
    means = {level: {name: fmean(of[level].values()) for name, of in by_draw.items()} for level in levels}
    least = {level: _least(found) for level, found in means.items()}
    first = least[middle_of]
    stays = len(first) == 1 and all(names == first for names in least.values())
    ordered = sorted(by_draw, key=lambda name: (means[middle_of][name], name))
    sampled = group.sampled
    costs = {name: _spread([*by_draw[name][middle_of].values()], sampled=sampled) for name in ordered}
    return Choice(
        group.name,
        first[0] if stays else None,
        least,
        costs,
        _apart(ordered, {name: of[middle_of] for name, of in by_draw.items()}, sampled=sampled),
    )


def _least(costs: Mapping[str, float]) -> tuple[str, ...]:
    """The names with the least cost; several at a tie."""
    best = min(costs.values())
    return tuple(sorted(name for name, cost in costs.items() if cost - best <= _TIE * max(1.0, abs(best))))


def _spread(values: list[float], *, sampled: bool) -> tuple[float, float | None, float | None]:
    return (fmean(values), *(middle(values) if sampled else (None, None)))


def _apart(
    ordered: Sequence[str], costs: Mapping[str, Mapping[int, float]], *, sampled: bool
) -> tuple[str, float, float | None, float | None] | None:
    """By how much the first is cheaper than the second, draw by draw."""
    if len(ordered) < 2:
        return None
    first, second = ordered[:2]
    differences = [costs[second][draw] - value for draw, value in costs[first].items()]
    return (second, *_spread(differences, sampled=sampled))


def ratio_map(group: Group, prices: Prices) -> dict[float, dict[str, tuple[str, ...]]]:
    """Who wins where: by what a false done costs in looks, and by level of what is assumed."""
    look = prices.get("look", 0.0) or 1.0
    return {
        ratio: choice(group, {**prices, "look": look, "false_done": ratio * look}).by_level
        for ratio in RATIOS
    }


# Without costs


def frontier(group: Group) -> dict[str, dict[str, float]]:
    """The contenders that none is better than in everything, with what each episode has of each cost.

    In the middle of what is assumed.
    """
    level = centre(group)
    found = {
        name: {cost: fmean(draw[cost] for draw in rates[level].values()) for cost in COSTS}
        for name, rates in group.rates.items()
    }
    return {
        name: own
        for name, own in sorted(found.items(), key=lambda item: (item[1]["false_done"], item[0]))
        if not any(_better(other, own) for other in found.values())
    }


def _better(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether one is nowhere worse, and somewhere better."""
    return all(one[name] <= other[name] for name in COSTS) and any(one[name] < other[name] for name in COSTS)


def to_decide(found: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Of neighbours on the frontier: what the one saves, and what it costs."""
    names = list(found)
    said = []
    for one, other in pairwise(names):
        saves = found[other]["false_done"] - found[one]["false_done"]
        more = {cost: found[one][cost] - found[other][cost] for cost in COSTS if cost != "false_done"}
        worse = ", ".join(f"{_amount(cost, by)}" for cost, by in more.items() if by > 0)
        if saves > 0 and worse:
            said.append(
                f"{one} rather than {other}: {1000 * saves:.0f} false dones fewer in 1,000 tasks, for {worse}"
            )
    return said


_WORDS = {"premature_stop": "premature stops", "look": "looks by a person", "token": "tokens"}


def _amount(cost: str, by: float) -> str:
    return f"{1000 * by:,.0f} more {_WORDS[cost]}"
