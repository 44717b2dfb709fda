"""Replay in calls per second through a real SDK: evalkit's cassettes against vcrpy's own default set-up."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from evalkit.core.requests import Request
from evalkit.models.cassettes import Origin, Playing, Tape
from evalkit.models.clients import Opening, SdkModel, connect
from evalkit.models.transport import transport_class
from evalkit.wire.server import Server
from tests.bench.wire import episode

#: Calls of a conversation that grows by an answer and a question each.
LENGTHS = (10, 30, 100)
ROUNDS = 3
ORIGIN = Origin("scripted", "anthropic", False, True, "a benchmark", "")


def converse(model: SdkModel, calls: int) -> None:
    """So many turns of one conversation. RuntimeError where an answer is none."""
    turn = None
    for number in range(calls):
        turn = model.ask(Request(echo=turn, text=f"Go on, {number}." if turn else None)).turn
        if turn.kind != "content":
            raise RuntimeError(f"call {number}: the answer is {turn.kind}")


def opened(url: str, http: object = None) -> SdkModel:
    """A new conversation."""
    return connect("anthropic", url, Opening("Talk.", "go"), streamed=False, http=http)


def with_tape(file: Path, url: str, calls: int, *, record: bool) -> None:
    """The conversation through evalkit's transport."""
    import httpx2

    tape = Tape(file, record=record, origin=ORIGIN)
    inner = httpx2.HTTPTransport() if record else None
    with httpx2.Client(transport=transport_class()(Playing(tape), inner)) as http:
        converse(opened(url, http), calls)
    tape.save()


def with_vcrpy(file: Path, url: str, calls: int, *, record: bool, match: tuple[str, ...] = ()) -> None:
    """The conversation under vcrpy's patch, which by default looks at no body."""
    import httpx2
    import vcr

    settings = {"match_on": match} if match else {}
    recorder = vcr.VCR(record_mode="once" if record else "none", **settings)
    with recorder.use_cassette(str(file)), httpx2.Client() as http:
        converse(opened(url, http), calls)


def with_bodies(file: Path, url: str, calls: int, *, record: bool) -> None:
    """The same, told to match bodies, as a conversation needs it."""
    with_vcrpy(file, url, calls, record=record, match=("method", "host", "port", "path", "body"))


SET_UPS = {"evalkit": with_tape, "vcrpy": with_vcrpy, "vcrpy, body": with_bodies}


def rates(calls: int) -> dict[str, float]:
    """Calls per second of wall time by set-up, loading the cassette included; the best of three rounds."""
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as temp, Server() as server:
        for name, play in SET_UPS.items():
            file = Path(temp, name)
            url = server.url(server.add(episode()))
            play(file, url, calls, record=True)
            for _ in range(ROUNDS):
                start = time.perf_counter()
                play(file, url, calls, record=False)
                found[name] = max(found.get(name, 0.0), calls / (time.perf_counter() - start))
    return found


def measure() -> dict[str, dict[str, float]]:
    """Calls per second by length of the conversation and set-up."""
    return {str(calls): rates(calls) for calls in LENGTHS}


def markdown(lengths: dict[str, Any]) -> list[str]:
    """The table."""
    lines = [
        "Replay of a conversation that grows with each call, through the SDK, loading the cassette included: "
        "calls per second of wall time, best of three rounds. By default vcrpy looks at no body and gives "
        "any request the next answer; matching bodies it compares each with all that are recorded.",
        "",
        "| calls | evalkit | vcrpy's default | vcrpy matching bodies | evalkit / default |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for calls, found in lengths.items():
        shown = " | ".join(f"{found[name]:,.0f}" for name in SET_UPS)
        lines.append(f"| {calls} | {shown} | {found['evalkit'] / found['vcrpy']:.1f} |")
    return lines
