"""The SDKs' own tool runners against the server: threads that the server holds, bounded Responses loops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import beta_tool
from openai.lib.responses_tool_runner import RegisteredFunction, ResponsesToolRunner, ToolRunnerError

from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from tests.wire.wire import WORK, episode


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


DONE = [
    {"call": "list_items"},
    {"work": "rest"},
    {"say": "All is done.", "claim": "done", "phase": "final_answer"},
]


def tools(played: WireEpisode) -> list[Any]:
    @beta_tool
    def list_items() -> str:
        """List the items."""
        return played.run_tool("list_items", {}).text

    @beta_tool
    def do_item(item: str) -> str:
        """Do an item.

        Args:
            item: its id
        """
        return played.run_tool("do_item", {"item": item}).text

    return [list_items, do_item]


def holds(played: WireEpisode) -> bool:
    return bool(played.script.world.holds())  # type: ignore[attr-defined]


@pytest.mark.parametrize("extra", [{}, {"thread": False}])
def test_the_anthropic_runner_plays_an_episode(server: Server, extra: dict[str, Any]) -> None:
    played = episode(DONE)
    client = anthropic.Anthropic(base_url=server.url(server.add(played)), api_key="none", max_retries=0)
    runner = client.beta.messages.tool_runner(
        model="m",
        max_tokens=100,
        tools=tools(played),
        messages=[{"role": "user", "content": "go"}],
        stream=False,
        **extra,
    )
    stops = [message.stop_reason for message in runner]
    assert stops == ["tool_use"] * 4 + ["end_turn"]
    assert (holds(played), played.seen.amnesia, played.seen.refused) == (True, 0, 0)


def test_a_thread_is_nudged_and_goes_on(server: Server) -> None:
    played = episode(WORK)
    client = anthropic.Anthropic(base_url=server.url(server.add(played)), api_key="none", max_retries=0)
    thread = client.beta.messages.thread(
        model="m", max_tokens=100, tools=tools(played), messages=[{"role": "user", "content": "go"}]
    )
    for _ in thread.tool_runner(max_iterations=20):
        pass
    assert not holds(played)
    thread.append({"role": "user", "content": "Items remain."})
    for _ in thread.tool_runner(max_iterations=20):
        pass
    assert (holds(played), played.seen.amnesia, played.turns) == (True, 0, 6)


def test_a_paused_thread_is_resumed_by_the_runner(server: Server) -> None:
    model = [{"pause": {"text": "Searching."}, "until": "resent"}, {"pause": {}, "until": "resent"}, *DONE]
    played = episode(model)
    client = anthropic.Anthropic(base_url=server.url(server.add(played)), api_key="none", max_retries=0)
    runner = client.beta.messages.tool_runner(
        model="m",
        max_tokens=100,
        tools=tools(played),
        messages=[{"role": "user", "content": "go"}],
        stream=False,
    )
    assert [message.stop_reason for message in runner][:2] == ["pause_turn", "pause_turn"]
    assert holds(played)


def test_a_lost_thread_is_replayed_by_the_sdk(server: Server) -> None:
    played = episode(DONE)
    client = anthropic.Anthropic(base_url=server.url(server.add(played)), api_key="none", max_retries=0)
    thread = client.beta.messages.thread(
        model="m", max_tokens=100, tools=tools(played), messages=[{"role": "user", "content": "go"}]
    )
    reply = thread.send()
    result: Any = {"type": "tool_result", "tool_use_id": reply.content[0].id, "content": "ok"}  # type: ignore[union-attr]
    played._unstored.add(reply.id)
    again = thread.send({"role": "user", "content": [result]})
    assert again.content[0].name == "do_item"  # type: ignore[union-attr]
    assert (played.seen.amnesia, played.seen.dialect_faults) == (0, ["thread_not_found"])


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_the_responses_runner_plays_an_episode(server: Server, stream: bool) -> None:
    played = episode(DONE)
    result, _ = run_responses(server, played, stream=stream)
    assert (result.status, result.output_text, holds(played)) == ("completed", "All is done.", True)
    assert (played.seen.amnesia, played.seen.refused) == (0, 0)


def test_commentary_is_no_final_answer_to_the_responses_runner(server: Server) -> None:
    played = episode([{"call": "list_items"}, {"say": "One of three.", "phase": "commentary"}])
    with pytest.raises(ToolRunnerError, match="no completed final message"):
        run_responses(server, played)


def test_an_incomplete_response_ends_the_responses_runner(server: Server) -> None:
    played = episode([{"call": "list_items"}, {"truncate": "call"}])
    with pytest.raises(ToolRunnerError, match="did not complete"):
        run_responses(server, played)
    assert played.script.trace is not None
    assert not played.script.trace.ran_cut_off_call


def run_responses(server: Server, played: WireEpisode, *, stream: bool = False) -> tuple[Any, Any]:
    client = openai.OpenAI(base_url=f"{server.url(server.add(played))}/v1", api_key="none", max_retries=0)
    functions = []
    for name, arguments in (("list_items", {}), ("do_item", {"item": {"type": "string"}})):
        tool: Any = {
            "type": "function",
            "name": name,
            "description": name,
            "strict": True,
            "parameters": {
                "type": "object",
                "properties": arguments,
                "required": list(arguments),
                "additionalProperties": False,
            },
        }
        functions.append(
            RegisteredFunction(tool, lambda given, name=name: played.run_tool(name, dict(given)).text)
        )
    runner = ResponsesToolRunner(functions=functions)
    request: Any = {"model": "m", "input": [{"role": "user", "content": "go"}]}
    more: Any = {"stream": True} if stream else {}
    return runner.run(client, request, **more), runner
