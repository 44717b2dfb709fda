"""Run folders made row by row through the store, for tests of what is computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from evalkit.runs.plan import Contender, Entry, Recipe
from evalkit.runs.store import COLUMNS, Store


def entry(
    name: str, family: str = "made", checks: str = "full", twin: str | None = None, population: bool = False
) -> Entry:
    """A scenario of a made run; its digest is its name's."""
    return Entry(name, family, checks, f"digest of {name}", f"{name}.yaml", twin, population)


def recipe(
    entries: Sequence[Entry],
    strategies: Sequence[str],
    *,
    seeds: int = 1,
    baseline: str | None = None,
    evalkit: str = "0",
) -> Recipe:
    """The recipe of a made run."""
    return Recipe(
        evalkit=evalkit,
        seeds=seeds,
        entries=tuple(entries),
        contenders=tuple(Contender(name) for name in strategies),
        sources={},
        strategies={name: f"made {name}" for name in strategies},
        baseline=baseline or strategies[0],
        not_expressible={},
    )


def row(cell: int, scenario: int, contender: int, seed: int = 0, **values: Any) -> tuple[Any, ...]:
    """An episode: done and complete, in 4 turns, unless ``values`` say otherwise."""
    known: dict[str, Any] = dict.fromkeys(COLUMNS, 0)
    known.update(
        cell=cell,
        scenario=scenario,
        contender=contender,
        seed=seed,
        ending="done",
        native="done_when",
        truth="complete",
        turns=4,
        tokens=100,
        output_tokens=20,
        unclosed=0,
        honest_report=None,
        tp=1,
        correct=1,
        twin=1,
        causes="",
        stops="tool_use:3 end_turn:1",
        note="",
        why="",
        final_stop="end_turn",
    )
    unknown = values.keys() - known.keys()
    assert not unknown, unknown
    known.update(values)
    return tuple(known[name] for name in COLUMNS)


#: What a false "done" looks like.
FALSE_DONE = {
    "truth": "reachable",
    "premature_stop": 1,
    "silent": 1,
    "false_done": 1,
    "unclosed": None,
    "tp": 0,
    "fp": 1,
    "correct": 0,
    "twin": 0,
    "causes": "say (claim partial), turn 6",
    "open_stops": 1,
}


def made_run(folder: Path, made: Recipe, rows: Iterable[tuple[Any, ...]]) -> Store:
    """A run folder with these episodes."""
    store = Store.create(folder, made)
    store.add(rows)
    return store


def grid(
    folder: Path, right: Sequence[Sequence[int | Sequence[int]]], *, strategies: Sequence[str], **options: Any
) -> Store:
    """A run by ``right[scenario][contender]``: whether it was correct, each seed; else false done."""
    entries = options.pop("entries", None) or [entry(f"s{number:03}") for number in range(len(right))]
    rows, cell, most = [], 0, 1
    for scenario, line in enumerate(right):
        for contender, results in enumerate(line):
            for seed, correct in enumerate([results] if isinstance(results, int) else results):
                rows.append(row(cell, scenario, contender, seed, **({} if correct else FALSE_DONE)))
                cell += 1
                most = max(most, seed + 1)
    return made_run(folder, recipe(entries, strategies, seeds=most, **options), rows)
