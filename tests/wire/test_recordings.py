"""Recordings of real providers are read to the stop reasons their manifest states.

They are looked for in the folder that EVALKIT_RECORDINGS names, or beside the repository. Small synthetic
equivalents of their shapes stand below and need no folder.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalkit.core.turns import Call, ServerCall, Text, Thinking
from evalkit.wire.answers import Answer
from evalkit.wire.codecs import CODECS, decode_stream
from evalkit.wire.dialects import Dialect

_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "real" / "cassettes"
FOLDER = Path(os.environ.get("EVALKIT_RECORDINGS", _BESIDE))
MANIFEST = FOLDER / "MANIFEST.jsonl"
DIALECTS: dict[str, Dialect] = {
    "anthropic-messages": "anthropic",
    "openai-responses": "responses",
    "chat-completions": "chat",
}
#: What each API's own label is read as.
READ = {
    "stop_reason=end_turn": "end_turn",
    "stop_reason=tool_use": "tool_use",
    "stop_reason=max_tokens": "max_tokens",
    "stop_reason=pause_turn": "pause_turn",
    "stop_reason=refusal": "refusal",
    "stop_reason=stop_sequence": "stop_sequence",
    "finish_reason=stop": "end_turn",
    "finish_reason=length": "max_tokens",
    "finish_reason=tool_calls": "tool_use",
    "finish_reason=function_call": "tool_use",
    "finish_reason=content_filter": "refusal",
    "status=incomplete/max_output_tokens": "max_tokens",
    "status=complete": "unknown",
}


def bodies(path: Path) -> Iterator[tuple[str, Any]]:
    """The address and body of each answer in a recording of any of the formats."""
    text = path.read_text(encoding="utf-8")
    if path.name.endswith(".chunks.txt"):
        yield "", "\n".join(f"data: {line}\n" for line in text.splitlines() if line.strip())
        return
    value = json.loads(text) if path.suffix == ".json" else yaml.load(text, yaml.CSafeLoader)
    if "http_interactions" in value:
        for one in value["http_interactions"]:
            yield one["request"]["uri"], one["response"]["body"]
    elif "interactions" in value:
        for one in value["interactions"]:
            response = one["response"]
            yield one["request"]["uri"], response.get("parsed_body", response.get("body"))
    elif "response" in value and "request" in value:
        yield value["request"]["url"], value["response"]["body"]
    else:
        yield "", value


def plain(body: Any) -> Any:
    """A body as JSON, or as the text of a stream."""
    if isinstance(body, dict) and body.get("base64_string"):
        body = base64.b64decode(body["base64_string"])
    elif isinstance(body, dict) and set(body) <= {"string", "encoding"}:
        body = body.get("string")
    if isinstance(body, bytes):
        body = gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body
        body = body.decode("utf-8", "replace")
    if isinstance(body, str):
        try:
            return json.loads(body)
        except ValueError:
            return body
    return body


def dialect_of(uri: str, body: Any, only: list[str]) -> Dialect | None:
    for part, dialect in (
        ("/messages", "anthropic"),
        ("/responses", "responses"),
        ("/chat/completions", "chat"),
    ):
        if part in uri:
            return dialect  # type: ignore[return-value]
    known = [DIALECTS[name] for name in only if name in DIALECTS]
    return known[0] if not uri and known else None


def events(text: str) -> list[dict[str, Any]]:
    """The data of a stream's events."""
    found = []
    for line in text.splitlines():
        if line.startswith("data:"):
            data = line[5:].strip()
            if data.startswith("{"):
                found.append(json.loads(data))
    return found


def answers(entry: dict[str, Any]) -> list[tuple[Dialect, Answer]]:
    """All answers of a recording, read."""
    found: list[tuple[Dialect, Answer]] = []
    for uri, raw in bodies(FOLDER / entry["file"]):
        body = plain(raw)
        dialect = dialect_of(uri, body, entry["api"])
        if dialect is None or not body:
            continue
        if isinstance(body, str):
            found.append((dialect, decode_stream(dialect, events(body))))
        elif isinstance(body, dict):
            found.append((dialect, CODECS[dialect].decode(body)))
    return found


def stated(entry: dict[str, Any]) -> tuple[Counter[str], Counter[str]]:
    """The stop reasons and the errors that the manifest states for dialects that are spoken here."""
    stops: Counter[str] = Counter()
    errors: Counter[str] = Counter()
    for key, count in entry["stop_reasons"].items():
        api, _, label = key.partition(":")
        if api not in DIALECTS:
            continue
        if label.startswith("error:"):
            errors[label.removeprefix("error:")] += count
        elif label in READ:
            stops[READ[label]] += count
        elif label == "status=completed":
            stops["completed"] += count
    return stops, errors


def entries() -> list[dict[str, Any]]:
    if not MANIFEST.is_file():
        return []
    lines = MANIFEST.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


@pytest.mark.skipif(not MANIFEST.is_file(), reason="no folder of recordings here")
@pytest.mark.parametrize("entry", entries(), ids=lambda entry: entry["file"][:60])
def test_a_recording_is_read_to_its_stated_stop_reasons(entry: dict[str, Any]) -> None:
    read = answers(entry)
    stops, errors = stated(entry)
    found: Counter[str] = Counter()
    for dialect, answer in read:
        stop: str = answer.turn.stop
        # The Responses API says only `completed`; whether calls are waiting is read from the output.
        if dialect == "responses" and stop in ("end_turn", "tool_use"):
            stop = "completed"
        found[stop] += 1
    # Some providers repeat a label within a stream, and the manifest counts it each time; and a stream that
    # breaks after its label states both, but is no answer.
    broken = bool(errors) and any(entry["streaming"])
    assert set(found) - {"failed", "in_progress"} <= set(stops)
    assert set(stops) <= set(found) or broken
    if not any(entry["streaming"]):
        assert {stop: found[stop] for stop in stops} == dict(stops)
        assert found["failed"] == sum(errors.values())
    assert found["failed"] >= bool(errors)
    assert read or not any(api in DIALECTS for api in entry["api"])


# Synthetic equivalents of the recorded shapes

SEARCH = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [{"type": "web_search_result", "title": "A page", "url": "https://example.invalid/a"}],
}


def test_a_paused_turn_with_a_search_that_found_something() -> None:
    body = {
        "id": "msg_1",
        "type": "message",
        "content": [
            {"type": "text", "text": "Looking."},
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "a"}},
            SEARCH,
            {"type": "server_tool_use", "id": "srvtoolu_2", "name": "web_search", "input": {"query": "b"}},
        ],
        "stop_reason": "pause_turn",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 5},
    }
    answer = CODECS["anthropic"].decode(body)
    assert answer.turn.content == (
        Text("Looking."),
        ServerCall("srvtoolu_1", "web_search", "A page"),
        ServerCall("srvtoolu_2", "web_search"),
    )
    assert (answer.turn.kind, answer.input_tokens, answer.output_tokens) == ("pause", 7, 5)


def test_a_refusal_without_details_and_one_with_fields_nobody_knows() -> None:
    for details, category in ((None, None), ({"type": "refusal", "category": "cyber", "new": 1}, "cyber")):
        body = {"id": "m", "content": [], "stop_reason": "refusal", "stop_details": details, "novelty": {}}
        assert CODECS["anthropic"].decode(body).turn.category == category


def test_a_responses_stream_that_fails_on_the_way() -> None:
    stream = [
        {
            "type": "response.created",
            "sequence_number": 0,
            "response": {"id": "resp_1", "status": "in_progress"},
        },
        {
            "type": "error",
            "sequence_number": 1,
            "error": {"type": "insufficient_quota", "code": "insufficient_quota"},
        },
    ]
    answer = decode_stream("responses", stream)
    assert (answer.turn.stop, answer.error) == ("failed", "insufficient_quota")
    ended = {
        "type": "response.failed",
        "response": {"id": "r", "status": "failed", "error": {"code": "server_error"}},
    }
    answer = decode_stream("responses", [stream[0], ended])
    assert (answer.turn.stop, answer.error) == ("failed", "server_error")


def test_reasoning_that_other_providers_put_into_a_chat_message() -> None:
    for message in (
        {"reasoning_content": "hm", "content": "So."},
        {"reasoning": "hm", "content": "So."},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                {"type": "text", "text": "So."},
            ]
        },
    ):
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}
        assert CODECS["chat"].decode(body).turn.content == (Thinking("hm"), Text("So."))


def test_an_old_function_call_and_calls_without_an_index() -> None:
    function = {"name": "f", "arguments": "{}"}
    message = {"content": None, "function_call": function}
    old = {"choices": [{"message": message, "finish_reason": "function_call"}]}
    turn = CODECS["chat"].decode(old).turn
    assert (turn.stop, turn.calls) == ("tool_use", (Call("", "f", "{}"),))
    delta = {"tool_calls": [{"id": "a", "function": function}]}
    chunk = {"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}
    assert decode_stream("chat", [chunk]).turn.calls == (Call("a", "f", "{}"),)


def test_a_number_as_an_error_code_and_an_error_inside_a_stream() -> None:
    assert CODECS["chat"].decode({"error": {"code": 429, "message": "later"}}).error == "429"
    chunk = {"choices": [{"delta": {"content": "a"}, "finish_reason": "length"}]}
    answer = decode_stream("chat", [chunk, {"error": {"code": 400, "message": "no"}}])
    assert (answer.turn.kind, answer.error) == ("failed", "400")
