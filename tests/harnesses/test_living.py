"""Frameworks that live what happens to a run: the user's words, kills, approvals, compactions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from evalkit.cli.harnesses import EVENTS
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.pinned_environment import set_up
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import (
    contract_of,
    run_foreign,
    runner_of,
    server_for_harnesses,
    why_not_expressible,
)

pytestmark = pytest.mark.harness

FRAMEWORKS = ("openai-agents", "pydantic-ai", "langgraph", "vercel-ai", "google-adk", "claude-agent-sdk")
#: What takes words only behind an ending.
DEAF = ("google-adk",)
#: What closes an open call after a kill, with a result that says that its outcome is unknown, or finds no
#: trace of it, by what it had written by then.
CLOSES = ("claude-agent-sdk",)
WORDS = ("a-message-after-the-ending", "words-during-a-turn")
KILLS = ("killed-before-a-call", "killed-at-a-request")
APPROVALS = ("one-allowed-and-one-refused", "killed-as-it-waits")


@cache
def happening() -> dict[str, Scenario]:
    return {scenario.name: scenario for scenario in load_file(EVENTS)}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with server_for_harnesses() as running:
        yield running


def lived(server: Any, name: str, *scenarios: str) -> dict[str, Episode]:
    """What became of each event, in one resident process as far as it is not killed."""
    harness = find_harness(name)
    contract, runner = contract_of(harness), runner_of(harness, set_up(harness, print))
    try:
        assert [why_not_expressible(happening()[each], harness) for each in scenarios] == [None] * len(
            scenarios
        )
        return {
            each: run_foreign(Arena(happening()[each], contract.offered), 0, contract, runner, server)[0]
            for each in scenarios
        }
    finally:
        runner.close()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_words_are_heard_and_a_killed_run_goes_on(server: Any, name: str) -> None:
    variant = "langgraph" if name == "langgraph" else f"{name}:session"
    words = WORDS[:1] if name in DEAF else WORDS
    for scenario, episode in lived(server, variant, *words, *KILLS).items():
        if name in CLOSES and scenario in KILLS:
            # Once, or lost and said, by what was written when the kill came: never twice.
            assert episode.duplicate_effects == 0, episode
            continue
        assert (episode.not_exercised, episode.undelivered_words) == (False, 0), (scenario, episode)
        assert (episode.outcome, episode.correct) == ("done/complete", True), (scenario, episode)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_each_decision_is_for_its_own_call_also_after_a_kill(server: Any, name: str) -> None:
    for scenario, episode in lived(server, f"{name}:approval", *APPROVALS).items():
        assert episode.unapproved_calls == 0, (scenario, episode)
        if name in CLOSES and scenario == "killed-as-it-waits":
            # It goes on with or without asking again; that it had asked when it was killed is certain.
            assert not episode.not_exercised, (scenario, episode)
            continue
        assert (episode.not_exercised, episode.unasked_calls) == (False, 0), (scenario, episode)
        assert episode.outcome == "done/complete", (scenario, episode)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_compaction_lands_and_the_work_goes_on(server: Any, name: str) -> None:
    (episode,) = lived(server, f"{name}:compaction", "a-compaction").values()
    assert (episode.outcome, episode.correct, episode.not_exercised) == ("done/complete", True, False)
