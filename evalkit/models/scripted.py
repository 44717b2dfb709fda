"""The scripted side of an episode: player, world and observer, behind requests and tool calls."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Task
from evalkit.core.traces import Trace
from evalkit.core.turns import Call, Turn, count_tokens, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL, Arm, freshen
from evalkit.scenarios.moves import Reply
from evalkit.scenarios.player import Player, PlayerState
from evalkit.worlds import Outcome, World, action_of

#: Requests without a turn between (faults, polls) after which the time limit has passed.
IDLE_CAP = 1000


class NeverEnds(Exception):
    """evalkit's own cap had to end the run."""


class ToolFailed(Exception):
    """A tool of a user's world raised."""


class Stage:
    """One episode as the harness meets it: :meth:`ask` for turns, :meth:`run` for the world's tools.

    ``cap`` is the number of model turns after which a further request raises :class:`NeverEnds`.
    """

    def __init__(
        self, player: Player, world: World, task: Task, trace: Trace | None, cap: int, prompt_tokens: int
    ) -> None:
        self.player = player
        self.world = world
        self.task = task
        self.trace = trace
        self.cap = cap
        self.state: PlayerState = player.start
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self.turns = 0
        self.tokens = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.conversation = prompt_tokens
        self.faulted = False
        self.path = ""
        self._first = True
        self._idle = 0
        self._serial = 0
        self._arms: tuple[Arm, ...] = ()
        self._children: tuple[tuple[str, str, Reply | None], ...] = ()
        self._late: tuple[tuple[int, str, str], ...] = ()

    def ask(self, request: Request) -> Turn:
        """The model's answer: a turn, or one of kind ``failed`` or ``in_progress`` that is not a turn."""
        previous = self.previous
        if self.trace is not None:
            self.trace.resolved(self.world.settled().bit_count(), self.world.holds(), request)
        if self._late:
            self._land()
        self._idle += 1
        if self.turns >= self.cap or self._idle > IDLE_CAP:
            raise NeverEnds
        moved = None if self._first else stimulus(previous, request, FINISH_TOOL)
        self._first = False
        if not request.again:
            if request.echo is None and previous.turn is not None:
                self.conversation -= previous.turn.tokens
            for result in request.results:
                self.conversation += count_tokens(result.text)
            if request.text:
                self.conversation += count_tokens(request.text)
        self.state, emitted = self.player.advance(self.state, moved, self.task.seed)
        turn = emitted.turn
        self.path = emitted.path
        if turn.kind == "failed" or turn.kind == "in_progress":
            self.faulted = turn.kind == "failed"
            self.previous = Delivered(previous.turn, request.limit, request.model)
            return turn
        self._serial += 1
        if emitted.fresh:
            emitted = freshen(emitted, f"{self._serial}")
            turn = emitted.turn
        self._arms = emitted.arms
        self._children = emitted.children
        self._idle = 0
        self.faulted = False
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self.turns += 1
        self.input_tokens += self.conversation
        self.output_tokens += turn.tokens
        self.tokens += self.conversation + turn.tokens
        if turn.kind != "cut_off" and turn.told is not None and turn.told.skipped and turn.told.reason:
            self.world.skip(self.task.items_of(turn.told.skipped))
        if self.trace is not None:
            self.trace.delivered(turn, self.conversation + turn.tokens, f"{emitted.label} at {emitted.path}")
            if turn.calls and turn.kind != "cut_off":
                self._count_calls(turn)
        self.conversation += turn.tokens
        return turn

    def _count_calls(self, turn: Turn) -> None:
        assert self.trace is not None
        called = self.trace.called
        calls = [(call.tool, call.arguments) for call in turn.calls]
        calls.extend((tool, arguments) for tool, arguments, _ in self._children)
        for tool, arguments in calls:
            known = self.task.tools.get(tool)
            if known is not None and not known.read_only:
                action = action_of(known, parse_arguments(arguments))
                if action is not None:
                    called[action] = called.get(action, 0) + 1

    # Tools

    def run(self, call: Call) -> Result:
        """Run a call of the last turn on the world; an unknown tool or broken arguments are an error."""
        if self.trace is not None and self.previous.turn is not None:
            if self.previous.turn.kind == "cut_off":
                self.trace.ran_cut_off_call = True
                self.trace.orphan_calls += 1
            elif call not in self.previous.turn.calls:
                self.trace.orphan_calls += 1
        result = self.answer(call)
        self.ran[call.id] = result
        return result

    def answer(self, call: Call) -> Result:
        """What the world and the script answer to a call."""
        if call.tool == DELEGATE_TOOL:
            for tool, arguments, reply in self._children:
                self._perform(tool, arguments, reply)
        arm = None
        for candidate in self._arms:
            if candidate.tool == call.tool and candidate.arguments == call.arguments:
                arm = candidate
        if arm is not None and arm.settles is not None:
            for tool, values in self.world.settle_calls(arm.settles, f"wait-{self._serial}"):
                self.world.call(tool, values)
        text, error = self._perform(call.tool, call.arguments, arm.reply if arm else None)
        return Result(call.id, text, error)

    def _perform(self, tool: str, arguments: str, reply: Reply | None) -> tuple[str, bool]:
        values = parse_arguments(arguments)
        if values is None:
            return f"{tool}: the arguments are not valid JSON", True
        if reply is None:
            outcome = self._on_world(tool, values)
            return outcome.text, outcome.error
        effect = reply.effective
        if tool == DELEGATE_TOOL:
            return reply.text or "", reply.error
        if effect == "applied":
            outcome = self._on_world(tool, values)
        else:
            if effect == "late":
                self._late = (*self._late, (2, tool, arguments))
            if reply.text is not None:
                return reply.text, reply.error
            probe = self.world.fork()
            outcome = probe.call(tool, values)
            probe.close()
        text = reply.text if reply.text is not None else outcome.text
        return (f"{tool}: failed" if reply.error and reply.text is None else text), reply.error or (
            outcome.error and reply.text is None
        )

    def _on_world(self, tool: str, values: Mapping[str, Any]) -> Outcome:
        try:
            return self.world.perform(tool, values)
        except Exception as error:
            raise ToolFailed(f"tool {tool} raised {type(error).__name__}: {error}") from error

    def _land(self) -> None:
        waiting = []
        for requests, tool, arguments in self._late:
            if requests > 1:
                waiting.append((requests - 1, tool, arguments))
            else:
                self.world.perform(tool, parse_arguments(arguments) or {})
        self._late = tuple(waiting)

    def settle(self) -> None:
        """Let accepted effects land: the run is over."""
        for _, tool, arguments in self._late:
            self.world.perform(tool, parse_arguments(arguments) or {})
        self._late = ()

    # Copies

    def fork(self) -> Stage:
        """An independent copy without observer, for asking what could still happen. It has no cap."""
        copy = object.__new__(Stage)
        copy.__dict__.update(self.__dict__)
        copy.world = self.world.fork()
        copy.ran = dict(self.ran)
        copy.trace = None
        copy.cap = 1 << 60
        copy._idle = 0
        return copy

    def key(self) -> Hashable:
        """(world, player, pending turn): all that the future depends on, given the harness."""
        turn = self.previous.turn
        pending: Hashable = None
        if turn is not None:
            # Which move a turn came from says what is in it; its ids and keys are not part of the state.
            pending = (self.path, turn.kind, tuple(call.id in self.ran for call in turn.calls))
        late = tuple((requests, tool, arguments) for requests, tool, arguments in self._late)
        return self.world.key(), self.state, pending, self.faulted, late


def own_tool(tool: str) -> bool:
    """Whether a tool is the harness's own."""
    return tool in (FINISH_TOOL, CHECKLIST_TOOL)
