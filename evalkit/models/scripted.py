"""The scripted side of an episode: player, world and observer, behind requests and tool calls."""

from __future__ import annotations

import json
from collections.abc import Hashable

from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Task
from evalkit.core.traces import Trace
from evalkit.core.turns import Call, Turn, count_tokens, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL, Arm, Child, freshen
from evalkit.scenarios.moves import Reply
from evalkit.scenarios.player import Player, PlayerState
from evalkit.worlds import World

#: The harness's own tools, which no world answers.
OWN_TOOLS = frozenset((FINISH_TOOL, CHECKLIST_TOOL))

#: Requests without a turn between (faults, polls) after which the time limit has passed.
IDLE_CAP = 1000


class NeverEnds(Exception):
    """evalkit's own cap had to end the run."""


class ToolFailed(Exception):
    """A tool of a user's world raised."""


class Crashed(Exception):
    """The script kills the harness here; what it knew outside of its memory is all that is left of it."""


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
        #: How long the last answer, a fault, stays silent.
        self.stall_s = 0.0
        #: Whether the harness can be killed and resumed; where it cannot, crashes are left out of the script.
        self.crashes = False
        #: A crash that is due when so many more calls have run.
        self._crash_after: int | None = None
        self._first = True
        self._idle = 0
        self._serial = 0
        self._arms: tuple[Arm, ...] = ()
        self._children: tuple[Child, ...] = ()
        self._late: tuple[tuple[int, str, str], ...] = ()

    def ask(self, request: Request) -> Turn:
        """The model's answer: a turn, or one of kind ``failed`` or ``in_progress`` that is not a turn."""
        previous = self.previous
        trace = self.trace
        if trace is not None and trace.last is not None:
            world = self.world
            trace.resolved(world.progress(), world.holds(), request)
        if self._late:
            self._land()
        if self._crash_after is not None:
            self._crash()
        self._idle += 1
        if self.turns >= self.cap or self._idle > IDLE_CAP:
            raise NeverEnds
        moved = None
        if not self._first and self.player.listens(self.state):
            moved = stimulus(previous, request, FINISH_TOOL)
        self._first = False
        if not request.again:
            if request.echo is None and previous.turn is not None:
                self.conversation -= previous.turn.tokens
            for result in request.results:
                self.conversation += count_tokens(result.text)
            if request.text:
                self.conversation += count_tokens(request.text)
        self.state, emitted = self.player.advance(self.state, moved, self.task.seed)
        while emitted.event:
            if self.crashes:
                self._crash()
            self.state, emitted = self.player.advance(self.state, None, self.task.seed)
        turn = emitted.turn
        self.path = emitted.path
        self.stall_s = emitted.stall_s
        if turn.kind == "failed" or turn.kind == "in_progress":
            self.faulted = turn.kind == "failed"
            self.previous = Delivered(previous.turn, request.limit, request.model)
            return turn
        self._serial += 1
        conversation = self.conversation
        if emitted.fresh:
            emitted = freshen(emitted, f"{self._serial}")
            turn = emitted.turn
        self._arms = emitted.arms
        self._children = emitted.children
        self._crash_after = emitted.crash_after if self.crashes else None
        self._idle = 0
        self.faulted = False
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self.turns += 1
        self.input_tokens += conversation
        self.output_tokens += turn.tokens
        self.tokens += conversation + turn.tokens
        if turn.kind != "cut_off" and turn.told is not None and turn.told.skipped and turn.told.reason:
            self.world.skip(self.task.items_of(turn.told.skipped))
        if trace is not None:
            trace.delivered(turn, conversation + turn.tokens, emitted.cause)
            called = trace.called
            for action in emitted.actions:
                called[action] = called.get(action, 0) + 1
        self.conversation = conversation + turn.tokens
        return turn

    # Tools

    def _crash(self) -> None:
        self._crash_after = None
        raise Crashed

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the last turn on the world; an unknown tool or broken arguments are an error.

        ``key`` is the harness's own idempotency key, put in the place of the model's.
        """
        if self._crash_after == 0:
            self._crash()
        turn = self.previous.turn
        if self.trace is not None and turn is not None:
            if turn.kind == "cut_off":
                self.trace.ran_cut_off_call = True
                self.trace.orphan_calls += 1
            elif call not in turn.calls:
                self.trace.orphan_calls += 1
        arguments = call.arguments if key is None else _keyed(call.arguments, key)
        if self._arms or call.tool == DELEGATE_TOOL:
            text, error = self._scripted(call, arguments)
        else:
            text, error = self._perform(call.tool, arguments)
        if self._crash_after is not None:
            self._crash_after -= 1
            if self._crash_after == 0:
                self._crash()
        result = self.ran[call.id] = Result(call.id, text, error)
        return result

    def _scripted(self, call: Call, arguments: str) -> tuple[str, bool]:
        """The answer to a call where the script has one of its own."""
        if call.tool == DELEGATE_TOOL:
            self._run_child(call)
        arm = None
        for candidate in self._arms:
            if candidate.tool == call.tool and candidate.arguments == call.arguments:
                arm = candidate
        if arm is not None and arm.settles is not None:
            for tool, values in self.world.settle_calls(arm.settles, f"wait-{self._serial}"):
                self.world.call(tool, values)
        return self._replied(call.tool, arguments, arm.reply if arm else None)

    def _run_child(self, call: Call) -> None:
        """Run the first child of these arguments that has not run; each delegate call has its own."""
        for child in self._children:
            if child.arguments == call.arguments:
                for tool, arguments, reply in child.calls:
                    self._replied(tool, arguments, reply)
                self._children = tuple(other for other in self._children if other is not child)
                return

    def _perform(self, tool: str, arguments: str) -> tuple[str, bool]:
        """What the world does and answers."""
        values = parse_arguments(arguments)
        if values is None:
            return f"{tool}: the arguments are not valid JSON", True
        try:
            outcome = self.world.perform(tool, values)
        except Exception as error:
            raise ToolFailed(f"tool {tool} raised {type(error).__name__}: {error}") from error
        return outcome.text, outcome.error

    def _replied(self, tool: str, arguments: str, reply: Reply | None) -> tuple[str, bool]:
        """What the script has the tool do and answer."""
        values = parse_arguments(arguments)
        if reply is None or values is None:
            return self._perform(tool, arguments)
        effect = reply.effective
        if tool == DELEGATE_TOOL:
            return reply.text or "", reply.error
        if effect == "applied":
            text, error = self._perform(tool, arguments)
        elif reply.text is None:
            probe = self.world.fork()
            outcome = probe.call(tool, values)
            probe.close()
            text, error = outcome.text, outcome.error
        if effect == "late":
            self._late = (*self._late, (2, tool, arguments))
        if reply.text is not None:
            return reply.text, reply.error
        return (f"{tool}: failed", True) if reply.error else (text, error)

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
        copy.crashes = False
        copy._crash_after = None
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
        return self.world.key(), self.state, pending, self.faulted, self.previous.model, self._late


def _keyed(arguments: str, key: str) -> str:
    """A call's arguments with another key; broken ones stay as they are."""
    values = parse_arguments(arguments)
    return arguments if values is None else json.dumps({**values, "key": key})
