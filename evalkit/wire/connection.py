"""One HTTP/1.1 connection: requests read, answers written down to how they break. asyncio and h11."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import h11
import msgspec

from evalkit.wire.replies import Reply, json_reply

#: The largest request body that is read, and the largest head.
MAX_BODY = 32 * 1024 * 1024
MAX_HEAD = 64 * 1024
_READ = 256 * 1024


class HttpRequest(msgspec.Struct, frozen=True):
    """A request as it came. ``target`` is path and query; header names are lower case."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


class Answered(msgspec.Struct, frozen=True):
    """An answer, and whom to tell whether it arrived."""

    reply: Reply
    arrived: Callable[[int], None] | None = None
    lost: Callable[[int], None] | None = None


Handler = Callable[[HttpRequest], Awaitable[Answered]]


class Connection:
    """Serves one client until it leaves, or an answer breaks the connection."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, max_body: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._max_body = max_body
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD)
        self._last: Answered | None = None
        #: The client closed its side before the last answer was written.
        self._unread = False

    async def serve(self) -> None:
        """Answer requests one after the other."""
        try:
            while await self._one():
                pass
            self._look_back()
        except (ConnectionError, TimeoutError):
            self._tell_lost()
        except h11.RemoteProtocolError:
            pass
        finally:
            self._writer.close()

    async def _one(self) -> bool:
        request = await self._request()
        if request is None:
            return False
        if isinstance(request, Reply):
            await self._write(request)
            return False
        self._last = None
        answered = await self._handler(request)
        self._last = answered
        if not await self._write(answered.reply):
            return False
        self._unread = self._reader.at_eof()
        if answered.arrived is not None and not self._unread:
            answered.arrived(answered.reply.turn)
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def _look_back(self) -> None:
        """Find out whether a client that closed had gone before the last answer reached it."""
        own = self._writer.get_extra_info("socket")
        # A peer that is gone answers what is written to it with a reset, which its own end of file hides.
        if self._unread or own is None or own.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._tell_lost()

    def _tell_lost(self) -> None:
        last = self._last
        if last is not None and last.lost is not None:
            last.lost(last.reply.turn)

    # Reading

    async def _request(self) -> HttpRequest | Reply | None:
        """The next request; a refusal of one that is too large; None where the client is gone."""
        head = await self._event()
        if not isinstance(head, h11.Request):
            return None
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        length = headers.get("content-length", "0")
        if not length.isdigit() or not self._fits(int(length)):
            return _too_large(self._max_body)
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
        body = bytearray()
        while True:
            event = await self._event()
            if isinstance(event, h11.Data):
                body += event.data
                if not self._fits(len(body)):
                    return _too_large(self._max_body)
            elif isinstance(event, h11.EndOfMessage):
                method = head.method.decode("ascii")
                return HttpRequest(method, head.target.decode("ascii"), headers, bytes(body))
            else:
                return None

    def _fits(self, size: int) -> bool:
        """Whether a body of so many bytes is taken, told beforehand or come in pieces."""
        return size <= self._max_body

    async def _event(self) -> object:
        while True:
            event = self._http.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._http.receive_data(await self._reader.read(_READ))

    # Writing

    async def _write(self, reply: Reply) -> bool:
        """Write an answer; False where the connection is over with it."""
        if reply.cut == "before_headers":
            return False
        whole = reply.stream is None
        length = (("content-length", str(len(reply.body))),) if whole else ()
        head = h11.Response(status_code=reply.status, headers=[*reply.headers, *length])
        data = [self._http.send(head)]
        for part in (reply.body,) if reply.stream is None else reply.stream:
            if whole and reply.cut is not None:
                # Half of a body of which the whole was announced; of a silent one nothing.
                part = part[: len(part) // 2] if reply.cut == "mid" else b""
            data.append(self._http.send(h11.Data(data=part)))
        if reply.cut is None:
            data.append(self._http.send(h11.EndOfMessage()))
        self._writer.write(b"".join(sent for sent in data if sent))
        await self._writer.drain()
        if reply.cut == "stall":
            await self._silence(reply.stall_s)
        return reply.cut is None

    async def _silence(self, seconds: float) -> None:
        """Say nothing until the client gives up or the time has passed."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._reader.read(1), seconds)


def _too_large(limit: int) -> Reply:
    error = {"type": "request_too_large", "message": f"The request body is larger than {limit} bytes."}
    return json_reply({"type": "error", "error": error}, status=413, said="too large")
