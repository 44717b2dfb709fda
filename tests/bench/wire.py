"""The wire's throughput: the server with a raw client and with each SDK, as ratios in one run."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from typing import Any

from evalkit.core.requests import Request
from evalkit.core.tasks import Offered
from evalkit.models.clients import Opening, connect
from evalkit.scenarios.loader import load_text
from evalkit.scoring.arena import Arena
from evalkit.wire.codecs import CODECS
from evalkit.wire.dialects import Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server

TALKS = """
scenario: bench-wire
family: bench
task: {prompt: Say something., done_when: Never.}
world: {kind: items, items: [one]}
model:
  - repeat: {times: forever, do: [{say: Four words of text.}]}
"""


def episode() -> WireEpisode:
    """An episode whose model never stops talking."""
    (loaded,) = load_text(TALKS)
    return WireEpisode(Arena(loaded, Offered()).stage(0))


def rate(work: Callable[[], None], times: int) -> float:
    """Calls per second of wall time, the best of three rounds."""
    best = 0.0
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(times):
            work()
        best = max(best, times / (time.perf_counter() - start))
    return best


def raw_rate(server: Server, dialect: Dialect, *, streamed: bool, times: int = 200) -> float:
    """Requests per second by a bare socket that reads an answer and asks again."""
    path = server.url(server.add(episode())).split("/", 3)[3] + CODECS[dialect].path
    said: dict[str, Any] = {"messages": [{"role": "user", "content": "go"}], "input": "go", "max_tokens": 9}
    # A number makes each body another one: a repeated request would wait for news of its answer.
    number = 1_000_000
    body = json.dumps({"model": "m", "stream": streamed, "metadata": {"n": str(number)}, **said}).encode()
    head = f"POST /{path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def ask() -> None:
            nonlocal number
            number += 1
            raw.sendall(head + body.replace(b"1000000", str(number).encode()))
            data = b""
            while True:
                data += raw.recv(65536)
                top, found, rest = data.partition(b"\r\n\r\n")
                if found and (rest.endswith(b"0\r\n\r\n") if streamed else len(rest) >= _length(top)):
                    return

        return rate(ask, times)


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return int(next(line for line in lines if line.startswith(b"content-length")).split(b":")[1])


def sdk_rate(server: Server, dialect: Dialect, *, streamed: bool, times: int = 60) -> float:
    """Requests per second by the real SDK, each a new ask of the same conversation."""
    model = connect(dialect, server.url(server.add(episode())), Opening("Talk.", "go"), streamed=streamed)
    limit = 4096

    def ask() -> None:
        nonlocal limit
        limit += 1
        kind = model.ask(Request(limit=limit)).turn.kind
        if kind != "content":
            raise RuntimeError(f"the server answered with {kind}")

    return rate(ask, times)


def measure() -> dict[str, float]:
    """Requests per second by dialect, mode and client."""
    found: dict[str, float] = {}
    with Server() as server:
        for dialect in CODECS:
            for streamed in (False, True):
                mode = "streamed" if streamed else "whole"
                found[f"{dialect} {mode} raw"] = raw_rate(server, dialect, streamed=streamed)
                found[f"{dialect} {mode} sdk"] = sdk_rate(server, dialect, streamed=streamed)
    return found


def markdown(rates: dict[str, float]) -> list[str]:
    """The rates, and each SDK's as a share of the raw client's."""
    lines = [
        "Requests per second of wall time to the local server, best of three rounds.",
        "",
        "| dialect | raw client | SDK | SDK / raw |",
        "| --- | ---: | ---: | ---: |",
    ]
    for name in [key.removesuffix(" raw") for key in rates if key.endswith(" raw")]:
        raw, sdk = rates[f"{name} raw"], rates[f"{name} sdk"]
        lines.append(f"| {name} | {raw:,.0f} | {sdk:,.0f} | {sdk / raw:.2f} |")
    return lines
