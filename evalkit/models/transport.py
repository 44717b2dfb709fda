"""The HTTP transports of an episode: recorded or replayed, paced and paid for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from functools import lru_cache
from typing import Any

from evalkit.models.cassettes import BROKE, CHUNKS, Playing
from evalkit.models.ledger import Purse
from evalkit.models.pacing import Pace

_BEFORE = "before_headers"
#: The status under which an answer that never came is kept.
_NO_STATUS = 599


@lru_cache(maxsize=1)
def _classes() -> Any:
    """The transports' classes; made when first needed, since the SDKs' HTTP library is loaded for them."""
    import httpx2
    from vcr.stubs.httpx_stubs import _vcr_handle_async_request, _vcr_handle_request

    class Chunks(httpx2.SyncByteStream, httpx2.AsyncByteStream):
        """A body in the chunks in which it came, and broken off where it broke off."""

        def __init__(self, chunks: list[bytes], broke: str) -> None:
            self._chunks = chunks
            self._broke = broke

        def __iter__(self) -> Iterator[bytes]:
            yield from self._chunks
            if self._broke:
                raise httpx2.RemoteProtocolError(self._broke)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self:
                yield chunk

    def never_came(request: Any, error: Exception) -> Any:
        """How an answer that never came is kept."""
        headers = {BROKE: f"{_BEFORE}: {error}"}
        return httpx2.Response(_NO_STATUS, headers=headers, stream=Chunks([], ""), request=request)

    def kept(request: Any, response: Any, chunks: list[bytes], broke: str) -> Any:
        """A response as it is kept: unpacked, with the sizes of its chunks and where it broke off."""
        packed = b"".join(chunks)
        body = httpx2.Response(response.status_code, headers=response.headers, content=packed).content
        headers = {
            name: value
            for name, value in response.headers.items()
            if name not in ("content-encoding", "content-length", "transfer-encoding")
        }
        if body == packed:
            headers[CHUNKS] = ",".join(str(len(chunk)) for chunk in chunks)
        if broke:
            headers[BROKE] = broke
        return httpx2.Response(
            response.status_code, headers=headers, stream=Chunks([body], ""), request=request
        )

    def as_it_came(response: Any, body: bytes) -> Any:
        broke = response.headers.get(BROKE, "")
        if response.status_code == _NO_STATUS and broke.startswith(_BEFORE):
            raise httpx2.RemoteProtocolError(broke.removeprefix(f"{_BEFORE}: "))
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in (CHUNKS, BROKE)]
        chunks = _split(body, response.headers.get(CHUNKS, ""))
        return httpx2.Response(response.status_code, headers=headers, stream=Chunks(chunks, broke))

    class Recorder(httpx2.BaseTransport):
        """Plays what is on the tape; the rest is asked of ``inner`` and kept, or without one refused."""

        def __init__(self, playing: Playing, inner: Any | None) -> None:
            self._playing = playing
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            response = _vcr_handle_request(self._playing, Recorder._ask, self, request, httpx2)
            return as_it_came(response, b"".join(response.stream))

        def _ask(self, request: Any) -> Any:
            if self._inner is None:
                raise httpx2.ConnectError("replay never opens a connection")
            chunks: list[bytes] = []
            try:
                response = self._inner.handle_request(request)
            except httpx2.TransportError as error:
                return never_came(request, error)
            broke = ""
            try:
                chunks.extend(response.stream)
            except httpx2.TransportError as error:
                broke = str(error) or type(error).__name__
            response.stream.close()
            return kept(request, response, chunks, broke)

        def close(self) -> None:
            if self._inner is not None:
                self._inner.close()

    class AsyncRecorder(httpx2.AsyncBaseTransport):
        """The same for an async client."""

        def __init__(self, playing: Playing, inner: Any) -> None:
            self._playing = playing
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            response = await _vcr_handle_async_request(
                self._playing, AsyncRecorder._ask, self, request, httpx2
            )
            return as_it_came(response, b"".join([part async for part in response.stream]))

        async def _ask(self, request: Any) -> Any:
            chunks: list[bytes] = []
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.TransportError as error:
                return never_came(request, error)
            broke = ""
            try:
                async for chunk in response.stream:
                    chunks.append(chunk)
            except httpx2.TransportError as error:
                broke = str(error) or type(error).__name__
            await response.stream.aclose()
            return kept(request, response, chunks, broke)

    class Paid(httpx2.AsyncBaseTransport):
        """Sets a request's worst case aside before it goes out at its turn. ``inner`` stays open."""

        def __init__(self, purse: Purse, pace: Pace, inner: Any) -> None:
            self._purse = purse
            self._pace = pace
            self._inner = inner

        async def handle_async_request(self, request: Any) -> Any:
            body = await request.aread()
            if request.method == "POST":
                self._purse.reserve(body)

            async def ask() -> Any:
                # What is sent again is read again.
                request.stream = httpx2.ByteStream(body)
                return await self._inner.handle_async_request(request)

            try:
                return await self._pace.send(ask)
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
                self._purse.unsent()
                raise

    return Recorder, AsyncRecorder, Paid


def transport_class() -> Any:
    """The transport of a recorded or replayed episode with a client that waits."""
    return _classes()[0]


def live_transport(purse: Purse, pace: Pace, inner: Any, playing: Playing | None) -> Any:
    """The transport of a live episode: paced, paid for, and recorded where it is played on a tape.

    What is on the tape costs nothing, and waits for nobody.
    """
    _, recorder, paid = _classes()
    transport = paid(purse, pace, inner)
    return recorder(playing, transport) if playing is not None else transport


def _split(body: bytes, sizes: str) -> list[bytes]:
    """A body in its recorded chunks; where cleaning changed its length, by event."""
    lengths = [int(size) for size in sizes.split(",") if size.isdigit()]
    if sum(lengths) != len(body):
        return [event + b"\n\n" for event in body.split(b"\n\n") if event] if b"\n\n" in body else [body]
    chunks, at = [], 0
    for length in lengths:
        chunks.append(body[at : at + length])
        at += length
    return chunks
