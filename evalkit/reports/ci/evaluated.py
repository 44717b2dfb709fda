"""Whether a run evaluated what it was asked to: what would make a green result mean nothing, with reasons."""

from __future__ import annotations

from collections.abc import Iterator

from evalkit.runs.store import Store
from evalkit.stats.scenario_results import contender_names
from evalkit.stats.summary import void_reasons


def unevaluated(store: Store) -> list[str]:
    """Why a run is no evaluation, a line each; empty where it is one."""
    return [*_void(store), *_raised_always(store)]


def _void(store: Store) -> Iterator[str]:
    ((episodes, void, counted),) = store.rows(
        "select count(*), ifnull(sum(ending = 'void'), 0), ifnull(sum(counted), 0) from episode"
    )
    if void * 100 > episodes:
        reasons = "; ".join(void_reasons(store))
        yield f"{void:,} of {episodes:,} episodes are void, above 1 %: {reasons}"
    elif not counted:
        why = "the run has no episode" if not episodes else "no event landed in any episode"
        yield f"nothing was evaluated: {why}"


def _raised_always(store: Store) -> Iterator[str]:
    names = contender_names(store)
    query = (
        "select contender, count(*), min(note) from episode where ending <> 'void' group by contender "
        "having min(ending = 'error' and note <> '') = 1 order by contender"
    )
    for contender, episodes, note in list(store.rows(query)):
        often = "its only episode" if episodes == 1 else f"all of its {episodes:,} episodes"
        yield f"{names[contender]} failed by itself in {often}: {note}"
