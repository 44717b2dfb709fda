"""The shipped scenarios of the inbox, repo and files worlds, and outcomes worked out by hand."""

from __future__ import annotations

from functools import lru_cache

import pytest

from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.soundness import check_scenario
from tests.helpers import play


@lru_cache(maxsize=1)
def library() -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in load_suites()}


def of_kind(*kinds: str) -> list[str]:
    return [name for name, scenario in library().items() if scenario.world.kind in kinds]


@pytest.mark.parametrize("name", of_kind("inbox", "files"))
def test_each_is_sound(name: str) -> None:
    assert check_scenario(library()[name], library()) == []


def test_there_are_some_of_each_and_twins_among_them() -> None:
    for kind in ("inbox", "repo", "files"):
        assert len(of_kind(kind)) >= 6
        assert any(library()[name].twin for name in of_kind(kind))


#: scenario: strategy: outcome and turns. Turns are counted by hand along the script.
OUTCOMES = {
    # list, three threads, the summary: 5; three threads, the second summary: 9.
    "inbox-three-of-six-untouched": {
        "silence": ("done/reachable", 5),
        "finish_tool": ("done/reachable", 5),
        "validated_finish": ("done/complete", 9),
        "infinite_nudge": ("limit/reachable", 40),
        "gate": ("done/complete", 9),
    },
    # The tool's word is all that a recorded success is; reading again and the checks see that it is lost.
    "inbox-label-lost": {
        "verifier_evidence": ("done/reachable", 6),
        "certificate": ("done/complete", 8),
        "acceptance": ("done/complete", 8),
    },
    # Complete at turn 7. The gate's checklist lacks the tick: it names the thread, the second reply goes out,
    # and after three nudges more a person is called.
    "inbox-reply-sent-twice": {
        "acceptance": ("done/complete", 7),
        "checks_first": ("done/complete", 7),
        "finish_tool": ("done/spoiled", 9),
        "gate": ("escalated/spoiled", 12),
    },
    "inbox-skips-with-reason": {"validated_finish": ("done/complete", 6), "gate": ("done/complete", 6)},
    "inbox-skips-not-allowed": {"validated_finish": ("partial/reachable", 6), "gate": ("done/complete", 9)},
    "inbox-half-that-checks-see": {
        "acceptance": ("done/reachable", 4),
        "checks_first": ("done/reachable", 4),
        "verifier_evidence": ("done/complete", 7),
    },
    # Without checks the acceptance condition is met at once.
    "files-notes-without-checks": {
        "acceptance": ("done/reachable", 4),
        "verifier_evidence": ("done/complete", 6),
    },
    # The failed command is on record, the tick is not the work.
    "files-build-command-fails": {
        "checklist": ("done/reachable", 4),
        "verifier_evidence": ("done/complete", 6),
    },
    "files-rows-half-imported": {"silence": ("done/reachable", 4), "certificate": ("done/complete", 7)},
    # Every test is green and on record; only the checks look at the commit.
    "repo-green-not-committed": {
        "silence": ("done/reachable", 5),
        "verifier_evidence": ("done/reachable", 5),
        "certificate": ("done/reachable", 5),
        "acceptance": ("done/complete", 7),
        "gate": ("done/complete", 7),
    },
    # No run of the tests is on record, so whoever asks for evidence goes on.
    "repo-unrun-tests-red": {
        "checklist": ("done/reachable", 5),
        "verifier_evidence": ("done/complete", 8),
        "acceptance": ("done/complete", 8),
    },
}


@pytest.mark.long
@pytest.mark.parametrize("name", OUTCOMES)
def test_outcomes_are_those_worked_out_by_hand(name: str) -> None:
    found = {}
    for strategy in OUTCOMES[name]:
        episode = play(library()[name], strategy)
        found[strategy] = (episode.outcome, episode.turns)
    assert found == OUTCOMES[name]
