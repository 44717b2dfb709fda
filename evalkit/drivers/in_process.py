"""Carries out the actions of a mind against a stage, in process.

A *mind* decides: the reference loop with a strategy, or the ideal driver. The driver holds what is on the
wire (last request, results of the current turn) and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import msgspec

from evalkit.core.channels import OWN_TOOLS, is_own
from evalkit.core.decisions import Action, End, Ending, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.events import Event, UserWrites, with_words
from evalkit.core.prices import cost
from evalkit.core.requests import FALLBACK_MODEL, Delivered, Request, Result
from evalkit.core.tasks import FINISH_TOOL, Task
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.loop.state import State, bind, start
from evalkit.loop.transitions import key_for, on_event, on_results, on_turn, out_of_turns
from evalkit.strategies.folds import Ran
from evalkit.strategies.strategy import Strategy
from evalkit.strategies.view import Instruments
from evalkit.worlds import World

NOT_RUN = "not run: the turn was cut off or not accepted"
RECORDED = "recorded"


class StrategyFailed(Exception):
    """A condition or fold raised."""


class Mind(Protocol):
    """What decides in a run. ``keyed``: it sets keys of its own on calls."""

    keyed: bool

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        """What to do about a turn, or about its results where its calls were run."""

    def results(self, ran: tuple[Ran, ...]) -> None:
        """Take note of calls that were run."""

    def event(self, event: Event) -> None:
        """Take note of what happened from outside, before the next request is made."""

    def key(self, call: Call, ran: tuple[Ran, ...]) -> str | None:
        """The key of its own for a call, after these of the same turn; None leaves the model's."""

    def out_of_turns(self, turn: Turn) -> Ending | None:
        """Its ending where a later message finds a limit reached, after ``turn``; None elsewhere."""


class Outside(Protocol):
    """What happens around a run; a partner that has it tells the driver."""

    @property
    def eventful(self) -> bool: ...

    def happens(self, request: Request) -> tuple[Event, ...]:
        """What happens before a request is made."""

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after the harness has ended, where its user then writes; nothing where nobody does."""


class Partner(Protocol):
    """What a mind is driven against: the stage itself, or one at the other end of a wire."""

    task: Task
    previous: Delivered
    ran: dict[str, Result]

    def ask(self, request: Request) -> Turn:
        """The answer to a request."""

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the last turn on the world; ``key`` takes the place of the model's."""


class Meter(Protocol):
    """Where the reference loop measures: the world, and what the run has used."""

    @property
    def world(self) -> World: ...
    @property
    def task(self) -> Task: ...
    @property
    def previous(self) -> Delivered: ...
    @property
    def tokens(self) -> int: ...
    @property
    def input_tokens(self) -> int: ...
    @property
    def output_tokens(self) -> int: ...


#: Told of each turn with its action, verdict and results, for whoever shows a run.
Watcher = Callable[[Turn, Action, "Verdict | None", "tuple[Result, ...]"], None]


class LoopMind:
    """The reference loop: a strategy, its state, and the instruments it measures with."""

    def __init__(
        self, strategy: Strategy, task: Task, meter: Meter, instruments: Instruments | None = None
    ) -> None:
        self.loop = bind(strategy, task)
        self.keyed = self.loop.keyed
        self.state: State = start(strategy, task)
        self.instruments = instruments or StageInstruments(meter)

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

    def event(self, event: Event) -> None:
        try:
            self.state = on_event(self.loop, self.state, event, self.instruments)
        except Exception as error:
            raise StrategyFailed(f"{type(error).__name__}: {error}") from error

    def key(self, call: Call, ran: tuple[Ran, ...]) -> str | None:
        return key_for(self.loop, self.state, call, ran)

    def out_of_turns(self, turn: Turn) -> Ending | None:
        try:
            return out_of_turns(self.loop, self.state, turn, self.instruments)
        except Exception as error:
            raise StrategyFailed(f"{type(error).__name__}: {error}") from error


class StageInstruments:
    """What the reference loop can measure where it runs."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter

    @property
    def tokens(self) -> int:
        return self._meter.tokens

    @property
    def usd(self) -> float:
        return cost(self._meter.input_tokens, self._meter.output_tokens)

    @property
    def last_turn(self) -> Turn | None:
        return self._meter.previous.turn

    def checks(self) -> Verdict:
        return self._meter.world.check(self._meter.task.checks)

    def artifact(self) -> bool:
        return self._meter.world.artifact()

    def replays(self, item: str) -> bool:
        return self._meter.world.reads_done(item)


def drive(
    mind: Mind,
    stage: Partner,
    *,
    pending: Turn | None = None,
    request: Request | None = None,
    watch: Watcher | None = None,
) -> Ending:
    """Run a mind to its ending. ``pending`` starts it at a turn that the stage has already delivered.

    ``request`` is what it begins with or, with ``pending``, what that turn answered. Where the user writes
    after the mind has ended, the run goes on, and its last ending counts. A message that finds a limit
    reached brings no turn: the run ends by the limit if it asks for items, else the ending before it stands.
    Raises :class:`~evalkit.stage.stage.NeverEnds` where the stage's cap ends the run.
    """
    task = stage.task
    request = request or Request(limit=stage.previous.limit)
    # Asked of the attribute: looking at all that a protocol has takes longer than a turn.
    outside = cast(Outside, stage) if getattr(stage, "eventful", False) else None
    if pending is None:
        if outside is not None:
            request = _told(mind, outside.happens(request), request)
        turn = stage.ask(request)
    else:
        turn = pending
    while True:
        action, verdict = mind.turn(turn)
        if isinstance(action, RunTools):
            run = _run_keyed if mind.keyed else _run
            mind.results(run(mind, stage, task, action.calls))
            if watch is not None:
                watch(turn, action, None, tuple(stage.ran.values()))
            continue
        if watch is not None:
            watch(turn, action, verdict, tuple(stage.ran.values()))
        if isinstance(action, End):
            if outside is None:
                return action.ending
            further = resumed(turn, stage, request)
            events = outside.after(action.ending, further)
            if not events:
                return action.ending
            request = _told(mind, events, further)
            limit = mind.out_of_turns(turn)
            if limit is not None:
                asks = any(isinstance(event, UserWrites) and event.asks for event in events)
                return limit if asks else action.ending
        else:
            request = next_request(action, stage, request)
            if outside is not None:
                request = _told(mind, outside.happens(request), request)
        turn = stage.ask(request)


def _run(mind: Mind, stage: Partner, task: Task, calls: tuple[Call, ...]) -> tuple[Ran, ...]:
    """Run calls that have not run yet, one after the other."""
    ran = []
    for call in calls:
        if call.id not in stage.ran:
            ran.append(run_call(stage, task, call))
    return tuple(ran)


def _run_keyed(mind: Mind, stage: Partner, task: Task, calls: tuple[Call, ...]) -> tuple[Ran, ...]:
    """Run calls one after the other, each under the mind's own key: one may undo what is done again."""
    ran: tuple[Ran, ...] = ()
    for call in calls:
        if call.id not in stage.ran:
            ran = (*ran, run_call(stage, task, call, mind.key(call, ran)))
    return ran


def _told(mind: Mind, events: tuple[Event, ...], request: Request) -> Request:
    """Tell a mind what happened; the request with the user's words."""
    for event in events:
        mind.event(event)
    return with_words(request, events)


def resumed(turn: Turn, stage: Partner, last: Request) -> Request:
    """What a harness that has ended asks with when its user writes again.

    A paused, cut-off or refused turn is left out, and a request that failed is made again.
    """
    if turn.is_no_turn:
        return last
    if turn.kind in ("pause", "cut_off", "refusal"):
        return Request(limit=last.limit)
    return Request(turn, answers(turn, stage), None, last.limit)


def run_call(stage: Partner, task: Task, call: Call, key: str | None = None) -> Ran:
    """Run a call: the harness's own tools are recorded, the world's are run, unknown ones too."""
    if call.tool in OWN_TOOLS and is_own(call.tool, task.offered):
        result = Result(call.id, RECORDED)
        stage.ran[call.id] = result
        return Ran(call, result)
    tool = task.tools.get(call.tool)
    result = stage.run(call) if key is None else stage.run(call, key)
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
        if action.why == "shorten":
            # What a failed request was to add is still to be said; a turn that filled the window is left out.
            if turn is not None and turn.stop == "context_window":
                return Request(limit=last.limit, model=last.model, shortened=True)
            return msgspec.structs.replace(last, again=False, poll=False, shortened=True)
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
