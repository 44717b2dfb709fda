"""Transcripts for the report: of each scenario that somebody failed, every strategy on the same seeds.

Scripted episodes are played again, foreign ones read from their record. Equal turns and equal answers of
harnesses are kept once, so that nineteen strategies on one scenario cost little more than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalkit.containment.workers import in_order
from evalkit.core.tasks import Offered
from evalkit.harnesses.episode_record import Exchange
from evalkit.media.players import Recorded, replayer
from evalkit.models.cassettes import CassetteError, Missed
from evalkit.reports.page.cases import FLAG_BITS, Case
from evalkit.reports.transcript import Step, observe_worker, replay
from evalkit.runs.foreign_records import read_trace
from evalkit.runs.plan import Plan, PlanError, Recipe, plan_from
from evalkit.runs.store import Store
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.reasons import first_harm
from evalkit.stats.causes import told_once

#: A text in a transcript is cut after so many characters.
LONGEST = 4000
#: Seeds of a scenario that are shown: enough for its cases, and no more.
SEEDS = 4

Wanted = tuple[int, tuple[int, ...]]


class Scene(msgspec.Struct, frozen=True):
    """One scenario: what it is, its task, its number of items, and for ``contender:seed`` an episode.

    ``turns`` are [stop, native, claim, blocks, results, events before], ``answers`` [action, says, verdict,
    met, settled, held], each once. An episode's ``steps`` are [number, turn, answer] by place.
    """

    scenario: int
    summary: str
    prompt: str
    items: int
    turns: list[Any]
    answers: list[Any]
    episodes: dict[str, dict[str, Any]]


def wanted_scenes(cases: Iterable[Case], contenders: int, budget: int) -> list[Wanted]:
    """(scenario, seeds) of the scenes that cover the most cases within a budget of episodes."""
    by_scenario: dict[int, list[Case]] = {}
    for case in cases:
        by_scenario.setdefault(case.scenario, []).append(case)
    wanted: list[Wanted] = []
    for scenario, mine in by_scenario.items():
        seeds = _seeds(mine)
        budget -= len(seeds) * contenders
        if budget < 0:
            break
        wanted.append((scenario, seeds))
    return wanted


def _seeds(cases: list[Case]) -> tuple[int, ...]:
    """Few seeds in which as many cases as possible occur: the most useful one first."""
    open_ = list(cases)
    chosen: list[int] = []
    while open_ and len(chosen) < SEEDS:
        counts: dict[int, int] = {}
        for case in open_:
            for seed in case.seeds:
                counts[seed] = counts.get(seed, 0) + 1
        best = min(counts, key=lambda seed: (-counts[seed], seed))
        chosen.append(best)
        open_ = [case for case in open_ if best not in case.seeds]
    return tuple(sorted(chosen))


def scenes(store: Store, wanted: Sequence[Wanted], contenders: set[int], workers: int = 1) -> Iterator[Scene]:
    """The scenes in order. What cannot be played again and was not kept is left out of its scene."""
    stored = _stored(store, wanted, contenders)
    jobs = [(scenario, stored.get(scenario, [])) for scenario, _ in wanted]
    stage = (_plan(store), store.recipe, store.folder)
    yield from in_order(_scene, jobs, workers if len(jobs) > 1 else 1, _prepare, stage)


def _plan(store: Store) -> Plan | None:
    """The plan to play episodes again; None for what does not load any more, or was live and not recorded."""
    medium = store.recipe.medium
    if medium.live and not (medium.record or medium.replay):
        return None
    try:
        return plan_from(store.recipe)
    except (PlanError, ValueError):
        return None


class _Row(msgspec.Struct, frozen=True):
    """What the store has of an episode."""

    contender: int
    seed: int
    cell: int
    outcome: str
    native: str
    correct: bool
    turns: int
    tokens: int
    flags: int
    causes: str
    note: str
    why: str


def _stored(store: Store, wanted: Sequence[Wanted], contenders: set[int]) -> dict[int, list[_Row]]:
    base = store.base
    base.execute("drop table if exists temp.wanted")
    base.execute("create temp table wanted (scenario, seed, primary key (scenario, seed)) without rowid")
    base.executemany("insert into wanted values (?, ?)", [(s, seed) for s, seeds in wanted for seed in seeds])
    query = (
        f"select scenario, contender, seed, cell, ending || '/' || truth, native, correct, turns, tokens, "
        f"{FLAG_BITS}, causes, note, why from episode join wanted using (scenario, seed) "
        "where counted order by cell"
    )
    found: dict[int, list[_Row]] = {}
    for scenario, contender, seed, cell, outcome, native, correct, *rest in store.rows(query):
        if contender in contenders:
            row = _Row(contender, seed, cell, outcome, native, bool(correct), *rest)
            found.setdefault(scenario, []).append(row)
    return found


_stage: tuple[Plan | None, Recipe, Path] | None = None
_recorded: Recorded | None = None


def _prepare(plan: Plan | None, recipe: Recipe, folder: Path) -> None:
    global _stage, _recorded
    _stage = (plan, recipe, folder)
    _recorded = replayer(recipe.medium)


def _scene(job: tuple[int, list[_Row]]) -> Scene:
    scenario, rows = job
    assert _stage is not None
    plan, recipe, folder = _stage
    pool = _Pool()
    arenas: dict[Offered, Arena] = {}
    episodes: dict[str, dict[str, Any]] = {}
    played = plan.scenarios[scenario] if plan is not None else None
    items = len(played.world.items) if played is not None else 0
    for row in rows:
        steps, complete, note, harm = None, 0, row.note, 0
        left: tuple[str, ...] = ()
        if recipe.contenders[row.contender].foreign:
            kept = read_trace(folder, row.cell)
            if kept is not None:
                steps, complete, left = pool.steps(kept.exchanges), _complete_at(kept.exchanges), kept.open
                if kept.wrong is not None:
                    said, harm = kept.wrong.said, kept.wrong.turn
                    note = f"{note}; {said}" if note else said
        elif plan is not None and played is not None:
            strategy = plan.strategies[row.contender]
            if strategy.offers not in arenas:
                arenas[strategy.offers] = Arena(played, strategy.offers)
            if recipe.contenders[row.contender].durable:
                exchanges, episode = observe_worker(played, strategy, row.seed, arenas[strategy.offers])
                found = first_harm(episode.correct, episode.findings)
                note = _changed(note, episode, row)
                steps, complete = pool.steps(exchanges), _complete_at(exchanges)
                episodes[f"{row.contender}:{row.seed}"] = _episode(
                    row, steps, complete, note, episode.open_items, found.turn if found else 0
                )
                continue
            try:
                played_again = replay(played, strategy, row.seed, arenas[strategy.offers], _recorded)
            except (CassetteError, Missed, OSError):
                if _recorded is None:
                    raise
                # Recordings may have been taken away since: the rest of the report does not depend on them.
                continue
            steps, complete, left = (
                pool.steps(played_again.steps),
                played_again.complete_at,
                played_again.episode.open_items,
            )
            note = _changed(note, played_again.episode, row)
            wrong = first_harm(played_again.episode.correct, played_again.episode.findings)
            harm = wrong.turn if wrong is not None else 0
        if steps is not None:
            episodes[f"{row.contender}:{row.seed}"] = _episode(row, steps, complete, note, left, harm)
    summary, prompt = (played.summary, _cut(played.task.prompt)) if played is not None else ("", "")
    return Scene(scenario, summary, prompt, items, pool.turns, pool.answers, episodes)


def _changed(note: str, episode: Episode, row: _Row) -> str:
    """The note, and what is to be said where an episode played again is another."""
    if episode.outcome == row.outcome:
        return note
    changed = f"played again it is {episode.outcome}: evalkit or the strategy has changed"
    return f"{note}; {changed}" if note else changed


def _episode(
    row: _Row, steps: list[list[int]], complete: int, note: str, left: tuple[str, ...], harm: int
) -> dict[str, Any]:
    return {
        "cell": row.cell,
        "outcome": row.outcome,
        "native": row.native,
        "correct": row.correct,
        "turns": row.turns,
        "tokens": row.tokens,
        "flags": row.flags,
        "causes": told_once(row.causes.split("\n")) if row.causes else [],
        "note": note,
        "why": row.why,
        "complete": complete,
        "open": left,
        "harm": 0 if row.correct else harm,
        "steps": steps,
    }


def _complete_at(steps: Iterable[Exchange]) -> int:
    return next((step.number for step in steps if step.held), 0)


class _Pool:
    """Keeps each turn and each answer once."""

    def __init__(self) -> None:
        self.turns: list[Any] = []
        self.answers: list[Any] = []
        self._places: dict[bytes, int] = {}

    def steps(self, steps: Iterable[Step | Exchange]) -> list[list[int]]:
        """[number, turn, answer] of each step."""
        return [
            [step.number, self._keep(self.turns, _turn(step)), self._keep(self.answers, _answer(step))]
            for step in steps
        ]

    def _keep(self, values: list[Any], value: list[Any]) -> int:
        key = (b"t" if values is self.turns else b"a") + msgspec.json.encode(value)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = len(values)
            values.append(value)
        return place


def _turn(step: Step | Exchange) -> list[Any]:
    native = step.native if step.native not in (None, step.stop) else 0
    blocks = [[block["kind"], _cut(block["text"])] for block in step.blocks]
    results = [[_cut(result["text"]), int(bool(result["error"]))] for result in step.results]
    by = getattr(step, "by", "")
    before = [*step.before, f"of the child agent {by}"] if by else step.before
    return [step.stop, native, step.claim, blocks, results, [_cut(event) for event in before]]


def _answer(step: Step | Exchange) -> list[Any]:
    """An exchange of a foreign harness tells no verdict: what it did is all that is known."""
    verdict, met = (step.verdict, step.met) if isinstance(step, Step) else ("", None)
    return [
        step.action,
        _cut(step.says),
        _cut(verdict),
        None if met is None else int(met),
        step.settled,
        int(step.held),
    ]


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} … ({len(text) - LONGEST:,} more characters)"
