"""The scripted side of an episode: player, world and observer, behind requests and tool calls."""

from __future__ import annotations

from collections.abc import Hashable

from evalkit.containment.folders import NoRoom
from evalkit.core.channels import is_decision, skip_told
from evalkit.core.decisions import Ending
from evalkit.core.events import Approves, Compacts, Event, UserWrites, with_words
from evalkit.core.keys import with_key
from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import FINISH_TOOL, Offered, Task
from evalkit.core.traces import Trace
from evalkit.core.turns import Call, Turn, count_tokens, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL, Arm, Child, freshen
from evalkit.scenarios.moves import Reply
from evalkit.scenarios.player import Player, PlayerState
from evalkit.worlds import Outcome, World, action_of

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
        #: Whether a call whose effect stands, or is still to come, is answered from the record of it.
        self.careful = False
        #: A crash that is due when so many more calls have run.
        self._crash_after: int | None = None
        self._first = True
        self._idle = 0
        self._serial = 0
        self._arms: tuple[Arm, ...] = ()
        self._children: tuple[Child, ...] = ()
        self._late: tuple[tuple[int, str, str], ...] = ()
        self._prompt_tokens = prompt_tokens
        #: Words that the user has for the next end of turn, and whether the user has gone.
        self._waiting: tuple[UserWrites, ...] = ()
        self._gone = False
        #: What happened to the run from outside, with the number of turns it came after.
        self.happened: tuple[tuple[int, Event], ...] = ()

    @property
    def eventful(self) -> bool:
        """Whether anything may happen to the harness from outside, crashes aside."""
        return self.player.eventful

    @property
    def offered(self) -> Offered:
        """The channels that the harness offers the model."""
        return self.player.script.offered

    def ask(self, request: Request) -> Turn:
        """The model's answer: a turn, or one of kind ``failed`` or ``in_progress`` that is not a turn."""
        previous = self.previous
        trace = self.trace
        if trace is not None:
            trace.asked(request)
            if trace.last is not None:
                self._resolved_by(trace, request)
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
        if request.shortened:
            # Prompt and last turn stand, as after a compaction.
            last = previous.turn if request.echo is not None else None
            self.conversation = self._prompt_tokens + (last.tokens if last is not None else 0)
        if not request.again:
            if request.echo is None and not request.shortened and previous.turn is not None:
                self.conversation -= previous.turn.tokens
            for result in request.results:
                self.conversation += count_tokens(result.text)
            if request.text:
                self.conversation += count_tokens(request.text)
        self.state, emitted = self.player.advance(self.state, moved, self.task.seed)
        while emitted.event:
            if emitted.happens is None and self.crashes:
                self._crash()
            if isinstance(emitted.happens, Approves):
                self.world.approve(emitted.happens.items)
            self.state, emitted = self.player.advance(self.state, None, self.task.seed)
        turn = emitted.turn
        self.path = emitted.path
        self.stall_s = emitted.stall_s
        if turn.kind == "failed" or turn.kind == "in_progress":
            self.faulted = turn.kind == "failed"
            self.previous = Delivered(previous.turn, request.limit, request.model)
            if trace is not None:
                trace.no_turn(turn, emitted.cause)
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
        skipped = skip_told(turn, self.offered)
        if skipped:
            self.world.skip(self.task.items_of(skipped))
        if trace is not None:
            trace.delivered(turn, conversation + turn.tokens, emitted.cause)
            called = trace.called
            for action in emitted.actions:
                called[action] = called.get(action, 0) + 1
        self.conversation = conversation + turn.tokens
        return turn

    def _resolved_by(self, trace: Trace, request: Request) -> None:
        """What the harness made of the last turn is known: it asks with ``request``."""
        world = self.world
        trace.resolved(world.progress(), world.holds(), request, self.ran)

    # Events

    def happens(self, request: Request) -> tuple[Event, ...]:
        """What happens before a request is made. Words of the user's are to be added to it.

        The user writes between turns, or waits for an end of turn; the model's move before an event is over
        when the request, the words included, gets past it.
        """
        turn = self.previous.turn
        ended = turn is None or is_decision(turn, self.offered)
        released: tuple[Event, ...] = self._waiting if ended else ()
        state, found, waiting = self._through_events(request, released, ended=ended)
        if self.trace is not None and self.trace.last is not None and found:
            # Before the world is asked for more, and before the user's words stand in the request.
            self._resolved_by(self.trace, request)
        self._commit(state, found, waiting if ended else (*self._waiting, *waiting))
        return found

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after a harness has ended, where the user then writes; nothing where nobody does.

        ``request`` is what it would ask with to go on.
        """
        state, found, waiting = self._through_events(request, self._waiting, ended=True)
        if not any(isinstance(event, UserWrites) for event in found):
            return ()
        trace, world = self.trace, self.world
        if trace is not None:
            trace.ended(world.progress(), world.holds(), ending.kind, self.ran)
        self.faulted = False
        self._commit(state, found, waiting)
        return found

    def _through_events(
        self, request: Request, found: tuple[Event, ...], *, ended: bool
    ) -> tuple[PlayerState, tuple[Event, ...], tuple[UserWrites, ...]]:
        """The script behind the events that come next, those that happen now, and words that have to wait."""
        player, state, seed = self.player, self.state, self.task.seed
        waiting: tuple[UserWrites, ...] = ()
        gone = self._gone
        while (step := player.upcoming(state, seed)) is not None and step[1].event:
            reached, emitted = step
            event = emitted.happens
            if event is None and self.crashes:
                break
            words = isinstance(event, UserWrites)
            waits = words and emitted.at_end and not ended
            with_it = found if event is None or waits or (words and gone) else (*found, event)
            asked = stimulus(self.previous, with_words(request, with_it), FINISH_TOOL)
            if not self._first and not player.is_over(state, asked):
                break
            state, found = reached, with_it
            if isinstance(event, UserWrites):
                waiting = (*waiting, event) if waits and not gone else waiting
                gone = gone or event.closes
        return state, found, waiting

    def _commit(self, state: PlayerState, found: tuple[Event, ...], waiting: tuple[UserWrites, ...]) -> None:
        self.state = state
        self._waiting = waiting
        for event in found:
            self.happened = (*self.happened, (self.turns, event))
            if isinstance(event, Approves):
                self.world.approve(event.items)
            elif isinstance(event, Compacts):
                # Prompt and last turn stand; what is sent with this request comes on top.
                last = self.previous.turn
                self.conversation = self._prompt_tokens + (last.tokens if last is not None else 0)
            else:
                self._gone = self._gone or event.closes
                if self.trace is not None:
                    self.trace.user_wrote(bool(event.asks))
                self.world.ask(event.asks)

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
        if self.trace is not None:
            self.trace.runs(turn, call)
        arguments = call.arguments if key is None else with_key(call.arguments, key)
        known = self._recorded(call.tool, arguments) if self.careful else None
        if known is not None:
            text, error = known.text, known.error
        elif self._arms or call.tool == DELEGATE_TOOL:
            text, error = self._scripted(call, arguments)
        else:
            text, error = self._perform(call.tool, arguments)
        result = self.ran[call.id] = Result(call.id, text, error)
        if self._crash_after is not None:
            self._crash_after -= 1
            if self._crash_after == 0:
                self._crash()
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
                    if not self.careful or self._recorded(tool, arguments) is None:
                        self._replied(tool, arguments, reply)
                self._children = tuple(other for other in self._children if other is not child)
                return

    def _recorded(self, tool: str, arguments: str) -> Outcome | None:
        """The answer to a call whose effect was had, or was accepted and will be had."""
        coming = [
            action
            for _, late, text in self._late
            if (action := action_of(self.task.tools.get(late), parse_arguments(text))) is not None
        ]
        values = parse_arguments(arguments)
        return None if values is None else self.world.recorded(tool, values, coming)

    def _perform(self, tool: str, arguments: str) -> tuple[str, bool]:
        """What the world does and answers."""
        values = parse_arguments(arguments)
        if values is None:
            return f"{tool}: the arguments are not valid JSON", True
        try:
            outcome = self.world.perform(tool, values)
        except NoRoom:
            # evalkit's own failure, and not the tool's.
            raise
        except Exception as error:
            raise ToolFailed(f"tool {tool} raised {type(error).__name__}: {error}") from error
        if outcome.action is not None and self.trace is not None:
            self.trace.had_effect(outcome.action)
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
                self._perform(tool, arguments)
        self._late = tuple(waiting)

    def settle(self) -> None:
        """Let accepted effects land: the run is over."""
        for _, tool, arguments in self._late:
            self._perform(tool, arguments)
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

    def place(self) -> tuple[int, ...]:
        """How far the script has come; greater is nearer to its end."""
        return self.player.place(self.state)

    def key(self) -> Hashable:
        """(world, player, pending turn): all that the future depends on, given the harness."""
        turn = self.previous.turn
        pending: Hashable = None
        if turn is not None:
            # Which move a turn came from says what is in it; its ids and keys are not part of the state.
            pending = (self.path, turn.kind, tuple(call.id in self.ran for call in turn.calls))
        outside = (self._waiting, self._gone, self.world.all)
        return self.world.key(), self.state, pending, self.faulted, self.previous.model, self._late, outside
