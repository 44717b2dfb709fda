"""The HTTP transport of one recorded or replayed episode."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from evalkit.models.cassettes import BROKE, CHUNKS, Playing

_BEFORE = "before_headers"
#: The status under which an answer that never came is kept.
_NO_STATUS = 599


@lru_cache(maxsize=1)
def transport_class() -> Any:
    """The transport's class; made when it is first needed, since the SDKs' HTTP library is loaded for it."""
    import httpx2
    from vcr.stubs.httpx_stubs import _vcr_handle_request

    class Chunks(httpx2.SyncByteStream):
        """A body in the chunks in which it came, and broken off where it broke off."""

        def __init__(self, chunks: list[bytes], broke: str) -> None:
            self._chunks = chunks
            self._broke = broke

        def __iter__(self) -> Iterator[bytes]:
            yield from self._chunks
            if self._broke:
                raise httpx2.RemoteProtocolError(self._broke)

    class Recorder(httpx2.BaseTransport):
        """Plays what is on the tape; the rest is asked of ``inner`` and kept, or without one refused."""

        def __init__(self, playing: Playing, inner: Any | None) -> None:
            self._playing = playing
            self._inner = inner

        def handle_request(self, request: Any) -> Any:
            response = _vcr_handle_request(self._playing, Recorder._ask, self, request, httpx2)
            return _as_it_came(response)

        def _ask(self, request: Any) -> Any:
            if self._inner is None:
                raise httpx2.ConnectError("replay never opens a connection")
            chunks: list[bytes] = []
            try:
                response = self._inner.handle_request(request)
            except httpx2.TransportError as error:
                headers = {BROKE: f"{_BEFORE}: {error}"}
                return httpx2.Response(_NO_STATUS, headers=headers, stream=Chunks([], ""), request=request)
            broke = ""
            try:
                chunks.extend(response.stream)
            except httpx2.TransportError as error:
                broke = str(error) or type(error).__name__
            response.stream.close()
            body = httpx2.Response(
                response.status_code, headers=response.headers, content=b"".join(chunks)
            ).content
            kept = {
                name: value
                for name, value in response.headers.items()
                if name not in ("content-encoding", "content-length", "transfer-encoding")
            }
            if body == b"".join(chunks):
                kept[CHUNKS] = ",".join(str(len(chunk)) for chunk in chunks)
            if broke:
                kept[BROKE] = broke
            return httpx2.Response(
                response.status_code, headers=kept, stream=Chunks([body], ""), request=request
            )

        def close(self) -> None:
            if self._inner is not None:
                self._inner.close()

    def _as_it_came(response: Any) -> Any:
        broke = response.headers.get(BROKE, "")
        if response.status_code == _NO_STATUS and broke.startswith(_BEFORE):
            raise httpx2.RemoteProtocolError(broke.removeprefix(f"{_BEFORE}: "))
        body = b"".join(response.stream)
        headers = [pair for pair in response.headers.multi_items() if pair[0] not in (CHUNKS, BROKE)]
        chunks = _split(body, response.headers.get(CHUNKS, ""))
        return httpx2.Response(response.status_code, headers=headers, stream=Chunks(chunks, broke))

    return Recorder


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
