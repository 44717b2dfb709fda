"""The server: many episodes side by side, told apart by their URL. Loopback only.

An episode's base URL is ``http://127.0.0.1:PORT/e/TOKEN``; providers' paths stand behind it, the world's
tools under ``/tools`` and ``/mcp``. What a client sends as its key is neither looked at nor kept.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from evalkit.wire.connection import MAX_BODY, Answered, Connection, HttpRequest
from evalkit.wire.dialects import Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.incoming import BadRequest
from evalkit.wire.mcp_tools import McpTools
from evalkit.wire.replies import Reply, error_body, json_reply, refusal
from evalkit.wire.tools import lay_before, list_tools, run_tool

HOST = "127.0.0.1"
_BACKLOG = 1024
#: How long a repeated request waits for the news that its answer was lost.
_RESET_S = 0.001
#: How long the first of several processes that resume at once waits for the last.
_GATHERED_S = 60.0
_LOOK_S = 0.02
_DEAD = Reply(cut="before_headers", said="no answer: its sender was killed")
_PATHS: dict[str, Dialect] = {
    "/v1/messages": "anthropic",
    "/v1/responses": "responses",
    "/v1/chat/completions": "chat",
}
_COUNTS: dict[str, Dialect] = {
    "/v1/messages/count_tokens": "anthropic",
    "/v1/responses/input_tokens": "responses",
}
_RESPONSES = "/v1/responses/"
_UNVERSIONED = ("/messages", "/responses", "/chat/completions", "/models")

#: Told of each request: its episode's token, method, path behind the token, and what became of it. Headers,
#: and so keys, are not shown to it.
Log = Callable[[str, str, str, Reply], None]


class Entry(msgspec.Struct):
    """An episode on the server, and what keeps its requests one after the other."""

    episode: WireEpisode
    lock: asyncio.Lock
    #: Requests for turns that have come and are not answered.
    open: int = 0
    #: First requests of processes that resume at once.
    here: int = 0


class Server:
    """One server per process. ``with Server() as server`` runs it in a thread of its own.

    ``stall_scale`` scales the seconds of a stall, ``log`` is told of each request. ``sole``: it holds one
    episode at a time, whose base URL is the server itself, for clients whose base URL cannot change.
    """

    def __init__(
        self,
        *,
        port: int = 0,
        max_body: int = MAX_BODY,
        stall_scale: float = 1.0,
        log: Log | None = None,
        sole: bool = False,
    ) -> None:
        self.port = port
        self.sole = sole
        self.max_body = max_body
        self.stall_scale = stall_scale
        self.log = log
        self._entries: dict[str, Entry] = {}
        #: Requests for episodes that are over, or never were.
        self.strays = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._mcp = McpTools(self._on_mcp)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # Episodes

    def add(self, episode: WireEpisode) -> str:
        """Put an episode on the server; its token."""
        if self.sole and self._entries:
            raise ValueError("the server holds an episode; it takes one at a time")
        token = secrets.token_urlsafe(24)
        self._entries[token] = Entry(episode, asyncio.Lock())
        return token

    def remove(self, token: str) -> None:
        """Take an episode off the server; later requests for it find nothing."""
        self._entries.pop(token, None)

    def url(self, token: str) -> str:
        """An episode's base URL. The OpenAI SDK wants ``/v1`` behind it."""
        return f"http://{HOST}:{self.port}" + ("" if self.sole else f"/e/{token}")

    # Running

    async def start(self) -> None:
        """Listen. OSError where the port is taken."""
        self._server = await asyncio.start_server(self._client, HOST, self.port, backlog=_BACKLOG)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening, and end every connection."""
        if self._server is not None:
            self._server.close()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._mcp.close()
        if self._server is not None:
            await self._server.wait_closed()

    def __enter__(self) -> Server:
        ready = threading.Event()
        failure: list[BaseException] = []

        def run() -> None:
            loop = self._loop = asyncio.new_event_loop()
            try:
                loop.run_until_complete(self.start())
            except BaseException as error:
                failure.append(error)
                ready.set()
                loop.close()
                return
            ready.set()
            loop.run_forever()
            loop.run_until_complete(self.stop())
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

        self._thread = threading.Thread(target=run, name="evalkit-server", daemon=True)
        self._thread.start()
        ready.wait()
        if failure:
            raise failure[0]
        return self

    def __exit__(self, *_: object) -> None:
        assert self._loop is not None
        assert self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await Connection(reader, writer, self._handle, self.max_body).serve()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._tasks.discard(task)

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._tasks)

    # Requests

    async def _handle(self, request: HttpRequest) -> Answered:
        token, path, query = _split(request.target)
        if self.sole and not token:
            token = next(iter(self._entries), "")
        entry = self._entries.get(token)
        if entry is None:
            self.strays += bool(token)
            return Answered(json_reply(error_body("chat", 404, "No such episode."), status=404))
        episode = entry.episode
        if episode.lives.gathers:
            await _gathered(entry)
        life = episode.lives.count
        if path == "/user" and request.method == "GET":
            # Beside the others: a request may wait for the words to be fetched.
            said = await asyncio.to_thread(episode.fetch)
            reply = json_reply({"messages": said}, said=f"the user: {len(said)} messages")
        elif path.startswith("/mcp"):
            reply = await self._mcp.answer(request, token)
        else:
            beside = entry.open > 0
            entry.open += path in _PATHS
            try:
                async with entry.lock:
                    # What a program has sent before it was killed has waited here, and is nobody's.
                    alive = episode.lives.count == life
                    reply = await self._answer(episode, request, path, query, beside) if alive else _DEAD
            finally:
                entry.open -= path in _PATHS
        if reply.cut == "stall":
            reply = msgspec.structs.replace(reply, stall_s=reply.stall_s * self.stall_scale)
        if self.log is not None:
            self.log(token, request.method, path, reply)
        return Answered(reply, episode.delivered, episode.lost)

    async def _answer(
        self,
        episode: WireEpisode,
        request: HttpRequest,
        path: str,
        query: dict[str, list[str]],
        beside: bool,
    ) -> Reply:
        if request.body and episode.repeats(request.body):
            # Whether the last answer arrived decides what this is; a reset may be on its way.
            await asyncio.sleep(_RESET_S)
        if episode.blocking:
            return await asyncio.to_thread(_route, episode, request, path, query, beside)
        return _route(episode, request, path, query, beside)

    async def _on_mcp(self, token: str, work: Callable[[WireEpisode], Any]) -> Any:
        """Do something with an episode for a tool client, in turn with its other requests."""
        entry = self._entries[token]
        life = entry.episode.lives.count
        async with entry.lock:
            if entry.episode.lives.count != life:
                raise ConnectionError(_DEAD.said)
            if entry.episode.blocking:
                return await asyncio.to_thread(work, entry.episode)
            return work(entry.episode)


async def _gathered(entry: Entry) -> None:
    """Hold the first request of each process that resumes an episode until all others have asked or ended."""
    episode = entry.episode
    entry.here += 1
    until = time.monotonic() + _GATHERED_S
    while entry.here < episode.lives.gathers and time.monotonic() < until:
        await asyncio.sleep(_LOOK_S)
    if entry.here >= episode.lives.gathers > 0 and not episode.lives.absent:
        episode.lives.gathered = True
    episode.lives.gathers = 0


def _split(target: str) -> tuple[str, str, dict[str, list[str]]]:
    """Token, path behind it and query of a request's target."""
    parts = urlsplit(target)
    if not parts.path.startswith("/e/"):
        return "", _spelled(parts.path), parse_qs(parts.query)
    token, _, path = parts.path[3:].partition("/")
    return token, _spelled(f"/{path}"), parse_qs(parts.query)


def _spelled(path: str) -> str:
    """A path as the providers spell it: clients whose base URL is to hold the version leave it out."""
    return f"/v1{path}" if path.startswith(_UNVERSIONED) else path


def _route(
    episode: WireEpisode, request: HttpRequest, path: str, query: dict[str, list[str]], beside: bool
) -> Reply:
    dialect = _PATHS.get(path)
    if request.method == "POST":
        if dialect is not None:
            return episode.post(dialect, request.body, retried=_retried(request), beside=beside)
        if path == "/v1/responses/compact":
            return episode.compact(request.body)
        if path in _COUNTS:
            return episode.count_tokens(_COUNTS[path], request.body)
        if path.startswith(_RESPONSES) and path.endswith("/cancel"):
            return episode.cancel(path.removeprefix(_RESPONSES).removesuffix("/cancel"))
        if path == "/approval":
            return lay_before(episode, request.body)
        if path.startswith("/tools/"):
            return run_tool(episode, path.removeprefix("/tools/"), request.body)
    elif request.method == "GET":
        if path.startswith(_RESPONSES):
            streams = query.get("stream", [""])[0] == "true"
            after = query.get("starting_after", ["-1"])[0]
            whole = after.isdigit()
            name = path.removeprefix(_RESPONSES)
            return episode.retrieve(name, stream=streams, after=int(after) if whole else -1)
        if path in ("/tools", "/tools/"):
            return list_tools(episode)
        if path == "/v1/models":
            return json_reply({"object": "list", "data": [], "has_more": False}, said="models")
    if request.method == "HEAD":
        return Reply(200, said="head")
    spoken: Dialect = "anthropic" if path.startswith("/v1/messages") else "responses"
    bad = BadRequest("no_such_path", f"Unknown request: {request.method} {path}", status=404)
    return refusal(spoken, bad)


def _retried(request: HttpRequest) -> bool:
    """Whether an SDK says that it sends the request again because it has no answer."""
    count = request.headers.get("x-stainless-retry-count", "0")
    return count.isdigit() and int(count) > 0
