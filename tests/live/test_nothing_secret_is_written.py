"""Plants of every kind in all that a live run meets; then all that was written is searched for them."""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evalkit.cli import main
from tests.helpers import document
from tests.live.provider import Instead, Provider
from tests.secrets.plants import PLANTS

#: Secrets with no form of their own: a key in the environment, a user and password in the model's URL.
KEY, PASSWORD = "quite-a-plain-word-as-key", "plain-pass-word"
QUERY = "abcdefgh12345678"


def told(number: int) -> str:
    """What the model says: some plants in each answer, all of them over an episode's answers."""
    kinds = [text for place, (text, _) in enumerate(PLANTS.values()) if place % 4 == number % 4]
    return "\n".join(f"Here is one: {text} ." for text in kinds)


def answer(number: int, body: dict[str, Any]) -> Instead | None:
    """A stream in pieces, a gzipped body, or an error body, all with plants."""
    if number % 9 == 5:
        error = {"type": "error", "error": {"type": "api_error", "message": told(number)}}
        return 500, {"content-type": "application/json"}, json.dumps(error).encode()
    done = sum(1 for message in body["messages"] if message["role"] == "assistant")
    content: list[dict[str, Any]] = [{"type": "text", "text": told(number)}]
    if done < 4:
        arguments = {"item": "users", "note": told(number + 1), told(number + 2)[:60]: 1}
        content.append({"type": "tool_use", "id": f"call_{done}", "name": "do_item", "input": arguments})
    made = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": "tool_use" if done < 4 else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 10},
    }
    if body.get("stream"):
        return 200, {"content-type": "text/event-stream"}, streamed(made, 7 + number)
    packed = gzip.compress(json.dumps(made).encode())
    return 200, {"content-type": "application/json", "content-encoding": "gzip"}, packed


def streamed(made: dict[str, Any], size: int) -> bytes:
    """The same in small pieces."""
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**made, "content": [], "stop_reason": None}}
    ]
    for index, block in enumerate(made["content"]):
        text = block["text"] if block["type"] == "text" else json.dumps(block["input"])
        name, kind = (
            ("text", "text_delta") if block["type"] == "text" else ("partial_json", "input_json_delta")
        )
        opened = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": opened})
        for at in range(0, len(text), size):
            delta = {"type": kind, name: text[at : at + size]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": made["stop_reason"], "stop_sequence": None}
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


def written(folder: Path) -> dict[str, str]:
    """All that stands in a folder's files, unpacked, and the names of the files."""
    found: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        if not file.is_file() or file.name == "suite.yaml":
            continue
        data = file.read_bytes()
        if file.suffix == ".gz":
            data = gzip.decompress(data)
        found[str(file.relative_to(folder))] = data.decode("utf-8", "replace")
        if file.suffix == ".sqlite":
            found[f"{file.name} as SQL"] = "\n".join(sqlite3.connect(file).iterdump())
    found["names"] = "\n".join(found)
    return found


def in_any_form(secret: str) -> set[str]:
    """A secret as JSON, HTML and a script element write it."""
    plain = json.dumps(secret)[1:-1]
    html = secret.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&#34;").replace("'", "&#39;")
    return {secret, plain, json.dumps(plain)[1:-1], html, plain.replace("&", "\\u0026")}


@pytest.mark.long
@pytest.mark.parametrize("stream", [False, True])
def test_no_plant_is_found_in_anything_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    prompt = "Do every item. Mind these: " + "\n".join(text for text, _ in PLANTS.values())
    named = document(
        [{"say": "no script"}],
        scenario="told-many-secrets",
        task={"prompt": prompt},
    )
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(named, sort_keys=False, width=10_000))
    output = []
    with Provider(instead=answer) as provider:
        url = provider.url.replace("http://", f"http://me:{PASSWORD}@") + f"/x?api_key={QUERY}"
        result = CliRunner().invoke(
            main,
            [
                *("run", "suite.yaml", "-s", "silence", "-s", "acceptance", "--model", "anthropic:m"),
                *("--base-url", url, "--max-tokens", "10000000", "--record", "tapes", "--out", "out"),
                *("--stream",) * stream,
            ],
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), result.output
        output.append(result.output)
        assert provider.asked >= 6, result.output
    for words in (
        ("show", "out", "0"),
        ("show", "out", "1"),
        ("report", "out", "--charts"),
        ("run", "--replay", "tapes", "--out", "again", "suite.yaml"),
        ("cassettes", "check", "tapes"),
        ("baseline", "out"),
    ):
        result = CliRunner().invoke(main, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), (words, result.output)
        output.append(result.output)
    found = written(tmp_path) | {"the terminal": "\n".join(output)}
    assert any(name.startswith("tapes/") for name in found)
    assert any(name.startswith("out/index.html") for name in found)
    everything = {
        **{kind: secret for kind, (_, secret) in PLANTS.items()},
        "key": KEY,
        "password of the url": PASSWORD,
        "query of the url": QUERY,
        "user and password": base64.b64encode(f"me:{PASSWORD}".encode()).decode(),
    }
    assert len(everything) >= 60
    left = {
        f"{kind} in {place}"
        for kind, secret in everything.items()
        for place, text in found.items()
        if any(form in text for form in in_any_form(secret))
    }
    assert left == set()


def test_a_scenario_with_a_secret_for_a_name_is_refused_without_saying_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    secret = "sk-ant-" + "api03-" + "0a1b2c3d4e5f" * 3
    text = yaml.safe_dump(document([{"say": "Done."}], scenario=secret))
    (tmp_path / "suite.yaml").write_text(text)
    result = CliRunner().invoke(main, ["run", "suite.yaml", "-s", "silence", "--no-charts", "--out", "out"])
    assert result.exit_code == 2
    assert "suite.yaml: holds what looks like a secret" in result.output
    assert secret not in result.output
    assert not (tmp_path / "out").exists()
