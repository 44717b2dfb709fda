"""The world's tools over plain HTTP and over MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client

from evalkit.core.tasks import FINISH_TOOL
from evalkit.stage.tools import ToolFailed
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from evalkit.wire.tool_names import ToolNames
from tests.wire.wire import Talk, episode, stage


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def tried(server: Server, played: WireEpisode, name: str, arguments: Any) -> dict[str, Any]:
    url = server.url(server.add(played))
    answer: dict[str, Any] = httpx2.post(f"{url}/tools/{name}", json=arguments).json()
    return answer


def test_tools_are_listed_with_their_schemas(server: Server) -> None:
    played = WireEpisode(stage([{"say": "a"}]), own_tools=(FINISH_TOOL,))
    url = server.url(server.add(played))
    found = {tool["name"]: tool for tool in httpx2.get(f"{url}/tools").json()["tools"]}
    assert set(found) == {"list_items", "read_item", "do_item", "undo_item", FINISH_TOOL}
    assert found["do_item"]["input_schema"]["required"] == ["item"]


def test_a_call_of_the_last_turn_is_no_orphan_and_runs_once_as_that_call(server: Server) -> None:
    played = episode([{"call": "list_items"}, {"work": 2, "parallel": True}, {"say": "Done."}])
    talk = Talk(played)
    talk.ask()
    talk.on()
    answer = tried(server, played, "do_item", {"item": "orders"})
    assert answer == {"text": "orders: done", "error": False}
    trace = played.script.trace
    assert trace is not None
    assert trace.orphan_calls == 0
    assert tuple(played.script.ran) == (played.script.previous.turn.calls[1].id,)  # type: ignore[union-attr]
    tried(server, played, "do_item", {"item": "invoices"})
    assert trace.orphan_calls == 1


def test_scripted_replies_answer_a_call_over_http(server: Server) -> None:
    played = episode(
        [{"call": "do_item", "with": {"item": "users"}, "reply": {"text": "lost", "error": True}}]
    )
    Talk(played).ask()
    assert tried(server, played, "do_item", {"item": "users"}) == {"text": "lost", "error": True}


def test_the_harness_s_own_tools_are_only_recorded(server: Server) -> None:
    played = WireEpisode(stage([{"say": "x"}]), own_tools=(FINISH_TOOL,))
    assert tried(server, played, FINISH_TOOL, {})["text"] == "recorded"
    assert played.script.trace is not None
    assert played.script.trace.orphan_calls == 0
    # One that is not offered is a tool that nobody knows.
    assert tried(server, episode(), FINISH_TOOL, {})["text"] == f"no tool '{FINISH_TOOL}'"


@pytest.mark.parametrize("arguments", [[1], "text", None])
def test_arguments_must_be_an_object(server: Server, arguments: Any) -> None:
    assert tried(server, episode(), "do_item", arguments)["error"]


def test_an_unknown_tool_is_an_error_and_an_orphan(server: Server) -> None:
    played = episode()
    Talk(played).ask()
    assert tried(server, played, "rm", {}) == {"text": "no tool 'rm'", "error": True}
    assert played.script.trace is not None
    assert played.script.trace.orphan_calls == 1


def test_a_tool_that_raises_ends_the_episode(server: Server) -> None:
    played = episode()
    Talk(played).ask()

    def broken(tool: str, arguments: Any) -> Any:
        raise RuntimeError("the disk is gone")

    played.script.world.call = broken  # type: ignore[attr-defined]
    url = server.url(server.add(played))
    assert httpx2.post(f"{url}/tools/list_items", json={}).status_code == 500
    assert isinstance(played.failure, ToolFailed)


def test_names_of_the_harness_s_own(server: Server) -> None:
    names = ToolNames("mcp__x__", {FINISH_TOOL: "final_answer"})
    played = WireEpisode(stage([{"call": "list_items"}, {"say": "Done."}]), names=names)
    talk = Talk(played)
    assert talk.ask().turn.calls[0].tool == "mcp__x__list_items"
    assert tried(server, played, "mcp__x__list_items", {})["text"].startswith("Items: users")
    assert played.script.trace is not None
    assert played.script.trace.orphan_calls == 0
    assert talk.on().turn.text == "Done."
    assert played.seen.amnesia == 0
    assert [names.outward(FINISH_TOOL), names.inward("final_answer")] == ["final_answer", FINISH_TOOL]


# MCP


def test_tools_by_mcp(server: Server) -> None:
    played = WireEpisode(stage([{"call": "do_item", "with": {"item": "users"}}]), own_tools=(FINISH_TOOL,))
    Talk(played).ask()
    url = f"{server.url(server.add(played))}/mcp"

    async def use() -> tuple[list[str], list[Any]]:
        async with Client(url) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            calls = [("do_item", {"item": "users"}), ("do_item", {"item": "nobody"}), (FINISH_TOOL, {})]
            return names, [await client.call_tool(name, arguments) for name, arguments in calls]

    names, (done, wrong, finished) = asyncio.run(use())
    assert names == ["list_items", "read_item", "do_item", "undo_item", FINISH_TOOL]
    assert (done.content[0].text, done.is_error) == ("users: done", False)
    assert (wrong.content[0].text, wrong.is_error) == ("no item 'nobody'", True)
    assert finished.content[0].text == "recorded"
    assert played.script.trace is not None
    assert played.script.trace.orphan_calls == 1


def test_mcp_needs_the_episode_s_token_too(server: Server) -> None:
    assert httpx2.post(f"http://127.0.0.1:{server.port}/e/nobody/mcp", json={}).status_code == 404
    url = f"{server.url(server.add(episode()))}/mcp"
    assert httpx2.get(url).status_code == 405
    assert httpx2.post(url, content=b"{").status_code == 400


def test_several_mcp_clients_at_once_meet_their_own_worlds(server: Server) -> None:
    async def one(number: int) -> str:
        played = WireEpisode(stage([{"say": "a"}], world={"items": [f"thing-{number}"]}))
        async with Client(f"{server.url(server.add(played))}/mcp") as client:
            result: Any = await client.call_tool("list_items", {})
            return str(result.content[0].text)

    async def several() -> list[str]:
        return await asyncio.gather(*(one(number) for number in range(5)))

    assert asyncio.run(several()) == [f"Items: thing-{number}" for number in range(5)]
