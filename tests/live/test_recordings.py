"""Recordings of one's own: kept at each exchange, found again, and told in lines where they miss."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from evalkit.cli import main
from evalkit.models.cassettes import Origin, Tape
from evalkit.wire.codecs import decode_stream
from tests.helpers import document
from tests.live.provider import Provider


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "dummy-key-for-tests")
    text = yaml.safe_dump(document([{"say": "no script"}], scenario="mine"), sort_keys=False)
    (tmp_path / "mine.yaml").write_text(text)


def call(*words: str) -> Result:
    return CliRunner().invoke(main, list(words), catch_exceptions=False)


def record(provider: Provider, *words: str) -> Result:
    return call(
        *("run", "mine.yaml", "-s", "silence", "--no-charts", "--model", "anthropic:m", "--record", "tapes"),
        *("--base-url", provider.url, "--max-tokens", "1000000", "--out", "out", *words),
    )


@pytest.mark.long
def test_a_scenario_of_ones_own_is_found_again_without_its_name() -> None:
    with Provider() as provider:
        assert record(provider).exit_code == 0
    noted = json.loads(Path("tapes/cassettes.json").read_text())
    assert noted["sources"]["mine"][0] == "../mine.yaml"
    assert call("cassettes", "check", "tapes").exit_code == 0
    assert call("run", "--replay", "tapes", "--no-charts", "--out", "again").exit_code == 0
    Path("mine.yaml").rename("moved.yaml")
    result = call("run", "--replay", "tapes", "--no-charts", "--out", "third")
    assert result.exit_code == 2
    assert "there is no tapes/../mine.yaml; name its file" in result.output
    assert call("run", "moved.yaml", "--replay", "tapes", "--no-charts", "--out", "third").exit_code == 0


def test_recordings_of_another_model_are_not_mixed_in() -> None:
    with Provider() as provider:
        assert record(provider).exit_code == 0
        result = record(provider, "--model", "openai-chat:m", "--out", "other")
    assert result.exit_code == 2
    assert "holds recordings with model anthropic:m, not openai-chat:m" in result.output


def test_show_tells_a_miss_in_lines() -> None:
    with Provider() as provider:
        assert record(provider).exit_code == 0
    tape = Path("tapes/mine.json")
    kept = json.loads(tape.read_text())
    kept["interactions"] = kept["interactions"][:2]
    tape.write_text(json.dumps(kept))
    result = call("run", "--replay", "tapes", "--no-charts", "--out", "again")
    assert result.exit_code == 1
    assert (
        "no evaluation: 1 of 1 episodes are void, above 1 %: Missed: replay miss: nearest in" in result.output
    )
    shown = call("show", "again", "0")
    assert shown.exit_code == 0
    assert "replay miss: nearest in mine.json" in shown.output
    assert "Traceback" not in shown.output


def test_a_void_episode_is_played_again_by_resume() -> None:
    with Provider() as provider:
        assert record(provider).exit_code == 0
    tape = Path("tapes/mine.json")
    whole = tape.read_text()
    kept = json.loads(whole)
    tape.write_text(json.dumps({**kept, "interactions": kept["interactions"][:2]}))
    assert call("run", "--replay", "tapes", "--no-charts", "--out", "again").exit_code == 1
    tape.write_text(whole)
    result = call("run", "--resume", "again", "--no-charts")
    assert result.exit_code == 0, result.output
    assert "1 void played again" in result.output
    assert json.loads(Path("again/summary.json").read_text())["run"]["void"] == 0


@pytest.mark.long
def test_a_recording_that_was_killed_goes_on_with_what_it_had() -> None:
    with Provider() as provider:
        assert record(provider).exit_code == 0
        asked = provider.asked
        # As a kill leaves it: no cassette yet, each exchange on a line beside it, the last one torn.
        tape = Path("tapes/mine.json")
        kept = json.loads(tape.read_text())
        lines = [json.dumps({"version": 1, "interactions": [each]}) for each in kept["interactions"]]
        Path("tapes/.mine.json.part").write_text("\n".join(lines[:2]) + "\n" + lines[2][:50])
        tape.unlink()
        assert record(provider, "--out", "again").exit_code == 0
        assert provider.asked == asked + len(lines) - 2
    assert not Path("tapes/.mine.json.part").exists()
    origin = Origin("anthropic:m", "anthropic", False, False, "a test", "2026-12-01")
    assert len(Tape(tape, record=False, origin=origin)) == len(lines)


EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 3}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Done."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
    {"type": "message_stop"},
]


@pytest.mark.parametrize(("events", "native"), [(6, "end_turn"), (5, "end_turn"), (4, "cut_no_end")])
def test_a_stream_is_complete_with_its_message_delta(events: int, native: str) -> None:
    answer = decode_stream("anthropic", EVENTS[:events])
    assert answer.turn.native == native


def stream(events: int, *, breaks: bool) -> Any:
    """A provider's body: some events, and then an end that is none."""
    body = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in EVENTS[:events]).encode()
    length = len(body) + (10 if breaks else 0)
    return 200, {"content-type": "text/event-stream", "content-length": str(length)}, body


@pytest.mark.parametrize(
    ("events", "breaks", "ending"),
    [(6, False, "done"), (5, False, "done"), (6, True, "done"), (5, True, "error")],
)
def test_a_connection_that_breaks_after_the_whole_message_is_no_fault(
    events: int, breaks: bool, ending: str
) -> None:
    from evalkit.core.requests import Request
    from evalkit.models.clients import Opening, connect

    class Broken(Provider):
        async def _exchange(self, reader: Any, writer: Any) -> bool:
            await reader.readuntil(b"\r\n\r\n")
            _, headers, body = stream(events, breaks=breaks)
            said = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            writer.write(f"HTTP/1.1 200 OK\r\n{said}\r\n".encode() + body)
            await writer.drain()
            return False

    with Broken() as provider:
        model = connect("anthropic", provider.url, Opening("", "Go."), streamed=True)
        turn = model.ask(Request()).turn
    assert ("error" if turn.kind == "failed" else "done") == ending
