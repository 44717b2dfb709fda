"""Carries out the actions of a mind against a stage, in process.

A *mind* decides: the reference loop with a strategy, or the ideal driver. The driver holds what is on the
wire (last request, results of the current turn) and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from evalkit.core.decisions import Action, End, Ending, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.prices import cost
from evalkit.core.requests import FALLBACK_MODEL, Delivered, Request, Result
from evalkit.core.tasks import FINISH_TOOL, Task
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.harnesses.loop import Loop, State, on_results, on_turn, start
from evalkit.models.scripted import OWN_TOOLS, Stage
from evalkit.strategies.folds import Ran
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import Instruments

NOT_RUN = "not run: the turn was cut off or not accepted"
RECORDED = "recorded"


class StrategyFailed(Exception):
    """A condition or fold raised."""


class Mind(Protocol):
    """What decides in a run."""

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        """What to do about a turn, or about its results where its calls were run."""

    def results(self, ran: tuple[Ran, ...]) -> None:
        """Take note of calls that were run."""


class Partner(Protocol):
    """What a mind is driven against: the stage itself, or one at the other end of a wire."""

    task: Task
    previous: Delivered
    ran: dict[str, Result]

    def ask(self, request: Request) -> Turn:
        """The answer to a request."""

    def run(self, call: Call) -> Result:
        """Run a call of the last turn on the world."""


#: Told of each turn with its action, verdict and results, for whoever shows a run.
Watcher = Callable[[Turn, Action, "Verdict | None", "tuple[Result, ...]"], None]


class LoopMind:
    """The reference loop: a strategy, its state, and the instruments it measures with."""

    def __init__(
        self, strategy: Strategy, task: Task, stage: Stage, instruments: Instruments | None = None
    ) -> None:
        self.loop = Loop(strategy, task)
        self.state: State = start(strategy, task)
        self.instruments = instruments or StageInstruments(stage)

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        try:
            self.state, action, verdict = on_turn(self.loop, self.state, turn, self.instruments)
        except Exception as error:
            raise StrategyFailed(f"{type(error).__name__}: {error}") from error
        return action, verdict

    def results(self, ran: tuple[Ran, ...]) -> None:
        try:
            self.state = on_results(self.loop, self.state, ran)
        except Exception as error:
            raise StrategyFailed(f"{type(error).__name__}: {error}") from error


class StageInstruments:
    """What the reference loop can measure of an episode in process."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    @property
    def tokens(self) -> int:
        return self._stage.tokens

    @property
    def usd(self) -> float:
        return cost(self._stage.input_tokens, self._stage.output_tokens)

    @property
    def last_turn(self) -> Turn | None:
        return self._stage.previous.turn

    def checks(self) -> Verdict:
        return self._stage.world.check(self._stage.task.checks)

    def artifact(self) -> bool:
        return self._stage.world.artifact()

    def replays(self, item: str) -> bool:
        return self._stage.world.reads_done(item)


def drive(
    mind: Mind,
    stage: Partner,
    *,
    pending: Turn | None = None,
    request: Request | None = None,
    watch: Watcher | None = None,
) -> Ending:
    """Run a mind to its ending. ``pending`` starts it at a turn that the stage has already delivered.

    ``request`` is what it begins with or, with ``pending``, what that turn answered.
    Raises :class:`~evalkit.models.scripted.NeverEnds` where the stage's cap ends the run.
    """
    task = stage.task
    request = request or Request(limit=stage.previous.limit)
    turn = stage.ask(request) if pending is None else pending
    while True:
        action, verdict = mind.turn(turn)
        if isinstance(action, RunTools):
            done = stage.ran
            mind.results(tuple([run_call(stage, task, call) for call in action.calls if call.id not in done]))
            if watch is not None:
                watch(turn, action, None, tuple(stage.ran.values()))
            continue
        if watch is not None:
            watch(turn, action, verdict, tuple(stage.ran.values()))
        if isinstance(action, End):
            return action.ending
        request = next_request(action, stage, request)
        turn = stage.ask(request)


def run_call(stage: Partner, task: Task, call: Call) -> Ran:
    """Run a call: the harness's own tools are recorded, the world's are run."""
    if call.tool in OWN_TOOLS:
        result = Result(call.id, RECORDED)
        stage.ran[call.id] = result
        return Ran(call, result)
    tool = task.tools.get(call.tool)
    result = stage.run(call)
    item = 0
    if tool is not None and (tool.item is not None or task.evidence is not None):
        arguments = parse_arguments(call.arguments) or {}
        item = task.items_of_call(tool, arguments, result.text, result.error)
    return Ran(call, result, tool, item)


def next_request(action: Action, stage: Partner, last: Request) -> Request:
    """The request that carries out an action."""
    turn = stage.previous.turn
    if isinstance(action, Send):
        assert turn is not None
        return Request(turn, answers(turn, stage), action.text, last.limit)
    if isinstance(action, Reissue):
        if action.why in ("retry", "poll"):
            return Request(
                last.echo, last.results, last.text, last.limit, last.model, True, action.why == "poll"
            )
        if action.why == "limit":
            return Request(limit=last.limit * 2, model=last.model)
        return Request(limit=last.limit, model=FALLBACK_MODEL)
    assert turn is not None
    if isinstance(action, Resend):
        return Request(turn, (), None, last.limit)
    assert isinstance(action, Reject)
    results = tuple(
        Result(call.id, action.text, True) if call.tool == FINISH_TOOL else result
        for call, result in zip(turn.calls, answers(turn, stage), strict=True)
    )
    return Request(turn, results, None, last.limit)


def answers(turn: Turn, stage: Partner) -> tuple[Result, ...]:
    """A result for each call of the turn; calls that were not run are answered with an error."""
    ran = stage.ran
    if len(ran) == len(turn.calls):
        return tuple(ran.values())
    return tuple([ran.get(call.id) or Result(call.id, _not_run(call), True) for call in turn.calls])


def _not_run(call: Call) -> str:
    if parse_arguments(call.arguments) is None:
        return f"{call.tool}: the arguments are not valid JSON"
    return NOT_RUN
