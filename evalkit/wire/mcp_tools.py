"""The world's tools by MCP over streamable HTTP, with the official ``mcp`` package, loaded when first asked.

Requests are stateless and answered as JSON; one MCP server serves all episodes, told apart by their URL.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from evalkit.extras import missing
from evalkit.wire.connection import HttpRequest
from evalkit.wire.episode import WireEpisode
from evalkit.wire.replies import Reply, json_reply
from evalkit.wire.tools import definitions

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

#: Does something with the episode of a token, in turn with its other requests.
Turns = Callable[[str, Callable[[WireEpisode], Any]], Awaitable[Any]]
_TOKEN = "evalkit.token"
_MISSING = str(missing("the tools by MCP", "mcp"))


class McpTools:
    """The MCP side of the server. It costs nothing until a client asks."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._manager: StreamableHTTPSessionManager | None = None
        self._running: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._stop = asyncio.Event()

    async def answer(self, request: HttpRequest, token: str) -> Reply:
        """Answer a request of an MCP client for the tools of an episode."""
        if request.method != "POST":
            # Nothing is sent that was not asked for: no stream to open, no session to end.
            return Reply(405, (("allow", "POST"),), said="mcp: no stream")
        try:
            async with self._starting:
                if self._manager is None:
                    await self._start()
        except ImportError:
            return json_reply({"error": _MISSING}, status=501, said="mcp is not installed")
        assert self._manager is not None
        return await _bridge(self._manager, request, token)

    async def close(self) -> None:
        """End the MCP side."""
        self._stop.set()
        if self._running is not None:
            await self._running

    async def _start(self) -> None:
        from mcp.server.lowlevel.server import Server
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        server: Server[Any] = Server("evalkit", on_list_tools=self._list, on_call_tool=self._call)
        manager = StreamableHTTPSessionManager(server, json_response=True, stateless=True)
        ready = asyncio.Event()

        async def run() -> None:
            async with manager.run():
                ready.set()
                await self._stop.wait()

        self._running = asyncio.create_task(run())
        await ready.wait()
        self._manager = manager

    async def _list(self, context: Any, params: Any) -> Any:
        from mcp_types import ListToolsResult, Tool

        offered = await self._turns(context.request.scope[_TOKEN], definitions)
        tools = [
            Tool(name=name, description=description, input_schema=schema)
            for name, description, schema in offered
        ]
        return ListToolsResult(tools=tools)

    async def _call(self, context: Any, params: Any) -> Any:
        from mcp_types import CallToolResult, TextContent

        def run(episode: WireEpisode) -> Any:
            return episode.run_tool(params.name, dict(params.arguments or {}))

        result = await self._turns(context.request.scope[_TOKEN], run)
        return CallToolResult(content=[TextContent(type="text", text=result.text)], is_error=result.error)


async def _bridge(manager: StreamableHTTPSessionManager, request: HttpRequest, token: str) -> Reply:
    """Pass a request on as ASGI, and take the answer back whole."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "root_path": "",
        "headers": [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers.items()
        ],
        "server": None,
        "client": None,
        _TOKEN: token,
    }
    asked = False
    status = 500
    headers: tuple[tuple[str, str], ...] = ()
    body = bytearray()

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if asked:
            await asyncio.Event().wait()
        asked = True
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Any) -> None:
        nonlocal status, headers
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = tuple(
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in message["headers"]
                if name.lower() != b"content-length"
            )
        elif message["type"] == "http.response.body":
            body.extend(message.get("body", b""))

    await manager.handle_request(scope, receive, send)
    return Reply(status, headers, bytes(body), said="mcp")
