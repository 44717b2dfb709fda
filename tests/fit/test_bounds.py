"""The least and the most that recordings allow for a strategy that nobody ran on them."""

from __future__ import annotations

import pytest

from evalkit.core.tasks import Offered
from evalkit.fit.bounds import MEASURES, Row, bounds, sentence
from evalkit.fit.document import document
from evalkit.fit.grouping import Grouping
from evalkit.fit.recorded_runs import Reading, Seen, see
from evalkit.fit.verdicts import met_when_right, never_false
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode, run_episode
from evalkit.strategies import conditions as c
from evalkit.strategies.presets import PRESETS, ChecksFirst
from evalkit.transcripts.labels import Labels
from tests.fit.made import recordings
from tests.fit.test_drawn import population
from tests.transcripts.test_one_rule import recorded_talk

STRATEGIES = [
    PRESETS[name].strategy for name in ("silence", "acceptance", "gate", "verifier_claim", "checklist")
]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> list[Seen]:
    file = recordings(tmp_path_factory.mktemp("bounds"), 25, 2)
    return Reading(Grouping(), Labels(), STRATEGIES).read([file])


def _row(seen: list[Seen], strategy: str, regime: str) -> Row:
    (row,) = (r for r in bounds(seen, STRATEGIES) if (r.strategy, r.regime) == (strategy, regime))
    return row


def _dones(seen: list[Seen], *truths: str) -> int:
    return sum(one.life.exit == "done" and one.life.truth in truths for one in seen)


def test_a_strategy_that_never_parts_is_exact(seen: list[Seen]) -> None:
    """Every end that the user answered stands as a decision, so silence ends where the recorded run did."""
    row = _row(seen, "silence", "assumed")
    right = row.bounds["completed"]
    assert right.least <= _dones(seen, "right") <= right.most
    assert row.bounds["handed_over"].most == 0


def test_a_check_completes_what_was_right_and_at_most_what_was_only_left_undone(seen: list[Seen]) -> None:
    row = _row(seen, "acceptance", "assumed")
    right, undone, wrong = _dones(seen, "right"), _dones(seen, "undone"), _dones(seen, "wrong act", "both")
    assert (row.bounds["completed"].least, row.bounds["completed"].most) == (right, right + undone)
    assert (row.bounds["handed_over"].least, row.bounds["handed_over"].most) == (wrong, wrong + undone)
    assert row.bounds["false_done"].most == 0
    assert row.constructed


def test_without_assumption_nothing_is_certain_but_what_is_so_by_construction(seen: list[Seen]) -> None:
    row = _row(seen, "acceptance", "whatever comes")
    base = row.bounds["completed"].base
    assert (row.bounds["completed"].least, row.bounds["completed"].most) == (0, base)
    assert row.bounds["false_done"].most == 0


def test_an_interval_goes_from_the_least_to_the_most(seen: list[Seen]) -> None:
    for row in bounds(seen, STRATEGIES):
        for name in MEASURES[:3]:
            found = row.bounds[name]
            assert found.low is not None
            assert found.high is not None
            assert found.low <= found.least / found.base <= found.most / found.base <= found.high


def test_the_sentence_has_the_same_figures(seen: list[Seen]) -> None:
    said = sentence(seen)
    right, undone = _dones(seen, "right"), _dones(seen, "undone")
    base = _dones(seen, "right", "undone", "wrong act", "both")
    assert f"the {base} recorded dones ({right} to {right + undone})" in said
    assert f"({base - right - undone} had done something wrong)" in said


def test_what_an_intervention_then_does_lies_within_the_bounds() -> None:
    """Recorded under silence, bounded, then really run: of each life, whatever its agent does when told."""
    strategies = [
        PRESETS["acceptance"].strategy,
        PRESETS["verifier_claim"].strategy,
        PRESETS["gate"].strategy,
    ]

    held = 0
    for scenario in load_text(document(population(tasks=5, draws=1)), "p.yaml"):
        with pytest.MonkeyPatch.context() as patch:
            _, recording = recorded_talk(scenario, PRESETS["silence"].strategy, 0, patch)
        one = see(recording, strategies, lambda turn: turn.claim)
        if one.life.exit != "done":
            continue
        rows = {row.strategy: row for row in bounds([one], strategies) if row.regime == "assumed"}
        for strategy in strategies:
            ran = run_episode(Arena(scenario, Offered()), strategy, 0)
            for name, value in _measured(ran).items():
                found = rows[strategy.name].bounds[name]
                assert found.least <= value <= found.most, (
                    scenario.name,
                    strategy.name,
                    name,
                )
                held += 1
    assert held > 100


def _measured(episode: Episode) -> dict[str, float]:
    return {
        "completed": episode.outcome == "done/complete",
        "handed_over": episode.ending == "escalated",
        "false_done": bool(episode.false_done),
    }


def test_what_a_verdict_rests_on() -> None:
    checks, claim = c.acceptance(), c.verifier(sees="claim")
    assert never_false(checks & claim)
    assert not never_false(checks | claim)
    assert never_false(ChecksFirst())
    assert met_when_right(checks | claim)
    assert not met_when_right(checks & claim)
    assert met_when_right(c.silence())
