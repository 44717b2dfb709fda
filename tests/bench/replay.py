"""Replay in calls per second through a real SDK: evalkit's cassettes against vcrpy's own default set-up."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

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


def main() -> None:
    """Print the table."""
    print(f"{'calls':>6}{'evalkit':>12}{'vcrpy':>12}{'vcrpy, body':>14}{'evalkit / vcrpy':>18}")
    for calls in LENGTHS:
        found = rates(calls)
        print(
            f"{calls:>6}{found['evalkit']:>12,.0f}{found['vcrpy']:>12,.0f}{found['vcrpy, body']:>14,.0f}"
            f"{found['evalkit'] / found['vcrpy']:>18.1f}"
        )


if __name__ == "__main__":
    main()
