"""Repeated looks: what asking an imperfect check again after every nudge does to false dones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.containment.workers import in_order
from evalkit.experiments.studies.study import Study, Table, percent
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies.condition import Condition
from evalkit.strategies.folds import Evidence
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.verifiers import evidence_over_time, verifier

Kind: TypeAlias = Literal["independent", "persistent", "weighed"]
KINDS: tuple[Kind, ...] = ("independent", "persistent", "weighed")

#: Episodes of each line of the chart; a tenth of it for what is weighed, a fiftieth for work that gets done.
EPISODES = 100_000
#: False-pass rates of the chart, and the looks that it shows.
RATES, LOOKS = (0.05, 0.1, 0.2), 10
#: The settings of the table: false-pass rates, misses and alpha; the looks that are allowed there.
SETTINGS = tuple(product((0.05, 0.1, 0.2, 0.3, 0.4), (0.0, 0.1), (0.01, 0.05)))
ALPHA, ALLOWED = 0.05, 20
#: Episodes of one job.
_CHUNK = 5_000

#: Nothing gets done, and the model says at each look that it is.
_NEVER = """
scenario: never-done
family: studies
task: {prompt: Do it., done_when: It is done., checks: none, items: given}
limits: {}
world: {kind: items, items: [report]}
model:
  - {say: "It is done.", claim: done}
"""
#: It gets done, with two reports on the way; then the model says so at each look.
_WORKS = """
scenario: done-in-the-end
family: studies
task: {prompt: Do every part., done_when: Every part is done., checks: none}
limits: {}
world: {kind: items, items: [parser, printer, reader, writer, linker]}
model:
  - call: list_items
  - work: 2
  - {say: "Two of five are done.", claim: partial}
  - work: 2
  - {say: "Four of five are done.", claim: partial}
  - work: rest
  - {say: "All five are done.", claim: done}
"""


class Job(msgspec.Struct, frozen=True):
    """Episodes of a strategy on work that is never done, or that is in the end: seeds from ``first`` on."""

    kind: Kind
    fooled: float
    misses: float
    alpha: float
    looks: int
    works: bool
    first: int
    episodes: int


class Counts(msgspec.Struct, frozen=True):
    """What came of some episodes. ``at`` are the false dones by the number of their turns, from 1."""

    episodes: int
    false_done: int
    complete: int
    over: int
    turns: int
    at: tuple[int, ...]


def condition(kind: Kind, fooled: float, misses: float, alpha: float) -> Condition:
    """A reader of the evidence that errs, asked until it passes once; ``weighed``: with its looks weighed."""
    errors: Any = "persistent" if kind == "persistent" else "independent"
    reader = verifier(sees="evidence", misses=misses, fooled=fooled, errors=errors)
    return evidence_over_time(alpha, reader, fooled) if kind == "weighed" else reader


def strategy_of(job: Job) -> Strategy:
    """The strategy of a job: so many looks in a row, and then a person."""
    done_when = condition(job.kind, job.fooled, job.misses, job.alpha)
    return Strategy(name=job.kind, done_when=done_when, nudges=job.looks - 1, max_turns=None)


@lru_cache(maxsize=2)
def _arena(works: bool) -> Arena:
    (scenario,) = load_text(_WORKS if works else _NEVER)
    return Arena(scenario, verifier().offers)


def count(job: Job) -> Counts:
    """Play a job's episodes."""
    arena, strategy = _arena(job.works), strategy_of(job)
    at = [0] * (job.looks if not job.works else 0)
    false = complete = over = turns = 0
    for seed in range(job.first, job.first + job.episodes):
        episode: Episode = run_episode(arena, strategy, seed)
        false += episode.false_done
        complete += episode.outcome == "done/complete"
        over += episode.over_continuation
        turns += episode.turns
        if episode.false_done and at:
            at[episode.turns - 1] += 1
    return Counts(job.episodes, false, complete, over, turns, tuple(at))


def _chunks(job: Job) -> Iterator[Job]:
    for first in range(0, job.episodes, _CHUNK):
        size = min(_CHUNK, job.episodes - first)
        yield msgspec.structs.replace(job, first=first, episodes=size)


def _played(jobs: list[Job], workers: int) -> list[Counts]:
    """The counts of each job, its chunks added up."""
    chunks = [(place, chunk) for place, job in enumerate(jobs) for chunk in _chunks(job)]
    found: list[list[Counts]] = [[] for _ in jobs]
    results = in_order(count, [chunk for _, chunk in chunks], workers)
    for (place, _), counts in zip(chunks, results, strict=True):
        found[place].append(counts)
    return [_sum(parts) for parts in found]


def _sum(parts: list[Counts]) -> Counts:
    return Counts(
        episodes=sum(part.episodes for part in parts),
        false_done=sum(part.false_done for part in parts),
        complete=sum(part.complete for part in parts),
        over=sum(part.over for part in parts),
        turns=sum(part.turns for part in parts),
        at=tuple(map(sum, zip(*(part.at for part in parts), strict=True))),
    )


def expected(kind: Kind, fooled: float, alpha: float, looks: int) -> list[float]:
    """What the share of false dones by each look must be; of what is weighed, over all that looks can say."""
    if kind != "weighed":
        return [fooled if kind == "persistent" else 1 - (1 - fooled) ** look for look in range(1, looks + 1)]
    fold = Evidence(verifier(), fooled, alpha)
    states, ended, found = {(0, 0): 1.0}, 0.0, []
    for _ in range(looks):
        after: dict[tuple[int, int], float] = defaultdict(float)
        for (before, passes), share in states.items():
            for passed, chance in ((True, fooled), (False, 1 - fooled)):
                memory = fold.weigh((before, passes, True), passed)
                if passed and fold.suffices(memory):
                    ended += share * chance
                else:
                    after[memory[:2]] += share * chance
        states = after
        found.append(ended)
    return found


def looks_study(episodes: int = EPISODES, workers: int = 1) -> Study:
    """The study, with so many episodes a line; see :data:`EPISODES` for the settings of the table."""
    few, works = max(episodes // 10, 1), max(episodes // 50, 1)
    lines = [
        Job(kind, rate, 0.0, ALPHA, LOOKS, False, 0, few if kind == "weighed" else episodes)
        for rate in RATES
        for kind in KINDS
    ]
    settings = [_jobs(*setting, few, works) for setting in SETTINGS]
    # What a rate does not matter to is played once for all settings that differ in it.
    jobs = list(dict.fromkeys([*lines, *(job for four in settings for job in four)]))
    counted = dict(zip(jobs, _played(jobs, workers), strict=True))
    curves = [_curve(job, counted[job]) for job in lines]
    rows = [
        _setting(*setting, [counted[job] for job in four])
        for setting, four in zip(SETTINGS, settings, strict=True)
    ]
    return _told(episodes, few, works, curves, rows)


def _jobs(fooled: float, misses: float, alpha: float, few: int, works: int) -> list[Job]:
    """A setting's jobs: asked until it passes once and weighed, each on work never done and on work done."""
    return [
        Job("independent", fooled, 0.0, ALPHA, ALLOWED, False, 0, few),
        Job("independent", fooled, misses, ALPHA, ALLOWED, True, 0, works),
        Job("weighed", fooled, 0.0, alpha, ALLOWED, False, 0, few),
        Job("weighed", fooled, misses, alpha, ALLOWED, True, 0, works),
    ]


def _curve(job: Job, counts: Counts) -> dict[str, Any]:
    shares = [sum(counts.at[: look + 1]) / counts.episodes for look in range(job.looks)]
    must = expected(job.kind, job.fooled, job.alpha, job.looks)
    return {
        "kind": job.kind,
        "fooled": job.fooled,
        "episodes": counts.episodes,
        "false_done": shares,
        "must": must,
    }


def _setting(fooled: float, misses: float, alpha: float, found: list[Counts]) -> dict[str, Any]:
    never, works, weighed, weighed_works = found
    must = expected("weighed", fooled, alpha, ALLOWED)[-1]
    row: dict[str, Any] = {"fooled": fooled, "misses": misses, "alpha": alpha, "must": must}
    for name, stuck, done in (("first_pass", never, works), ("weighed", weighed, weighed_works)):
        row[name] = {
            "false_done": stuck.false_done / stuck.episodes,
            "turns": done.turns / done.episodes,
            "too_early": done.false_done / done.episodes,
            "complete": done.complete / done.episodes,
            "over_continuation": done.over / done.episodes,
        }
    return row


def _told(
    episodes: int, few: int, works: int, curves: list[dict[str, Any]], rows: list[dict[str, Any]]
) -> Study:
    held = sum(row["weighed"]["false_done"] <= row["alpha"] for row in rows)
    words = (
        f"A check passes unfinished work at some rate ε, and is asked again after every nudge. {episodes:,} "
        f"episodes a line ({few:,} where looks are weighed) on work that nobody can finish, under a model "
        "that says at each look that it is done.",
        "*Independent* errors are drawn anew at each look: by look k the share of false dones must be "
        "1 − (1 − ε)^k. *Persistent* ones are drawn once for a run: the share must stay at ε. "
        "`NAME@fooled=0.1` and every verifier assume the first, `NAME@fooled=0.1,errors=persistent` the "
        f"second. *Weighed* is `evidence_over_time`, alpha {percent(ALPHA, 0)}, over the independent ones; "
        "what that must be is added up over all that the looks can say.",
        f"In the settings {ALLOWED} looks in a row are allowed: {few:,} episodes each on work that cannot be "
        f"finished, {works:,} on work that can (nine turns without errors; two reports on the way are looks "
        f"too). Weighed, false dones on the first stay at or under alpha in {held} of {len(rows)} settings; "
        "what it costs on the second stands beside it. *Too early* is a false done on the way; "
        "*over-continuation*: more than three turns after the work was complete.",
    )
    return Study(
        "looks",
        "Repeated looks",
        "evalkit study looks",
        words,
        (_looks_table(curves), _settings_table(rows)),
        {"episodes": episodes, "curves": curves, "settings": rows},
        "False dones by the number of looks",
    )


def _looks_table(curves: list[dict[str, Any]]) -> Table:
    heads = ("ε", "errors", "", *(f"look {look}" for look in range(1, LOOKS + 1)))
    rows = []
    for curve in curves:
        rate = percent(curve["fooled"], 0)
        rows.append((rate, curve["kind"], "found", *(percent(share, 2) for share in curve["false_done"])))
        rows.append((rate, curve["kind"], "must be", *(percent(share, 2) for share in curve["must"])))
    return Table("False dones by look", heads, tuple(rows))


def _settings_table(rows: list[dict[str, Any]]) -> Table:
    heads = (
        "ε",
        "misses",
        "alpha",
        "false done, first pass",
        "false done, weighed",
        "must be",
        "turns, first pass",
        "turns, weighed",
        "too early, first pass",
        "too early, weighed",
        "done and complete, first pass",
        "done and complete, weighed",
        "over-continuation, weighed",
    )
    told = []
    for row in rows:
        one, other = row["first_pass"], row["weighed"]
        told.append(
            (
                percent(row["fooled"], 0),
                percent(row["misses"], 0),
                percent(row["alpha"], 0),
                percent(one["false_done"]),
                percent(other["false_done"], 2),
                percent(row["must"], 2),
                f"{one['turns']:.1f}",
                f"{other['turns']:.1f}",
                percent(one["too_early"]),
                percent(other["too_early"]),
                percent(one["complete"]),
                percent(other["complete"]),
                percent(other["over_continuation"]),
            )
        )
    return Table("Weighed over time, and its price", heads, tuple(told))
