"""Running one episode of a made-up program, for the tests of the contract."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evalkit.harnesses.episode_record import Kept
from evalkit.harnesses.find import find_harness
from evalkit.harnesses.manifest import Harness, parse_manifest
from evalkit.scenarios.loader import load_text
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import contract_of, run_foreign, runner_of, server_for_harnesses

PLAIN = """
scenario: two-parcels
family: partial_completion
summary: One of two is done and the model reports.
task: {prompt: Send every parcel., done_when: Every parcel is sent.}
world: {kind: items, items: [parcel-a, parcel-b]}
model:
  - call: list_items
  - work: 1
  - {say: One of two is sent., claim: partial}
  - work: rest
  - {say: Both are sent., claim: done}
"""

#: A harness without any library: it talks to the Messages API by hand and ends at the first silence.
LOOP = """
import json, os, urllib.request

def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request))

tools = json.load(urllib.request.urlopen(os.environ["EVALKIT_TOOLS_URL"]))["tools"]
messages = [{"role": "user", "content": os.environ["EVALKIT_PROMPT"]}]
while True:
    answer = post(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages",
                  {"model": "m", "max_tokens": 1000, "messages": messages, "tools": tools})
    messages.append({"role": "assistant", "content": answer["content"]})
    calls = [block for block in answer["content"] if block["type"] == "tool_use"]
    if not calls:
        break
    results = []
    for call in calls:
        said = post(os.environ["EVALKIT_TOOLS_URL"] + "/" + call["name"], call["input"])
        results.append({"type": "tool_result", "tool_use_id": call["id"], "content": said["text"]})
    messages.append({"role": "user", "content": results})
"""


def scenario(text: str = PLAIN) -> Scenario:
    return load_text(text, "made-up.yaml")[0]


def program(folder: Path, text: str, **manifest: Any) -> Harness:
    """A harness of one Python program, with a manifest where one is given."""
    file = folder / "agent.py"
    file.write_text(text)
    if not manifest:
        return find_harness(str(file))
    document = {"name": "made-up", "summary": "", "run": ["{python}", "agent.py"], **manifest}
    return Harness(parse_manifest(document, "harness.toml"), folder)


@contextmanager
def running(harness: Harness, seconds: float = 20.0, text: str = PLAIN) -> Iterator[Any]:
    """A function that runs one more episode of a harness."""
    contract, runner = contract_of(harness), runner_of(harness, seconds=seconds)
    arena = Arena(scenario(text), contract.offered)

    def run() -> tuple[Episode, Kept]:
        return run_foreign(arena, 0, contract, runner, server)

    with server_for_harnesses() as server:
        try:
            yield run
        finally:
            runner.close()


def played(harness: Harness, seconds: float = 20.0, text: str = PLAIN) -> tuple[Episode, Kept]:
    """One episode."""
    with running(harness, seconds, text) as run:
        episode: tuple[Episode, Kept] = run()
        return episode
