"""A harness that is a service which already runs: one POST a job, its answer is the ending."""

from __future__ import annotations

import json
import socket
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from evalkit.cli import main
from evalkit.harnesses.manifest import Harness, ManifestError, parse_manifest
from evalkit.scoring.foreign_episode import hear
from tests.harnesses.episodes import PLAIN, played
from tests.harnesses.test_approvals import MOORINGS, ONE_OF_EACH
from tests.harnesses.test_whole_life import LATER, WORDS


class Agent(BaseHTTPRequestHandler):
    """A loop behind HTTP that keeps its conversations by id."""

    conversations: dict[str, list[Any]] = {}
    jobs: dict[str, dict[str, str]] = {}
    #: Where its model is, where that was fixed when it was started.
    fixed = ""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        name = told["conversation"]
        if "EVALKIT_PROMPT" in told:
            self.jobs[name] = told
            self.conversations[name] = [{"role": "user", "content": told["EVALKIT_PROMPT"]}]
        elif "decisions" in told:
            self.conversations[name].append(
                {"role": "user", "content": self._decided(name, told["decisions"])}
            )
        else:
            self.conversations[name].append({"role": "user", "content": told["message"]})
        ending = json.dumps(self._work(self.jobs[name], self.conversations[name])).encode()
        self.send_response(200 if self.path in ("/work", "/asks") else 404)
        self.send_header("content-length", str(len(ending)))
        self.end_headers()
        self.wfile.write(ending)

    def _decided(self, name: str, decisions: list[Any]) -> list[Any]:
        said = {}
        calls = {
            b["id"]: b["name"] for b in self.conversations[name][-1]["content"] if b["type"] == "tool_use"
        }
        for decision in decisions:
            refused = decision["decision"] == "refuse"
            tool, values = calls[decision["id"]], decision["arguments"]
            said[decision["id"]] = "refused" if refused else self._run(self.jobs[name], tool, values)
        return [{"type": "tool_result", "tool_use_id": key, "content": text} for key, text in said.items()]

    def _run(self, job: dict[str, str], tool: str, values: Any) -> str:
        place = f"{self._model(job)}/tools/{tool}"
        with urllib.request.urlopen(place, json.dumps(values).encode()) as said:
            return str(json.load(said)["text"])

    def _work(self, job: dict[str, str], messages: list[Any]) -> dict[str, Any]:
        while True:
            body = json.dumps({"model": job["EVALKIT_MODEL"], "max_tokens": 99, "messages": messages})
            with urllib.request.urlopen(self._model(job) + "/v1/messages", body.encode()) as answer:
                turn = json.load(answer)
            messages.append({"role": "assistant", "content": turn["content"]})
            calls = [block for block in turn["content"] if block["type"] == "tool_use"]
            if not calls:
                return {"ending": "done", "native": turn["stop_reason"]}
            if self.path == "/asks":
                return {
                    "waiting": [{"id": b["id"], "tool": b["name"], "arguments": b["input"]} for b in calls]
                }
            results = [
                {
                    "type": "tool_result",
                    "tool_use_id": b["id"],
                    "content": self._run(job, b["name"], b["input"]),
                }
                for b in calls
            ]
            messages.append({"role": "user", "content": results})

    def _model(self, job: dict[str, str]) -> str:
        return self.fixed or job["ANTHROPIC_BASE_URL"]

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


def test_decisions_reach_it_in_its_conversation(port: int) -> None:
    harness = service(f"http://127.0.0.1:{port}/asks", dialect="anthropic", events={"approve": "returns"})
    episode, _ = played(harness, 20.0, MOORINGS.replace("APPROVE", ONE_OF_EACH))
    assert (episode.outcome, episode.correct, episode.unapproved_calls) == ("done/complete", True, 0), episode


def test_one_whose_base_url_is_fixed_is_asked_there(
    port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One episode after the other at the server's own address; what it speaks is heard there too."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        fixed = free.getsockname()[1]
    monkeypatch.setattr(Agent, "fixed", f"http://127.0.0.1:{fixed}")
    manifest = f'name = "afar"\nsummary = ""\nservice = "http://127.0.0.1:{port}/work"\n'
    (tmp_path / "harness.toml").write_text(f'{manifest}[events]\nuser = ["ended"]\n')
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "later.yaml").write_text(LATER)
    (suite / "two.yaml").write_text(PLAIN)
    (suite / "words.yaml").write_text(WORDS.replace("WHEN", "in_tool"))
    words = ["serve", str(suite), "--harness", str(tmp_path), "--port", str(fixed)]
    said = CliRunner().invoke(main, words)
    assert said.exit_code == 0, said.output
    assert f"export OPENAI_BASE_URL=http://127.0.0.1:{fixed}/v1" in said.output
    assert said.output.splitlines()[-4:] == [
        "second-bell: done/complete in 5 turns",
        "two-parcels: done/reachable in 3 turns; not correct: done/reachable is not accepted "
        "(accepted: done/complete)",
        "words-on-the-way: not expressible: the harness has no notion of: user (in_tool)",
        "3 scenarios: 1 correct, 1 not correct, 1 not expressible",
    ]


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
