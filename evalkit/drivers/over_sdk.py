"""The reference loop over the wire: the same driver, its requests made by a provider's SDK.

Against the scripted server it is the other side of the one truth: the same scenario, strategy and seed give
the same episode here and in process.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import msgspec

from evalkit.core.decisions import Ending
from evalkit.core.events import Compacts, Event
from evalkit.core.keys import with_key
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered, Task
from evalkit.core.turns import Call, Turn
from evalkit.drivers.in_process import LoopMind, Watcher, drive
from evalkit.drivers.sdk_episode import SdkEpisode, SdkInstruments
from evalkit.models.clients import Opening, SdkModel, connect
from evalkit.stage.stage import Stage
from evalkit.strategies.strategy import Strategy
from evalkit.wire.dialects import Dialect
from evalkit.wire.episode import WireEpisode
from evalkit.wire.server import Server
from evalkit.wire.tools import OWN


def opening(task: Task, offered: Offered) -> Opening:
    """What the reference loop tells a model: the task, when it is done, and the channels it agrees."""
    said = ["Work on the task with the tools. Stop calling tools only when nothing is left to do."]
    if offered.keyword:
        said.append(f"When everything is done, say {offered.keyword} as your last line.")
    if offered.output and task.output:
        said.append(f"Your final answer is JSON of this schema: {json.dumps(task.output)}")
    tools = [(tool.name, tool.description, tool.schema()) for tool in task.tools.values()]
    own = ((FINISH_TOOL, offered.finish), (CHECKLIST_TOOL, offered.checklist))
    tools.extend((name, *OWN[name]) for name, has in own if has)
    return Opening(" ".join(said), f"{task.prompt}\nDone when: {task.done_when}", tuple(tools))


class Remote(SdkEpisode):
    """An episode over the wire: turns from an SDK, tools by plain HTTP.

    ``episode`` is the back channel to what a scripted turn claims, which only the scripted verifier may
    know, to what ended the episode on the server's side, and for telling that the history of the next
    request is shortened.
    """

    def __init__(self, stage: Stage, model: SdkModel, tools_url: str, episode: WireEpisode) -> None:
        super().__init__(stage, model)
        self._tools_url = tools_url
        self._episode = episode

    def ask(self, request: Request) -> Turn:
        """The answer over the wire; what ended the episode on the server's side is raised here."""
        if request.shortened:
            self._episode.shortened = True
        answer = self._model.ask(request)
        if self._episode.failure is not None:
            raise self._episode.failure
        return self._take(answer, request, lambda: self._episode.claimed(answer.id))

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a tool of the world over HTTP; ``key`` takes the place of the model's."""
        arguments = call.arguments if key is None else with_key(call.arguments, key)
        text, error = post_json(f"{self._tools_url}/{call.tool}", arguments.encode())
        if self._episode.failure is not None:
            raise self._episode.failure
        result = self.ran[call.id] = Result(call.id, text, error)
        return result

    # What happens from outside is the script's to say; the harness is told in process, as its user would.

    @property
    def eventful(self) -> bool:
        """Whether anything may happen to the harness from outside."""
        return self._stage.eventful

    def happens(self, request: Request) -> tuple[Event, ...]:
        """What happens before a request is made."""
        return self._told(self._stage.happens(self._scripted_request(request)))

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after the harness has ended."""
        return self._told(self._stage.after(ending, self._scripted_request(request)))

    def _told(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        for event in events:
            if isinstance(event, Compacts):
                self._model.compact(event.summary)
        return events


class Line(msgspec.Struct, frozen=True):
    """How the loop speaks to the scripted server."""

    server: Server
    dialect: Dialect
    streamed: bool = False
    #: The server holds the conversation: message threads, ``previous_response_id``.
    held: bool = False
    #: Ask for background responses, where the dialect has them.
    background: bool = False
    timeout: float = 60.0
    #: An HTTP client of one's own, such as one that records.
    http: Any = None

    def run(self, strategy: Strategy, stage: Stage, watch: Watcher | None = None) -> Ending:
        """Run the reference loop with a strategy over this line. It raises what :func:`drive` raises."""
        episode = WireEpisode(stage)
        token = self.server.add(episode)
        url = self.server.url(token)
        model = connect(
            self.dialect,
            url,
            opening(stage.task, strategy.offers),
            streamed=self.streamed,
            held=self.held,
            background=self.background and self.dialect == "responses",
            timeout=self.timeout,
            http=self.http,
        )
        remote = Remote(stage, model, f"{url}/tools", episode)
        mind = LoopMind(strategy, stage.task, stage, SdkInstruments(remote, stage))
        try:
            return drive(mind, remote, watch=watch)
        finally:
            self.server.remove(token)


@lru_cache(maxsize=1)
def _http() -> Any:
    """The HTTP client of the SDKs, for the tools."""
    import httpx2

    return httpx2.Client(timeout=60.0)


def post_json(url: str, body: bytes) -> tuple[str, bool]:
    """Run a tool by ``POST``: its text, and whether it is an error."""
    response = _http().post(url, content=body, headers={"content-type": "application/json"})
    answer: dict[str, Any] = response.json()
    return str(answer["text"]), bool(answer["error"])
