"""Two runs held against each other: what is in both, what changed, which episodes flipped."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.runs.store import Store, address_of
from evalkit.stats.scenario_results import COMPARED, Record, contender_names, records, shared
from evalkit.stats.strategy_comparison import Paired, adjusted, paired
from evalkit.stats.tally import make_tally

#: Episodes that are listed for one contender; the rest are counted.
MOST_FLIPS = 500


class Flip(msgspec.Struct, frozen=True):
    """An episode that both runs have and that is not the same in them.

    ``worse`` is None where both are correct, or neither is, and only the outcome differs. ``why`` are the
    wrong decisions that only one of the two made, the first one of each.
    """

    scenario: str
    seed: int
    before: str
    after: str
    worse: bool | None
    cell_before: int
    cell_after: int
    why_before: str
    why_after: str


class Difference(msgspec.Struct, frozen=True):
    """One rate of one contender in both runs, over the shared scenarios: means over scenarios, B less A."""

    rate: str
    before: float
    after: float
    result: Paired
    p_holm: float | None


class Match(msgspec.Struct, frozen=True):
    """A contender of A and the one of B that it is compared with."""

    before: str
    after: str
    scenarios: int
    differences: tuple[Difference, ...]
    flips: tuple[Flip, ...]
    flips_in_all: int


class Versus(msgspec.Struct, frozen=True):
    """Two runs. Scenarios that only one has, or whose text differs, are named and not compared."""

    a: dict[str, Any]
    b: dict[str, Any]
    shared: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[str, ...]
    strategies_only_a: tuple[str, ...]
    strategies_only_b: tuple[str, ...]
    matches: tuple[Match, ...]
    notes: tuple[str, ...]


def versus(a: Store, b: Store) -> Versus:
    """Compare run A (before) with run B (after), contender by contender on the scenarios that both have."""
    make_tally(a)
    make_tally(b)
    digests_a = {entry.name: entry.digest for entry in a.recipe.entries}
    digests_b = {entry.name: entry.digest for entry in b.recipe.entries}
    common = [name for name in digests_a if name in digests_b]
    changed = [name for name in common if digests_a[name] != digests_b[name]]
    unchanged = [name for name in common if digests_a[name] == digests_b[name]]
    names_a, names_b = contender_names(a), contender_names(b)
    pairs = [(name, name) for name in names_a if name in names_b]
    notes = list(_notes(a, b))
    if not pairs and len(names_a) == len(names_b) == 1:
        pairs = [(names_a[0], names_b[0])]
        notes.append(f"different names, compared as the only ones: {names_a[0]} with {names_b[0]}")
    mine, theirs = records(a), records(b)
    flips = _Flips(a, b)
    matches = []
    for before, after in pairs:
        both: dict[str, tuple[Record, Record]] = {}
        for name in unchanged:
            if name in mine[before] and name in theirs[after]:
                pair = shared(mine[before][name], theirs[after][name])
                if pair is not None:
                    both[name] = pair
        found = flips.of(names_a.index(before), names_b.index(after), set(both))
        matches.append(
            Match(
                before,
                after,
                len(both),
                _differences(both, digests_a),
                tuple(found[:MOST_FLIPS]),
                len(found),
            )
        )
    paired_a, paired_b = {name for name, _ in pairs}, {name for _, name in pairs}
    return Versus(
        a=_about(a),
        b=_about(b),
        shared=len(unchanged),
        only_a=tuple(name for name in digests_a if name not in digests_b),
        only_b=tuple(name for name in digests_b if name not in digests_a),
        changed=tuple(changed),
        strategies_only_a=tuple(name for name in names_a if name not in paired_a),
        strategies_only_b=tuple(name for name in names_b if name not in paired_b),
        matches=_adjusted(matches),
        notes=tuple(notes),
    )


def together(found: list[Versus]) -> list[Versus]:
    """Several comparisons shown together: Holm over all that they test."""
    matches = iter(_adjusted([match for one in found for match in one.matches]))
    return [msgspec.structs.replace(one, matches=tuple(next(matches) for _ in one.matches)) for one in found]


def _about(store: Store) -> dict[str, Any]:
    recipe = store.recipe
    return {
        "folder": str(store.folder),
        "id": recipe.id,
        "created": store.created,
        "evalkit": recipe.evalkit,
        "scenarios": len(recipe.entries),
        "episodes": store.count(),
        "seeds": recipe.seeds,
    }


def _notes(a: Store, b: Store) -> Iterator[str]:
    if a.recipe.evalkit != b.recipe.evalkit:
        yield f"different versions of evalkit: A {a.recipe.evalkit}, B {b.recipe.evalkit}"
    if a.recipe.seeds != b.recipe.seeds:
        numbers = f"A {a.recipe.seeds}, B {b.recipe.seeds}"
        yield f"different numbers of seeds: {numbers}; the seeds that both have are compared"
    for name, was in a.recipe.strategies.items():
        now = b.recipe.strategies.get(name)
        if now is not None and now != was:
            yield f"strategy {name} is not the same in both"
    for side, store in (("A", a), ("B", b)):
        (void,) = next(store.rows("select count(*) from episode where ending = 'void'"))
        if void:
            yield f"{side} has {void} void episodes, left out"


def _differences(pairs: dict[str, tuple[Record, Record]], digests: dict[str, str]) -> tuple[Difference, ...]:
    found = []
    for rate in COMPARED:
        old = [before.share(rate) for before, _ in pairs.values()]
        new = [after.share(rate) for _, after in pairs.values()]
        differences = [b - a for a, b in zip(old, new, strict=True)]
        result = paired(differences, [digests[name] for name in pairs])
        number = max(1, len(pairs))
        found.append(Difference(rate, float(sum(old) / number), float(sum(new) / number), result, None))
    return tuple(found)


def _adjusted(matches: list[Match]) -> tuple[Match, ...]:
    """Holm's adjustment over everything that is shown."""
    p_values = iter(adjusted([(d.result.p, d.result.note) for match in matches for d in match.differences]))
    return tuple(
        msgspec.structs.replace(
            match,
            differences=tuple(
                msgspec.structs.replace(d, p_holm=p)
                for d, p in zip(match.differences, p_values, strict=False)
            ),
        )
        for match in matches
    )


class _Flips:
    """Episodes of B beside the same ones of A, by scenario and seed."""

    def __init__(self, a: Store, b: Store) -> None:
        self.b = b
        b.base.execute("attach database ? as other", (address_of(a.folder),))

    def of(self, before: int, after: int, scenarios: set[str]) -> list[Flip]:
        """What differs between contender ``before`` of A and ``after`` of B; what got worse comes first."""
        query = (
            "select now.name, new.seed, old.ending || '/' || old.truth, new.ending || '/' || new.truth, "
            "old.correct, new.correct, old.cell, new.cell, old.causes, new.causes "
            "from other.scenario was join main.scenario now on now.name = was.name "
            "join other.episode old on old.scenario = was.id and old.contender = ? and old.counted "
            "join main.episode new on new.scenario = now.id and new.contender = ? and new.seed = old.seed "
            "and new.counted where old.correct <> new.correct or old.ending <> new.ending "
            "or old.truth <> new.truth order by now.name, new.seed"
        )
        found = []
        for name, seed, was, now, right, still, cell_a, cell_b, causes_a, causes_b in self.b.rows(
            query, (before, after)
        ):
            if name in scenarios:
                why = _first_apart(causes_a, causes_b)
                worse = None if right == still else bool(right)
                found.append(Flip(name, seed, was, now, worse, cell_a, cell_b, *why))
        return sorted(
            found, key=lambda flip: ({True: 0, False: 1, None: 2}[flip.worse], flip.scenario, flip.seed)
        )


def _first_apart(before: str, after: str) -> tuple[str, str]:
    """The first wrong decision of each that the other did not make in its place."""
    old, new = before.split("\n"), after.split("\n")
    for place in range(max(len(old), len(new))):
        mine = old[place] if place < len(old) else ""
        theirs = new[place] if place < len(new) else ""
        if mine != theirs:
            return mine, theirs
    return "", ""
