"""Frameworks for Python and Node on small suites. Each is set up on first use."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from typing import Any

import pytest

from evalkit.harnesses.find import SHIPPED, find_harness
from evalkit.harnesses.pinned_environment import set_up
from evalkit.scenarios.loader import load_file
from evalkit.scenarios.scenario import Scenario
from evalkit.scenarios.suites import load_suites
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses

pytestmark = pytest.mark.harness

FRAMEWORKS = (
    "anthropic-loop",
    "anthropic-runner",
    "openai-runner",
    "openai-agents",
    "langchain",
    "pydantic-ai",
    "smolagents",
    "vercel-ai",
)

#: For each of the others a behaviour that tells it apart: how it ends, and its own signal for that.
APART = {
    "ag2": ("paused", "done/complete", "end_turn"),
    "agent-framework": ("call-under-end-label", "error/reachable", "*.ResponseInvalidatedException"),
    "agno": ("call-under-end-label", "done/reachable", "COMPLETED"),
    "codex": ("stream-cut", "done/complete", "turn.completed"),
    "crewai": ("never-done", "limit/stuck", "*.ToolExecutionFailedError"),
    "deepagents": ("call-under-end-label", "done/complete", "end_turn"),
    "haystack": ("cut-in-text", "error/reachable", "length"),
    "langchain-node": ("never-done", "limit/stuck", "GraphRecursionError"),
    "langgraph-prebuilt": ("tool-label-without-call", "done/reachable", "tool_use"),
    "llama-index": ("thirty-readings", "limit/reachable", "max iterations"),
    "mastra": ("unknown-label", "done/complete", "stop"),
    "opencode": ("refusal", "error/reachable", "error"),
    "strands": ("cut-in-text", "error/reachable", "*.MaxTokensReachedException"),
}


#: Those that are set up in seconds.
LIGHT = ("ag2", "agent-framework", "strands")


#: Variants that hold the end against what was listed.
HELD = (
    "pydantic-ai:validator",
    "langchain:after_agent",
    "ag2:ask",
    "agent-framework:loop",
    "agno:session",
    "codex:stop_hook",
    "crewai:guardrail",
    "deepagents:after_agent",
    "haystack:on_exit",
    "langchain-node:after_agent",
    "langgraph-prebuilt:graph",
    "llama-index:context",
    "mastra:complete",
    "opencode:session",
    "strands:goal",
)


def _heavy(name: str) -> Any:
    """A name, marked where its environment is large."""
    light = name.partition(":")[0] in (*LIGHT, *FRAMEWORKS)
    return pytest.param(name, marks=() if light else pytest.mark.league)


@cache
def behaviours() -> dict[str, Scenario]:
    more = load_suites(("child-does-all-of-it",))
    return {scenario.name: scenario for scenario in [*load_file(SHIPPED / "behaviours.yaml"), *more]}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with server_for_harnesses() as running:
        yield running


def play(server: Any, name: str, *scenarios: str) -> dict[str, Episode]:
    harness = find_harness(name)
    contract, runner = contract_of(harness), runner_of(harness, set_up(harness, print))
    try:
        return {
            scenario: run_foreign(
                Arena(behaviours()[scenario], contract.offered), 0, contract, runner, server
            )[0]
            for scenario in scenarios
        }
    finally:
        runner.close()


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_plain_task_is_done_and_a_progress_report_ends_it_too_early(server: Any, name: str) -> None:
    episodes = play(server, name, "plain-finish", "progress-report", "overloaded-twice")
    assert episodes["plain-finish"].outcome == "done/complete"
    assert episodes["overloaded-twice"].outcome == "done/complete"
    # Of these, only smolagents has a tool of its own for the end.
    wanted = "done/complete" if name == "smolagents" else "done/reachable"
    assert episodes["progress-report"].outcome == wanted
    assert not any(episode.protocol_faults for episode in episodes.values())


def _skip_where_it_is_not(name: str) -> None:
    if name.startswith("opencode") and (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("its program is for Linux on x64")


@pytest.mark.parametrize("name", [_heavy(name) for name in APART])
def test_a_plain_task_is_done_and_what_tells_it_apart_is_so(server: Any, name: str) -> None:
    behaviour, outcome, native = APART[name]
    _skip_where_it_is_not(name)
    episodes = play(server, name, "plain-finish", behaviour)
    assert episodes["plain-finish"].outcome == "done/complete"
    assert episodes[behaviour].outcome == outcome
    assert fnmatch(episodes[behaviour].native, native)


@pytest.mark.parametrize("name", [_heavy(name) for name in HELD])
def test_a_rule_for_the_end_keeps_it_going(server: Any, name: str) -> None:
    _skip_where_it_is_not(name)
    episodes = play(server, name, "progress-report", "claims-done-too-early")
    assert {episode.outcome for episode in episodes.values()} == {"done/complete"}


@pytest.mark.parametrize(
    "name", [_heavy(each) for each in ("langchain", "deepagents", "haystack", "langgraph-prebuilt")]
)
def test_an_argument_called_name_reaches_the_tool(server: Any, name: str) -> None:
    # A program whose function for a tool has a name of its own took it for that.
    (episode,) = play(server, name, "child-does-all-of-it").values()
    assert (episode.outcome, episode.orphan_calls) == ("done/complete", 0)


def test_native_limits_are_kept_and_mapped(server: Any) -> None:
    limits = {"openai-agents": "agents.exceptions.MaxTurnsExceeded", "vercel-ai": "tool-calls"}
    for name, native in limits.items():
        (episode,) = play(server, name, "never-done").values()
        assert (episode.outcome, episode.native) == ("limit/stuck", native)
