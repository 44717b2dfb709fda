"""A harness that is a service which already runs: one POST a job, its answer is the ending."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from evalkit.harnesses.manifest import Harness, ManifestError, parse_manifest
from evalkit.scoring.foreign import hear
from tests.harnesses.episodes import played
from tests.harnesses.test_whole_life import LATER


class Agent(BaseHTTPRequestHandler):
    """A loop behind HTTP that keeps its conversations by id."""

    conversations: dict[str, list[Any]] = {}
    jobs: dict[str, dict[str, str]] = {}

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = told["conversation"]
        if "EVALKIT_PROMPT" in told:
            self.jobs[name] = told
            self.conversations[name] = [{"role": "user", "content": told["EVALKIT_PROMPT"]}]
        else:
            self.conversations[name].append({"role": "user", "content": told["message"]})
        ending = json.dumps(self._work(self.jobs[name], self.conversations[name])).encode()
        self.send_response(404 if self.path != "/work" else 200)
        self.send_header("content-length", str(len(ending)))
        self.end_headers()
        self.wfile.write(ending)

    def _work(self, job: dict[str, str], messages: list[Any]) -> dict[str, str]:
        while True:
            body = json.dumps({"model": job["EVALKIT_MODEL"], "max_tokens": 99, "messages": messages})
            with urllib.request.urlopen(job["ANTHROPIC_BASE_URL"] + "/v1/messages", body.encode()) as answer:
                turn = json.load(answer)
            messages.append({"role": "assistant", "content": turn["content"]})
            results = []
            for block in turn["content"]:
                if block["type"] == "tool_use":
                    place, body = f"{job['EVALKIT_TOOLS_URL']}/{block['name']}", json.dumps(block["input"])
                    with urllib.request.urlopen(place, body.encode()) as said:
                        text = json.load(said)["text"]
                    results.append({"type": "tool_result", "tool_use_id": block["id"], "content": text})
            if not results:
                return {"ending": "done", "native": turn["stop_reason"]}
            messages.append({"role": "user", "content": results})

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Agent)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def service(url: str, **more: Any) -> Harness:
    document = {"name": "afar", "summary": "", "service": url, **more}
    return Harness(parse_manifest(document, "harness.toml"), Path())


def test_it_is_asked_and_asked_again_in_the_same_conversation(port: int) -> None:
    harness = service(f"http://127.0.0.1:{port}/work", dialect="anthropic", events={"user": ["ended"]})
    episode, _ = played(harness, 20.0, LATER)
    assert (episode.outcome, episode.correct, episode.decisions) == ("done/complete", True, (2, 0, 0, 0))


def test_what_it_speaks_is_heard(port: int) -> None:
    known = hear(service(f"http://127.0.0.1:{port}/work"))
    assert (known.dialect, known.resident) == ("anthropic", False)


def test_what_goes_wrong_is_an_ending(port: int) -> None:
    episode, _ = played(service(f"http://127.0.0.1:{port}/elsewhere", dialect="anthropic"), 20.0)
    assert (episode.ending, episode.native) == ("error", "the service answered 404")
    episode, _ = played(service("http://127.0.0.1:9/work", dialect="anthropic"), 20.0)
    assert episode.native.startswith("the service does not answer: ")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"service": "http://example.com:80/"},
            "service: 'http://example.com:80/'; expected http://127.0.0.1",
        ),
        ({"service": "http://127.0.0.1/"}, "expected http://127.0.0.1:PORT"),
        ({"service": "http://127.0.0.1:99999/"}, "expected http://127.0.0.1:PORT"),
        ({"service": "http://127.0.0.1:9/", "run": ["x"]}, "run: a service runs already"),
        ({"service": "http://127.0.0.1:9/", "events": {"crash": True}}, "events.crash: a service"),
    ],
)
def test_a_wrong_one_is_said_in_a_line(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ManifestError, match=r"^harness\.toml: ") as caught:
        parse_manifest({"name": "afar", "summary": "", **fields}, "harness.toml")
    assert message in str(caught.value)
