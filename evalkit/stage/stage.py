"""The scripted side of an episode: player, world and observer, behind requests and tool calls."""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from evalkit.core.events import Approves, Compacts, UserWrites
from evalkit.core.keys import with_key
from evalkit.core.requests import Delivered, Request, Result, stimulus
from evalkit.core.tasks import Limits, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Text, Turn, make_turn, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL, Emission, freshen
from evalkit.scenarios.player import Player
from evalkit.stage.child_conversation import ChildConversation
from evalkit.stage.compactor import WINDOW_FULL
from evalkit.stage.conversation import Answered
from evalkit.stage.events import Events, Words
from evalkit.worlds import World

#: Requests without a turn between (faults, polls) after which the time limit has passed.
IDLE_CAP = 1000

_NOTHING = Request()
_NOTHING_YET = Emission(make_turn((), "unknown"), "", "")


class NeverEnds(Exception):
    """evalkit's own cap had to end the run."""


class Stage(Events):
    """One episode as the harness meets it: :meth:`ask` for turns, :meth:`run` for the world's tools.

    ``cap`` is the number of model turns after which a further request raises :class:`NeverEnds`. What calls
    do, child agents, the conversation and events stand in a module each, every one on the one before it.
    """

    # Slots: of a dict with more than thirty names Python neither shares the keys nor finds them as fast.
    __slots__ = (
        "__dict__",  # what an observer puts in the place of a method
        "_emitted",
        "cap",
    )

    def __init__(
        self, player: Player, world: World, task: Task, trace: Trace | None, cap: int, prompt_tokens: int
    ) -> None:
        super().__init__(player, world, task, trace, prompt_tokens)
        self.cap = cap
        #: The script's last delivery.
        self._emitted = _NOTHING_YET

    @property
    def path(self) -> str:
        """The move that made the last answer."""
        return self._emitted.path

    @property
    def stall_s(self) -> float:
        """How long the last answer, a fault, stays silent."""
        return self._emitted.stall_s

    @property
    def begun(self) -> Turn | None:
        """What the last answer, a fault, broke off."""
        return self._emitted.begun

    @property
    def looks(self) -> bool:
        """Whether what a request shows as done matters: to the model, or for a summary."""
        return self.player.shows

    @property
    def reports(self) -> int:
        """The input tokens that the next answer reports at least: they make a program compact."""
        return self.compactor.reports if self.compactor is not None else 0

    @property
    def delegates(self) -> bool:
        """Whether the model hands shares of the work to child agents, and so has to be offered the tool."""
        return self.player.delegates

    @property
    def played_out(self) -> bool:
        """Whether the last answer was none of the script's, which has ended."""
        return self.player.has_ended(self.state)

    def ask(self, request: Request) -> Turn:
        """The model's answer: a turn, or one of kind ``failed`` or ``in_progress`` that is not a turn."""
        trace = self.trace
        elsewhere = request.lost or request.after is not None
        if trace is not None:
            trace.requests += 1
            if trace.last is None:
                trace.asked_anew(request)
            else:
                settled, held = self.world.standing()
                trace.resolved(settled, held, _NOTHING if elsewhere else request, self.ran)
        if self._late:
            self._land()
        player = self.player
        unusual = player.unusual
        if unusual and (self._crash_after is not None or self._crash_answered):
            self._crash()
        if self.turns >= self.cap or self._idle >= IDLE_CAP:
            raise NeverEnds
        if elsewhere:
            self._stand(request)
        previous = self.previous
        carried = self._carried(request)
        if unusual and player.shows:
            self._shown |= self._shows(request)
            if self._looked is not None:
                self._shown, self._looked = self._looked, None
        moved = None
        if self._first:
            self._first = False
        elif player.listens(self.state):
            moved = stimulus(previous, request, self._finish_tool, carried)
        seed, shown = self.task.seed, self._shown
        compactor = self.compactor
        shorter = compactor is not None and request.shortened and not elsewhere
        if compactor is not None and compactor.due:
            if shorter:
                self._compaction_landed(compactor)
                shorter = False
            if compactor.refuses:
                return self._window_is_full(request, carried)
        self.state, emitted = player.advance(self.state, moved, seed, shown)
        crash_reply = False
        while emitted.event:
            self._meet()
            if (
                compactor is not None
                and isinstance(emitted.happens, Compacts)
                and compactor.meet(emitted.about)
            ):
                return self._window_is_full(request, carried)
            if emitted.happens is None and self.crashes:
                self.crash_wait = emitted.about.wait
                if emitted.about.at != "reply":
                    self._crash()
                crash_reply = True
            elif isinstance(emitted.happens, UserWrites):
                self._put_off(Words(emitted.happens, emitted.about.when))
            if isinstance(emitted.happens, Approves) and not self.asks_person:
                self.world.approve(emitted.happens.items)
            self.state, emitted = player.advance(self.state, None, seed, shown)
        if compactor is not None and shorter:
            self._compaction_landed(compactor)
        self._emitted = emitted
        turn = emitted.turn
        kind = turn.kind
        if kind == "failed" or kind == "in_progress":
            self._meet()
            self._idle += 1
            self.faulted = kind == "failed"
            self.previous = Delivered(previous.turn, request.limit, request.model, previous.number, carried)
            if trace is not None:
                trace.no_turn(turn, emitted.label)
            return turn
        if emitted.fresh:
            emitted = freshen(emitted, f"{self._serial + 1}")
            turn = emitted.turn
        self._arms = emitted.arms
        self._children = emitted.children
        if self._helped or self._helping:
            self._helping, self._helped = (), {}
        self._idle = 0
        self.faulted = False
        self.ran = {}
        self.turns += 1
        self.previous = Delivered(turn, request.limit, request.model, self.turns, carried)
        self._history = carried
        self.input_tokens += carried
        self.output_tokens += turn.tokens
        if emitted.skips:
            self.world.skip(self.task.items_of(emitted.skips))
        if trace is not None:
            actions = self._anew(emitted.actions) if self._forgotten else emitted.actions
            trace.delivered(turn, carried + turn.tokens, emitted.label, None, actions)
        if unusual or self.remembers:
            self._compacted = False
            self._noted(turn, emitted, previous.number)
            if crash_reply and self.remembers:
                self.crash_delivered = self._crashed = True
            elif crash_reply:
                self._crash()
        return turn

    def _window_is_full(self, request: Request, carried: int) -> Turn:
        """The answer to a program that compacts when a request does not fit."""
        previous, self.faulted = self.previous, True
        self._idle += 1
        self.previous = Delivered(previous.turn, request.limit, request.model, previous.number, carried)
        if self.trace is not None:
            self.trace.no_turn(WINDOW_FULL, "")
        return WINDOW_FULL

    def _noted(self, turn: Turn, emitted: Emission, parent: int) -> None:
        """What a stage at the end of a wire, and scripts with events, keep of a turn."""
        crash_after = self._crash_within(emitted) if self.crashes else None
        if self.remembers:
            self._answered.append(Answered(self.state, self.previous, parent, self._met, emitted.actions))
        if self._waiting:
            self._waiting = tuple(words.after_turn() for words in self._waiting)
        if self.remembers and self.player.eventful:
            self._look_for_words()
        if self.compactor is not None:
            self.compactor.foresee(self._compactions_next())
        if self.player.approves:
            self._foresee_approval()
        if self.crashes:
            self._crash_after = crash_after
            self._foresee_crash(turn)

    def run(self, call: Call, key: str | None = None, instead: str | None = None) -> Result:
        """Run a call of the last turn on the world; an unknown tool or broken arguments are an error.

        ``key`` is the harness's own idempotency key, put in the place of the model's; ``instead`` are the
        arguments that a person put in the place of the model's.
        """
        self._begins(call)
        arguments = instead or (call.arguments if key is None else with_key(call.arguments, key))
        if call.tool == DELEGATE_TOOL:
            helped = self._help(call)
            if helped is not None:
                result = self.ran[call.id] = Result(call.id, *helped)
                return result
        walls = self.world.walls
        known = self._recorded(call.tool, arguments) if self.careful else None
        if known is not None:
            text, error = known.text, known.error
        elif self._arms or (self._decisions is not None and not self.asks_person):
            text, error = self._scripted(call, arguments)
        else:
            text, error = self._perform(call.tool, arguments)
        result = self.ran[call.id] = Result(call.id, text, error)
        if error and self.world.walls > walls and self.trace is not None:
            self.trace.met_wall()
        if self.compactor is not None and not error:
            self._tell(call, arguments, text)
        if self._crash_after is not None:
            self._has_run(call)
        return result

    def _begins(self, call: Call) -> None:
        """The harness has a call of the last turn run."""
        if self._crash_after == 0:
            self._crash()
        turn = self.previous.turn
        if self.trace is not None:
            begun = self._emitted.begun
            if begun is not None:
                turn = self._broken(begun, turn, call)
            self.trace.runs(turn, call)
        if self.player.unusual:
            self._waiting = tuple(words.after_call() for words in self._waiting)
            self._sayable = self._sayable.after_call() if self._sayable is not None else None

    def _has_run(self, call: Call) -> None:
        """A call has had its effect, where one of the turn is to be the harness's last."""
        assert self._crash_after is not None
        self._crash_after -= 1
        if self._crash_after == 0:
            # Its effect has happened, and nobody was told.
            del self.ran[call.id]
            self._crash()

    # Child agents whose harness asks for their turns itself

    def child(self, call: Call, within: ChildConversation | None = None) -> ChildConversation | None:
        """The conversation of the child agent of a delegate call; None where the script has none for it.

        ``within``: the call is a child's own.
        """
        child = self._child_for(call) if within is None else within.waiting(call)
        if child is None:
            return None
        if within is None:
            self._begins(call)
        helping = self._beginning(call, child)
        if within is None:
            self._helping = (*self._helping, helping)
        name = str((parse_arguments(call.arguments) or {}).get("name", ""))
        return ChildConversation(self, call, name, helping, within)

    def child_asks(self, child: ChildConversation, request: Request) -> Turn:
        """The answer to a request of a child agent's conversation."""
        self._forget(child.stand(request))
        carried = child.carries(request)
        if child.answer is not None and request.lost:
            # Who has forgotten the conversation is told what came of it.
            turn = make_turn((Text(child.answer),), "end_turn")
            self._spend(carried, Emission(turn, "", ""))
            self._child_ended(child)
            return turn
        helping = child.helping
        state, emitted = self._emit(helping, child.moved(request, carried, self._finish_tool))
        if self._over(helping, state):
            emitted = self.player.over
        turn = emitted.turn
        after = msgspec.structs.replace(helping, state=state, number=helping.number + 1, carried=carried)
        if turn.is_no_turn:
            child.no_turn(request, emitted, after)
        else:
            self._spend(carried, emitted)
            child.delivered(request, emitted, after, carried)
        self._helps(child)
        if child.answer is None and child.ends_with(turn):
            self._child_ended(child)
        return turn

    def child_runs(self, child: ChildConversation, call: Call) -> Result:
        """Run a call of a child agent's last turn on the world."""
        helping = child.helping
        if call not in helping.open and self.trace is not None:
            # Of a turn that was cut off or refused, run already, or called by nobody.
            self.trace.runs(child.previous.turn, call)
        result = Result(call.id, *self._call_of(helping, call))
        child.has_run(call, result)
        self._helps(child)
        return result

    def _helps(self, child: ChildConversation) -> None:
        """Keep where a child agent stands, for who goes on from here; a child's own are within its call."""
        self._helping = tuple(
            child.helping if helping.call == child.call.id else helping for helping in self._helping
        )

    def _child_ended(self, child: ChildConversation) -> None:
        """A child agent has said its last words: the call that it worked in is answered with them."""
        result = Result(child.call.id, child.answer or "")
        if child.within is not None:
            child.within.has_run(child.call, result)
            return
        self._helping = tuple(helping for helping in self._helping if helping.call != child.call.id)
        turn = self.previous.turn
        if turn is None or child.call not in turn.calls:
            return
        self._helped = {**self._helped, child.call.arguments: result.text}
        self.ran[child.call.id] = result
        if self._crash_after is not None:
            self._has_run(child.call)

    @staticmethod
    def _broken(begun: Turn, turn: Turn | None, call: Call) -> Turn | None:
        """The turn that a call is of: what stands in an answer that broke off is cut off."""
        known = turn is not None and call in turn.calls
        return turn if known else make_turn(begun.content, "max_tokens")

    def fork(self) -> Stage:
        """An independent copy without observer, for asking what could still happen. It has no cap."""
        copy = object.__new__(Stage)
        for name in STAGE_SLOTS:
            setattr(copy, name, getattr(self, name))
        copy.world = self.world.fork()
        copy.ran = dict(self.ran)
        for helping in self._helping:
            # Who goes on from here, without limits, lets the helper go on.
            copy.ran.pop(helping.call, None)
        copy.trace = None
        copy.crashes = False
        copy.compactor = None
        # Who goes on from here is told of decisions, and asks nobody.
        copy.asks_person = False
        copy.remembers = False
        copy.limits = Limits()
        copy._forgotten = {}
        copy._crash_after = None
        copy._crash_answered = copy._crash_waiting = False
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
        shown = self._shown if self.player.reads else 0
        outside = (self._waiting, self._gone, self.world.all, shown, self._helping)
        return self.world.key(), self.state, pending, self.faulted, self.previous.model, self._late, outside


#: What a copy of a stage takes over.
STAGE_SLOTS = tuple(
    name for part in Stage.__mro__ for name in getattr(part, "__slots__", ()) if name != "__dict__"
)
