"""A harness of few lines for the tests of what is seen of one: it talks to the Messages API by hand."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from evalkit.harnesses.callables import CallableRunner
from evalkit.harnesses.episode_record import Kept
from evalkit.scenarios.scenario import Scenario
from evalkit.scoring.arena import Arena
from evalkit.scoring.episode import Episode
from evalkit.scoring.foreign_episode import Contract, run_foreign, server_for_harnesses


class Talk:
    """A conversation: ``messages`` is what the next request carries."""

    def __init__(self, told: Mapping[str, str]) -> None:
        self.told = told
        self.tools = self.get(told["EVALKIT_TOOLS_URL"])["tools"]
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": told["EVALKIT_PROMPT"]}]
        self.status = 200

    def get(self, url: str) -> Any:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)

    def post(self, url: str, body: Any) -> Any:
        """The answer; of a refused request the body of the error, its status in ``status``."""
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                self.status = answer.status
                return json.load(answer)
        except urllib.error.HTTPError as error:
            self.status = error.code
            return json.load(error)

    def ask(self, **changes: Any) -> dict[str, Any]:
        """The next turn."""
        body = {"model": "m", "max_tokens": 1000, "messages": self.messages, "tools": self.tools, **changes}
        answer: dict[str, Any] = self.post(f"{self.told['ANTHROPIC_BASE_URL']}/v1/messages", body)
        return answer

    def keep(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take a turn into the conversation; its calls."""
        self.messages.append({"role": "assistant", "content": answer["content"]})
        return [block for block in answer["content"] if block["type"] == "tool_use"]

    def run(self, name: str, arguments: Mapping[str, Any]) -> str:
        """What a tool answers."""
        said: str = self.post(f"{self.told['EVALKIT_TOOLS_URL']}/{name}", arguments)["text"]
        return said

    def give(self, results: Mapping[str, str]) -> None:
        """Add the answers to calls, by id."""
        blocks = [{"type": "tool_result", "tool_use_id": id, "content": text} for id, text in results.items()]
        self.messages.append({"role": "user", "content": blocks})

    def work(self, carry: Callable[[dict[str, str]], dict[str, str]] = dict) -> dict[str, Any]:
        """Go on to the first turn without calls; ``carry`` makes what the model is given of the answers."""
        while True:
            answer = self.ask()
            if "content" not in answer:
                return answer
            calls = self.keep(answer)
            if not calls:
                return answer
            self.give(carry({call["id"]: self.run(call["name"], call["input"]) for call in calls}))


def played(of: Scenario, agent: Callable[[Talk], Any]) -> tuple[Episode, Kept]:
    """One episode of an agent; what it returns is its ending, None is done."""
    contract = Contract("talk")
    with server_for_harnesses() as server:
        runner = CallableRunner(lambda told: agent(Talk(told)), 20.0)
        return run_foreign(Arena(of, contract.offered), 0, contract, runner, server)
