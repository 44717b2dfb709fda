"""The variance that a pilot run shows, for planning the next one."""

from __future__ import annotations

from evalkit.runs.store import Store
from evalkit.stats.power import NotPlannable, Variance, pilot_variance
from evalkit.stats.scenario_results import contender_names


def pilot_pair(store: Store, names: tuple[str, ...] = ()) -> Variance:
    """The variance of two contenders' paired differences of ``correct``, by scenario and seed.

    ``names``: both; one, against the run's baseline; or none: of all pairs with the baseline the one that
    varies most. KeyError for an unknown name, NotPlannable where there is no variance.
    """
    known = contender_names(store)
    for name in names:
        if name not in known:
            raise KeyError(f"strategy {name!r} is not in the pilot, which has: {', '.join(known)}")
    base = next(
        (at for at, c in enumerate(store.recipe.contenders) if c.strategy == store.recipe.baseline), 0
    )
    if len(names) > 2:
        raise KeyError(f"--strategy: one or two, got {len(names)}")
    if len(names) == 2:
        pairs = [(known.index(names[0]), known.index(names[1]))]
    else:
        others = [known.index(name) for name in names] or range(len(known))
        pairs = [(base, other) for other in others if other != base]
    if not pairs:
        raise NotPlannable("n/a: the pilot has one strategy; a comparison takes two")
    found, why = [], ""
    for one, other in pairs:
        try:
            found.append(
                pilot_variance(_paired(store, one, other), f"pilot: {known[other]} less {known[one]}")
            )
        except NotPlannable as error:
            why = str(error)
    if not found:
        raise NotPlannable(why)
    return max(found, key=lambda variance: variance.between + variance.within)


def _paired(store: Store, one: int, other: int) -> list[list[int]]:
    """By scenario the differences, a seed each."""
    query = (
        "select a.scenario, b.correct - a.correct from episode a join episode b "
        "on b.scenario = a.scenario and b.seed = a.seed and b.contender = ? and b.counted "
        "where a.contender = ? and a.counted order by a.scenario, a.seed"
    )
    found: dict[int, list[int]] = {}
    for scenario, difference in store.rows(query, (other, one)):
        found.setdefault(scenario, []).append(difference)
    return list(found.values())
