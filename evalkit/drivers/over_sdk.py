"""The reference loop over the wire: the same driver, its requests made by a provider's SDK.

Against the scripted server it is the other side of the one truth: the same scenario, strategy and seed give
the same episode here and in process.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, Protocol

import msgspec

from evalkit.core.decisions import Ending
from evalkit.core.events import Compacts, Event
from evalkit.core.keys import with_key
from evalkit.core.prices import cost
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered, Task
from evalkit.core.turns import Call, Turn, make_turn
from evalkit.drivers.in_process import LoopMind, Meter, StageInstruments, Watcher, drive
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


class Remote:
    """An episode as the loop meets it over the wire: turns from an SDK, tools by plain HTTP.

    ``tokens`` and the money are the turns' own usage. ``episode`` is the back channel to what a scripted turn
    claims, which only the scripted verifier may know, to what ended the episode on the server's side,
    and for telling that the history of the next request is shortened.
    """

    def __init__(self, stage: Stage, model: SdkModel, tools_url: str, episode: WireEpisode) -> None:
        self.task: Task = stage.task
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self._input_tokens = 0
        self._output_tokens = 0
        self._stage = stage
        self._model = model
        self._tools_url = tools_url
        self._episode = episode

    def ask(self, request: Request) -> Turn:
        """The answer over the wire; what ended the episode on the server's side is raised here."""
        if request.shortened:
            self._episode.shortened = True
        answer = self._model.ask(request)
        if self._episode.failure is not None:
            raise self._episode.failure
        turn = answer.turn
        if turn.kind in ("failed", "in_progress"):
            self.previous = Delivered(self.previous.turn, request.limit, request.model)
            return turn
        claim, told = self._episode.claimed(answer.id)
        turn = make_turn(
            turn.content, turn.stop, native=turn.native, category=turn.category, claim=claim, told=told
        )
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self._input_tokens += answer.input_tokens
        self._output_tokens += answer.output_tokens
        return turn

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
        return self._told(self._stage.happens(self._own(request)))

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after the harness has ended."""
        return self._told(self._stage.after(ending, self._own(request)))

    def _told(self, events: tuple[Event, ...]) -> tuple[Event, ...]:
        for event in events:
            if isinstance(event, Compacts):
                self._model.compact(event.summary)
        return events

    def _own(self, request: Request) -> Request:
        """A request with the script's own turn and ids."""
        turn, wire = self._stage.previous.turn, self.previous.turn
        if request.echo is None or turn is None or wire is None:
            return msgspec.structs.replace(request, echo=None)
        ids = {there.id: here.id for there, here in zip(wire.calls, turn.calls, strict=True)}
        results = tuple(
            Result(ids.get(result.id, result.id), result.text, result.error) for result in request.results
        )
        return msgspec.structs.replace(request, echo=turn, results=results)

    # A helper works within a tool of the harness's own, which sees what it spends.

    @property
    def input_tokens(self) -> int:
        """Input tokens so far, by the turns' usage, and those of helpers."""
        return self._input_tokens + self._stage.helpers.input_tokens

    @property
    def output_tokens(self) -> int:
        """Output tokens so far, by the turns' usage, and those of helpers."""
        return self._output_tokens + self._stage.helpers.output_tokens

    @property
    def tokens(self) -> int:
        """Input and output tokens so far."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float:
        """The same in US dollars."""
        return cost(self.input_tokens, self.output_tokens)


class Used(Protocol):
    """What knows the usage of a run by its answers."""

    previous: Delivered

    @property
    def tokens(self) -> int: ...
    @property
    def usd(self) -> float: ...


class RemoteInstruments(StageInstruments):
    """What the loop measures over the wire: usage and last turn by the answers, checks on the world."""

    def __init__(self, remote: Used, meter: Meter) -> None:
        super().__init__(meter)
        self._remote = remote

    @property
    def tokens(self) -> int:
        return self._remote.tokens

    @property
    def usd(self) -> float:
        return self._remote.usd

    @property
    def last_turn(self) -> Turn | None:
        return self._remote.previous.turn


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
        mind = LoopMind(strategy, stage.task, stage, RemoteInstruments(remote, stage))
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
