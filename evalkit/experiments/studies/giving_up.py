"""Giving up in time: turns saved on work that nobody can finish, against work that is lost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from evalkit.experiments.studies.episodes import Played, played
from evalkit.experiments.studies.stuck import twins_of
from evalkit.experiments.studies.study import Study, Table, percent
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.episode import Episode
from evalkit.strategies import conditions as c
from evalkit.strategies.strategy import Strategy

#: Percent lost beyond which a strategy is in the table alone, and not on the chart.
MOST_LOST = 35.0
#: Model turns of the one that gives up only there, and of all others.
TURNS = 40


class Published(msgspec.Struct, frozen=True):
    """What a published early stop claims: percent of cost saved, and percent of success lost."""

    name: str
    source: str
    saves: tuple[float, float]
    loses: tuple[float, float]
    of: str


PUBLISHED = (
    Published("AgentStop", "arXiv 2605.15206", (15.0, 20.0), (0.0, 5.0), "wasted energy, utility"),
    Published(
        "BAGEN", "arXiv 2606.00198", (28.0, 64.0), (1.6, 4.2), "tokens of failed runs, points of success"
    ),
    Published("EET", "arXiv 2601.05777", (19.0, 55.0), (0.0, 0.2), "all cost, points of the resolution rate"),
)


def families() -> dict[str, list[Strategy]]:
    """By family, from the most patient to the least: strategies that differ in why they give up alone."""
    base = Strategy(done_when=c.acceptance(), nudges=None, resends=None, cut_offs=None, max_turns=TURNS)

    def named(name: str, **changes: Any) -> Strategy:
        return base.but(name=name, **changes)

    return {
        "none": [named("only its limit")],
        "nudges": [named(f"nudges {n}", nudges=n) for n in (8, 5, 3, 2, 1)],
        "no progress": [
            named(f"no progress {n}", give_up_when=c.no_progress(n)) for n in (16, 12, 8, 6, 4, 3, 2)
        ],
        "same failure": [named(f"same failure {n}", give_up_when=c.same_failure(n)) for n in (5, 3, 2, 1)],
        "budget": [
            named(f"budget {n:g} an item", give_up_when=c.out_of_budget(TURNS, n)) for n in (1, 4, 8, 12, 16)
        ],
        "together": [
            named(
                f"nudges {n} or no progress {turns}",
                nudges=n,
                give_up_when=c.no_progress(turns) | c.same_failure(failures),
            )
            for n, turns, failures in ((5, 12, 5), (3, 8, 3), (2, 6, 2))
        ],
    }


def giving_up_study(scenarios: Sequence[Scenario], workers: int = 1) -> Study:
    """The study: each strategy on scenarios with full checks that have a masked twin, and on the twins."""
    full = [scenario for scenario in scenarios if scenario.task.checks == "full"]
    twins = twins_of(full, workers)
    names = {twin.scenario.source.removeprefix("masked twin of ") for twin in twins}
    originals = [scenario for scenario in full if scenario.name in names]
    strategies = [strategy for family in families().values() for strategy in family]
    stuck = played([twin.scenario for twin in twins], strategies, workers)
    works = played(originals, strategies, workers)
    rows = [
        {"family": family, **_measured(strategy.name, stuck, works)}
        for family, every in families().items()
        for strategy in every
    ]
    return _told(len(twins), rows)


def _measured(name: str, stuck: Played, works: Played) -> dict[str, Any]:
    """Shares of what the one that gives up only at its limit spends and completes."""
    patient = families()["none"][0].name
    spent, all_stuck = (sum(each[who].turns for each in stuck.values()) for who in (name, patient))
    done, all_done = (_completed(works, who) for who in (name, patient))
    turns, all_turns = (
        sum(each[who].turns for found in (stuck, works) for each in found.values()) for who in (name, patient)
    )
    return {
        "strategy": name,
        "saved": 1 - spent / all_stuck,
        "saved_of_all": 1 - turns / all_turns,
        "lost": len(all_done - done) / len(all_done),
        "premature": sum(bool(each[name].premature_stop) for each in works.values()),
        "works": len(works),
        "turns": spent / len(stuck),
    }


def _completed(works: Played, name: str) -> set[int]:
    def complete(episode: Episode) -> bool:
        return episode.outcome == "done/complete"

    return {place for place, episodes in works.items() if complete(episodes[name])}


def _told(twins: int, rows: list[dict[str, Any]]) -> Study:
    words = (
        f"Strategies that end by the task's full checks and differ in why they give up alone, on {twins} "
        f"masked twins (nobody can finish them) and on their {rows[0]['works']} originals (the ideal "
        "driver finishes them). *Saved* is the share of the turns that the one which gives up only at "
        f"its limit of {TURNS} turns spends on the twins; *lost* the share of the originals that it "
        "completes and this one does not; *premature stops* are counted on the originals. The chart leaves "
        f"out what loses more than {MOST_LOST:g} %: who loses so much is no choice.",
        "The marks are what published early stops claim, each of its own base: "
        + "; ".join(
            f"{each.name} ({each.source}) {each.saves[0]:g} to {each.saves[1]:g} % at {each.loses[0]:g} to "
            f"{each.loses[1]:g} ({each.of})"
            for each in PUBLISHED
        )
        + ". They are measured on live models and mixed work, these on scripts of which half cannot be "
        "finished, so a mark says where a claim lies and not that one beats the other.",
    )
    heads = (
        "family",
        "strategy",
        "saved on stuck work",
        "saved of all turns",
        "lost",
        "premature stops",
        "turns on stuck work",
    )
    lines = tuple(
        (
            row["family"],
            row["strategy"],
            percent(row["saved"]),
            percent(row["saved_of_all"]),
            percent(row["lost"]),
            f"{row['premature']} of {row['works']}",
            f"{row['turns']:.1f}",
        )
        for row in rows
    )
    published = [msgspec.structs.asdict(each) for each in PUBLISHED]
    return Study(
        "giving-up",
        "Giving up in time",
        "evalkit study giving-up",
        words,
        (Table("What is saved, and what is lost", heads, lines),),
        {"twins": twins, "rows": rows, "published": published},
        "Turns saved on stuck work against work lost",
    )
