"""The scripted side of an episode: player, world and observer, behind requests and tool calls."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.containment.folders import NoRoom
from evalkit.core.channels import finish_call, is_decision, is_own, world_calls
from evalkit.core.decisions import Ending
from evalkit.core.events import (
    Approves,
    Compacts,
    Crashed,
    Event,
    UserWrites,
    shown_done,
    summary_text,
    with_words,
)
from evalkit.core.keys import with_key
from evalkit.core.prices import over_budget
from evalkit.core.requests import Delivered, Request, Result, Stimulus, stimulus
from evalkit.core.tasks import FINISH_TOOL, Limits, Offered, Task, occurs_whole
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, count_tokens, make_turn, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL, Arm, Child, Emission, freshen
from evalkit.scenarios.moves import ApproveSpec, CompactSpec, CrashSpec, Reply
from evalkit.scenarios.player import Player, PlayerState
from evalkit.stage.compactor import WINDOW_FULL, Compactor
from evalkit.worlds import Outcome, World, action_of

#: Requests without a turn between (faults, polls) after which the time limit has passed.
IDLE_CAP = 1000


#: Deliveries after which a child agent that never ends is over.
HELPER_CAP = 100

Moment: TypeAlias = Literal["turn", "pause", "decision", "ending"]
#: Moments of a crash that lie between two requests.
_BETWEEN = frozenset(("answered", "ended"))
_NOTHING = Request()
_NO_ENTRIES: Mapping[Any, Any] = MappingProxyType({})
_NOTHING_YET = Emission(make_turn((), "unknown"), "", "")
#: What a child agent's next request is to its model: the same conversation, extended.
_AGAIN = Stimulus("on", False, False, False, False, False, False, "")


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What helpers have spent within calls, in turns and tokens."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def more(self, read: int, wrote: int) -> Spent:
        """The same after one more turn."""
        return Spent(self.turns + 1, self.input_tokens + read, self.output_tokens + wrote)


_NOTHING_SPENT = Spent()


class Words(msgspec.Struct, frozen=True, gc=False):
    """A user's message that could not be said yet. ``due``: what it waits for beside its moment has come."""

    event: UserWrites
    when: str
    due: bool = False

    def fit(self, moment: Moment) -> bool:
        """Whether it can be said at a moment: never during a pause, only ``ended`` after an ending."""
        if self.when == "ended":
            return moment in ("decision", "ending")
        return moment in ("turn", "decision") and (self.due or self.when == "between_turns")

    def after_call(self) -> Words:
        """The same when a call has run."""
        return Words(self.event, self.when, True) if self.when == "in_tool" else self

    def after_turn(self) -> Words:
        """The same when a turn has come."""
        return Words(self.event, self.when, True) if self.when == "in_turn" else self


class Helping(msgspec.Struct, frozen=True, gc=False):
    """A child agent at work within a call: where its script stands, and what its next request carries."""

    call: str
    child: Child
    state: PlayerState
    carried: int
    moved: Stimulus | None = None
    number: int = 0
    said: str = ""
    refused: bool = False


class NeverEnds(Exception):
    """evalkit's own cap had to end the run."""


class ToolFailed(Exception):
    """A tool of a user's world raised."""


class Answered(msgspec.Struct, frozen=True, gc=False):
    """A request that a turn answered: the script after it, the turn, and what it carried.

    ``parent`` is the number of the turn that it went on from, ``met`` the faults and events met by then,
    ``actions`` the logical actions that the turn asked for.
    """

    state: PlayerState
    delivered: Delivered
    parent: int
    met: Mapping[int, int]
    actions: tuple[str, ...]


class Stage:
    """One episode as the harness meets it: :meth:`ask` for turns, :meth:`run` for the world's tools.

    ``cap`` is the number of model turns after which a further request raises :class:`NeverEnds`.
    """

    # Slots: of a dict with more than thirty names Python neither shares the keys nor finds them as fast.
    __slots__ = (
        "__dict__",  # what an observer puts in the place of a method
        "_answered",
        "_arms",
        "_children",
        "_compacted",
        "_crash_after",
        "_crash_answered",
        "_crash_waiting",
        "_crashed",
        "_decisions",
        "_emitted",
        "_fetched",
        "_finish_tool",
        "_first",
        "_forgotten",
        "_given_up",
        "_gone",
        "_helped",
        "_helping",
        "_history",
        "_idle",
        "_late",
        "_looked",
        "_met",
        "_passed",
        "_prompt_tokens",
        "_sayable",
        "_shown",
        "_told",
        "_waiting",
        "asks_person",
        "cap",
        "careful",
        "compactor",
        "crash_delivered",
        "crash_wait",
        "crashes",
        "faulted",
        "happened",
        "helpers",
        "input_tokens",
        "limits",
        "output_tokens",
        "player",
        "previous",
        "ran",
        "remembers",
        "state",
        "summaries",
        "task",
        "trace",
        "turns",
        "world",
    )

    def __init__(
        self, player: Player, world: World, task: Task, trace: Trace | None, cap: int, prompt_tokens: int
    ) -> None:
        self.previous = Delivered()
        self.turns = 0
        self.input_tokens = 0
        self.output_tokens = 0
        #: What helpers within a call have spent, a part of the tokens above.
        self.helpers = _NOTHING_SPENT
        self.faulted = False
        #: The script's last delivery.
        self._emitted = _NOTHING_YET
        #: Whether the harness can be killed and resumed; where it cannot, crashes are left out of the script.
        self.crashes = False
        #: Whether a call whose effect stands, or is still to come, is answered from the record of it.
        self.careful = False
        #: Whether a request may stand at an earlier turn than the last, so that all have to be remembered.
        self.remembers = False
        #: What the model has said when it was asked to sum the conversation up.
        self.summaries: tuple[str, ...] = ()
        self._crashed = False
        #: A crash that is due when so many more calls have run, and whether one is due before a request.
        self._crash_after: int | None = None
        self._crash_answered = False
        #: Whether a crash is due when calls are laid before a person.
        self._crash_waiting = False
        #: Of the crash that is due: milliseconds between its moment and the kill, and whether that moment is
        #: the delivery of the last turn, where whoever drives can be killed behind it.
        self.crash_wait = 0
        self.crash_delivered = False
        #: The script's next event, looked ahead for: words that can be said while the harness works.
        self._sayable: Words | None = None
        self._fetched = False
        self._first = True
        #: Requests in a row that no turn has answered.
        self._idle = 0
        self._arms: tuple[Arm, ...] = ()
        self._children: tuple[Child, ...] = ()
        self._helping: Helping | None = None
        self._late: tuple[tuple[int, str, str], ...] = ()
        #: Items that the conversation shows as done, where the script looks, and those that the next request
        #: as a whole shows, where somebody has looked; what tools answered when an item was done.
        self._shown = 0
        self._looked: int | None = None
        self._told: Mapping[str, int] = _NO_ENTRIES
        #: What makes a program compact its conversation; None where the driver is told of a compaction.
        self.compactor: Compactor | None = None
        self._compacted = False
        #: Words that the user has and could not say yet, and whether the user has gone.
        self._waiting: tuple[Words, ...] = ()
        self._gone = False
        #: What happened to the run from outside, with the number of turns it came after.
        self.happened: tuple[tuple[int, Event], ...] = ()
        #: What a person decides about the gated calls of the last turn.
        self._decisions: ApproveSpec | None = None
        #: Whether the harness lays gated calls before a person itself; else each decision just comes.
        self.asks_person = False
        #: What helpers have said, by the arguments of the call.
        self._helped: Mapping[str, str] = _NO_ENTRIES
        #: The last turns of conversations that were left behind, and how many turns were counted for it.
        self._given_up: Mapping[int, int] = _NO_ENTRIES
        #: How often each fault and event came, by its place in the script.
        self._met: Mapping[int, int] = _NO_ENTRIES
        self.player = player
        self.world = world
        self.task = task
        self.trace = trace
        self.cap = cap
        self.state: PlayerState = player.start
        #: A call of one that is not offered is answered like that of any unknown tool.
        self._finish_tool = FINISH_TOOL if player.script.offered.finish else ""
        self.ran: dict[str, Result] = {}
        #: The limits that bind, the harness's own included; a helper stops at them within its call.
        self.limits = task.limits
        self._prompt_tokens = prompt_tokens
        #: Tokens of the conversation that the next request goes on from, its last turn aside.
        self._history = prompt_tokens
        self._answered: list[Answered] = []
        #: Where the events stand that are about to happen.
        self._passed: list[int] = []
        #: Calls that the model may make again without asking for more: a history that held them is gone.
        self._forgotten: dict[str, int] = {}

    @property
    def tokens(self) -> int:
        """Tokens so far, in and out."""
        return self.input_tokens + self.output_tokens

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
    def _serial(self) -> int:
        """The number of the last turn, those of helpers counted: what makes keys and nonces fresh."""
        return self.turns + self.helpers.turns

    @property
    def eventful(self) -> bool:
        """Whether anything may happen to the harness from outside between its turns."""
        return self.player.eventful or (self.crashes and not self.player.crashes.isdisjoint(_BETWEEN))

    @property
    def offered(self) -> Offered:
        """The channels that the harness offers the model."""
        return self.player.script.offered

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
        if self._helped or self._helping is not None:
            self._helping, self._helped = None, {}
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

    def _compaction_landed(self, compactor: Compactor) -> None:
        """A request shows that the program has compacted: what the model knows is what stands in it."""
        summary = self.summaries[-1] if self.summaries else ""
        if compactor.land():
            self.happened = (*self.happened, (self.turns, Compacts(summary)))
        if self.trace is not None:
            self._forgotten = dict(self.trace.called)

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
            self._crash_after = emitted.crash_after
            self._foresee_crash(turn)

    def _anew(self, actions: tuple[str, ...]) -> tuple[str, ...]:
        """The actions asked for, but for those that the model asks for again, a history being gone."""
        forgotten, found = self._forgotten, []
        for action in actions:
            if forgotten.get(action):
                forgotten[action] -= 1
            else:
                found.append(action)
        return tuple(found)

    def _meet(self) -> None:
        """Remember a fault or event that came: whoever begins again does not meet it again."""
        if self.remembers:
            pc = self.state.pc
            self._met = {**self._met, pc: self._met.get(pc, 0) + 1}

    # Where a request stands

    def _carried(self, request: Request) -> int:
        """Tokens that a request carries: history, the turn it sends back, and what it adds."""
        if request.shortened:
            self._history = self._prompt_tokens + request.history
        carried, turn = self._history, self.previous.turn
        if request.echo is not None and turn is not None:
            carried += turn.tokens
        for result in request.results:
            carried += count_tokens(result.text)
        return carried + count_tokens(request.text) if request.text else carried

    def _stand(self, request: Request) -> None:
        """Put the script where the harness stands, if that is not behind the last turn."""
        place = stimulus(self.previous, request, self._finish_tool).place
        trace = self.trace
        if place == "on" or self._compacted:
            return
        if place == "lost":
            # A helper's own conversation is none of the task's.
            if not request.beside:
                if trace is not None:
                    trace.began_anew()
                if self._restarts:
                    self._go_back(0)
            return
        assert request.after is not None
        forgotten = self._descendants(request.after)
        if trace is not None:
            if request.after in self._given_up:
                # What seemed to be forgotten goes on: two conversations beside each other.
                given_up = dict(self._given_up)
                trace.rolled_back -= given_up.pop(request.after)
                self._given_up = given_up
                trace.branched(request.after)
            elif request.beside:
                trace.branched(request.after)
            else:
                trace.went_back(request.after, len(forgotten))
                if not request.after:
                    trace.began_anew()
                if forgotten:
                    self._given_up = {**self._given_up, forgotten[0]: len(forgotten)}
        self._go_back(request.after, forgotten)

    @property
    def _restarts(self) -> bool:
        """Whether the script begins again for a harness that has forgotten the conversation."""
        return self.player.starts_over or (self._crashed and self.player.may_start_over)

    def _descendants(self, number: int) -> tuple[int, ...]:
        """The turns of the newest conversation that went on from an answered turn."""
        for last in range(len(self._answered), number, -1):
            path, at = [], last
            while at > number:
                path.append(at)
                at = self._answered[at - 1].parent
            if at == number:
                return tuple(path)
        return ()

    def _go_back(self, number: int, forgotten: tuple[int, ...] | None = None) -> None:
        """The script as it was after an answered turn, but for what was met and told since."""
        met: Mapping[int, int] = {}
        state, self.previous, self._history = self.player.start, Delivered(), self._prompt_tokens
        if number:
            at = self._answered[number - 1]
            state, self.previous, self._history = at.state, at.delivered, at.delivered.carried
            met = at.met
        since = {pc: count - met.get(pc, 0) for pc, count in self._met.items() if count > met.get(pc, 0)}
        spared = dict(state.spared)
        for pc, count in since.items():
            spared[pc] = spared.get(pc, 0) + count
        self.state = msgspec.structs.replace(
            state, asked=self.world.all, spared=tuple(sorted(spared.items()))
        )
        self.ran = {}
        self._shown = 0
        if self.compactor is not None:
            self.compactor.look_away()
        self._first = number == 0
        for turn in forgotten if forgotten is not None else range(1, len(self._answered) + 1):
            self._forget(self._answered[turn - 1].actions)

    def _forget(self, actions: tuple[str, ...]) -> None:
        for action in actions:
            self._forgotten[action] = self._forgotten.get(action, 0) + 1

    # What a request shows as done

    def _shows(self, request: Request) -> int:
        """The items that what a request adds shows as done: by a result, or in a user's words."""
        turn, items = self.previous.turn, 0
        calls = {call.id: call for call in turn.calls} if turn is not None else {}
        for result in request.results:
            call = calls.get(result.id)
            tool = self.task.tools.get(call.tool) if call is not None else None
            if call is None or tool is None or not tool.does or result.error:
                continue
            arguments = parse_arguments(call.arguments) or {}
            items |= self.task.items_of_call(tool, arguments, result.text, result.error)
        if request.text:
            items |= self.task.items_of(shown_done(request.text, tuple(self.task.vocabulary)))
        return items

    def look(self, calls: Iterable[tuple[Call, Result]], text: str, *, held: bool) -> None:
        """Look through the next request as a whole for the items that it shows as done.

        ``calls`` are those that it holds with their results, ``text`` are its words. ``held``: it goes on
        from an answer, and holds only what it adds.
        """
        self._looked = self._showing(calls, text) | (self._shown if held else 0)

    def sum_up(self, calls: Iterable[tuple[Call, Result]], text: str, words: tuple[str, ...]) -> str:
        """What the model says when a program asks it to sum its conversation up: made from that request."""
        spec = self.compactor.spec if self.compactor is not None else CompactSpec()
        summary = self._summary(spec, self._showing(calls, text), words)
        if summary:
            self.summaries = (*self.summaries, summary)
        return summary

    def _showing(self, calls: Iterable[tuple[Call, Result]], text: str) -> int:
        """The items that calls with their results, and words, show as done."""
        items = self.task.items_of(shown_done(text, tuple(self.task.vocabulary)))
        for call, result in calls:
            tool = self.task.tools.get(call.tool)
            if tool is not None and tool.does and not result.error:
                arguments = parse_arguments(call.arguments) or {}
                items |= self.task.items_of_call(tool, arguments, result.text, result.error)
        if self._told:
            # A history that was put into words still holds what the tools answered.
            flat = " ".join(text.split())
            for told, bits in self._told.items():
                items |= bits if told in flat else 0
        return items

    def _summary(self, spec: CompactSpec, done: int, words: tuple[str, ...]) -> str:
        """What the model says when it is asked to sum the conversation up, ``done`` being what it sees."""
        if spec.summary == "empty":
            return ""
        if spec.summary != "faithful":
            return spec.summary
        names = self.world.asked()
        kept = [name for name in names if name not in spec.forgets]
        bits = self.world.vocabulary
        return summary_text(
            tuple(name for name in kept if done & bits[name]),
            tuple(name for name in kept if not done & bits[name]),
            words,
        )

    # Events

    def happens(self, request: Request) -> tuple[Event, ...]:
        """What happens before a request is made. Words of the user's are to be added to it.

        The user writes between turns, or waits for an end of turn; the model's move before an event is over
        when the request, the words included, gets past it. Words wait until a pause is over.
        """
        if self._crash_answered:
            self._crash()
        turn = self.previous.turn
        moment: Moment = "turn"
        if turn is not None and is_decision(turn, self.offered):
            moment = "decision"
        elif turn is not None and turn.kind == "pause" and request.echo is not None:
            moment = "pause"
        state, found, waiting = self._through_events(request, moment)
        if self.trace is not None and self.trace.last is not None and found:
            # Before the world is asked for more, and before the user's words stand in the request.
            self.trace.resolved(*self.world.standing(), request, self.ran)
        self._commit(state, found, waiting)
        return found

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after a harness has ended, where the user then writes; nothing where nobody does.

        ``request`` is what it would ask with to go on.
        """
        if self.crashes and not self._first:
            step = self.player.upcoming(self.state, self.task.seed, self._shown)
            if step is not None and isinstance(step[1].about, CrashSpec) and step[1].about.at == "ended":
                self.state = step[0]
                self._meet()
                self._crash()
        state, found, waiting = self._through_events(request, "ending")
        if not any(isinstance(event, UserWrites) for event in found):
            return ()
        trace, world = self.trace, self.world
        if trace is not None:
            trace.ended(world.progress(), world.holds(), ending.kind, self.ran)
        self.faulted = False
        self._commit(state, found, waiting)
        return found

    def _through_events(
        self, request: Request, moment: Moment
    ) -> tuple[PlayerState, tuple[Event, ...], tuple[Words, ...]]:
        """The script behind the events that come next, those that happen now, and words that have to wait.

        The user says one thing at a time, and first what has waited longest.
        """
        player, state, seed = self.player, self.state, self.task.seed
        waiting = list(self._waiting)
        found: tuple[Event, ...] = ()
        passed = self._passed = []
        said = False
        for words in self._waiting:
            if words.fit(moment):
                waiting.remove(words)
                found, said = (words.event,), True
                break
        gone = self._gone or any(isinstance(event, UserWrites) and event.closes for event in found)
        while (step := player.upcoming(state, seed, self._shown)) is not None and step[1].event:
            reached, emitted = step
            event = emitted.happens
            if event is None and self.crashes:
                break
            with_it = found
            later: Words | None = None
            if isinstance(event, Compacts):
                said_before = tuple(e.text for e in found if isinstance(e, UserWrites))
                seen = self._shown | self._shows(request)
                with_it = (*found, Compacts(self._summary(emitted.about, seen, said_before)))
            elif isinstance(event, UserWrites):
                later = Words(event, emitted.about.when)
                if gone:
                    later = None
                elif not said and not waiting and later.fit(moment):
                    with_it, later = (*found, event), None
            elif event is not None:
                with_it = (*found, event)
            if not self._first and not self._gets_past(state, request, with_it):
                break
            state, found = reached, with_it
            passed.append(reached.pc)
            if isinstance(event, UserWrites):
                said = said or event in found
                if later is not None:
                    waiting.append(later)
                gone = gone or (event.closes and later is None)
        return state, found, tuple(waiting)

    def _gets_past(self, state: PlayerState, request: Request, events: tuple[Event, ...]) -> bool:
        """Whether a request, with what happens before it, gets past the move that is played."""
        carries = self._carried(with_words(request, events))
        for event in events:
            if isinstance(event, Compacts):
                carries += self._prompt_tokens + count_tokens(event.summary) - self._history
        asked = stimulus(self.previous, with_words(request, events), self._finish_tool, carries)
        return self.player.is_over(state, asked)

    def _commit(self, state: PlayerState, found: tuple[Event, ...], waiting: tuple[Words, ...]) -> None:
        if self.remembers:
            for pc in self._passed:
                self._met = {**self._met, pc: self._met.get(pc, 0) + 1}
            self._passed = []
        for event in found:
            self.happened = (*self.happened, (self.turns, event))
            if isinstance(event, Approves):
                self.world.approve(event.items)
            elif isinstance(event, Compacts):
                # Prompt, summary and last turn stand; what is sent with this request comes on top.
                self._history = self._prompt_tokens + count_tokens(event.summary)
                self._shown = self.task.items_of(shown_done(event.summary, tuple(self.task.vocabulary)))
                self._compacted = True
                if event.summary:
                    self.summaries = (*self.summaries, event.summary)
                if self.trace is not None:
                    self._forgotten = dict(self.trace.called)
            else:
                self._gone = self._gone or event.closes
                if self.trace is not None:
                    self.trace.user_wrote(bool(event.asks))
                self.world.ask(event.asks)
        self.state = msgspec.structs.replace(state, asked=self.world.all)
        self._waiting = waiting

    # Words to a harness that is not asked before its requests

    def _look_for_words(self) -> None:
        """See whether the script's next event is words that the user can say while the harness works."""
        self._sayable, self._fetched = None, False
        step = self.player.upcoming(self.state, self.task.seed, self._shown)
        event = step[1].happens if step is not None else None
        if step is not None and isinstance(event, UserWrites) and step[1].about.when != "ended":
            self._sayable = Words(event, step[1].about.when)

    def _put_off(self, words: Words) -> None:
        """The script has come to words of the user's: said already, or to be said when it can be."""
        if self._fetched and self._sayable is not None and self._sayable.event == words.event:
            self._sayable, self._fetched = None, False
        elif not self._gone:
            self._waiting = (*self._waiting, words)

    def fetch(self) -> str | None:
        """The words that the user says now to a harness at work; None where there are none."""
        for words in self._waiting:
            if words.fit("turn"):
                self._commit(self.state, (words.event,), tuple(w for w in self._waiting if w is not words))
                return words.event.text
        words_ahead = self._sayable
        if words_ahead is None or self._fetched or self._gone or not words_ahead.fit("turn"):
            return None
        self._fetched = True
        self._commit(self.state, (words_ahead.event,), self._waiting)
        return words_ahead.event.text

    @property
    def looks(self) -> bool:
        """Whether what a request shows as done matters: to the model, or for a summary."""
        return self.player.shows

    @property
    def reports(self) -> int:
        """The input tokens that the next answer reports at least: they make a program compact."""
        return self.compactor.reports if self.compactor is not None else 0

    @property
    def played_out(self) -> bool:
        """Whether the last answer was none of the script's, which has ended."""
        return self.player.has_ended(self.state)

    @property
    def owes_words(self) -> bool:
        """Whether the answer to the last request is to be held until the user's words were fetched."""
        return any(words.when == "in_turn" and words.due for words in self._waiting)

    @property
    def unsaid(self) -> tuple[str, ...]:
        """Words that the user had for a harness at work, and that it never fetched."""
        return tuple(words.event.text for words in self._waiting if words.when != "ended")

    @property
    def crash_answered(self) -> bool:
        """Whether the harness is to be killed now that the calls of the last turn are answered."""
        turn = self.previous.turn
        if not self._crash_answered or turn is None:
            return False
        return all(call.id in self.ran or is_own(call.tool, self.offered) for call in turn.calls)

    def killed(self) -> None:
        """The harness was killed at the moment that was due, and goes on from what it kept."""
        self._crash_answered = self.crash_delivered = self._crash_waiting = False
        self._crashed = True

    def waits(self) -> None:
        """The harness waits for a decision about a call. Crashed where the script kills it meanwhile."""
        if self._crash_waiting:
            self._crash()

    # Crashes and approvals that are seen coming

    def _foresee_crash(self, turn: Turn) -> None:
        """Make ready for a crash at the moments before the next request comes."""
        state = self.state
        self._crash_waiting = False
        if not state.waits or self.player.listens(state):
            return
        step = self.player.upcoming(state, self.task.seed, self._shown)
        if step is not None and self.asks_person and isinstance(step[1].about, ApproveSpec):
            # Killed while it waits for this decision, which comes all the same.
            step = self.player.upcoming(step[0], self.task.seed, self._shown)
            if step is not None and getattr(step[1].about, "at", "") != "waiting":
                return
        if step is None or not isinstance(step[1].about, CrashSpec):
            return
        spec = step[1].about
        self.crash_wait = spec.wait
        calls = world_calls(turn, self.offered)
        if spec.at == "tool" and calls:
            self._crash_after = 0 if spec.before else 1
        elif spec.at == "answered":
            self._crash_answered = True
        elif spec.at == "waiting":
            self._crash_waiting = True
        else:
            return
        self.state = step[0]
        self._meet()

    def _compactions_next(self) -> Iterator[CompactSpec]:
        """The compactions that the script comes to with the next request, whatever that says."""
        player, state = self.player, self.state
        if not state.waits or player.listens(state):
            return
        while (step := player.upcoming(state, self.task.seed, self._shown)) is not None and step[1].event:
            state, emitted = step
            if isinstance(emitted.happens, Compacts):
                yield emitted.about

    def _foresee_approval(self) -> None:
        """Decide about the calls of the turn just delivered, where a decision comes right after it."""
        state = self.state
        self._decisions = None
        if not state.waits or self.player.listens(state):
            return
        while (step := self.player.upcoming(state, self.task.seed, self._shown)) is not None:
            state, emitted = step
            if isinstance(emitted.about, ApproveSpec):
                self._decisions = emitted.about
            elif isinstance(emitted.about, CrashSpec) and emitted.about.at == "waiting":
                continue
            return

    # Tools

    def _crash(self) -> None:
        self._idle += 1
        self._crash_after = None
        self._crash_answered = self._crash_waiting = False
        self._crashed = True
        raise Crashed

    @property
    def dies_first(self) -> bool:
        """Whether the harness is killed before the next call has its effect."""
        return self._crash_after == 0

    @property
    def last_turn(self) -> Turn | None:
        """The last turn that was delivered."""
        return self.previous.turn

    @property
    def decides(self) -> ApproveSpec | None:
        """What a person decides about the gated calls of the last turn."""
        return self._decisions

    def run(self, call: Call, key: str | None = None, instead: str | None = None) -> Result:
        """Run a call of the last turn on the world; an unknown tool or broken arguments are an error.

        ``key`` is the harness's own idempotency key, put in the place of the model's; ``instead`` are the
        arguments that a person put in the place of the model's.
        """
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
            self._crash_after -= 1
            if self._crash_after == 0:
                # Its effect has happened, and nobody was told.
                del self.ran[call.id]
                self._crash()
        return result

    def _tell(self, call: Call, arguments: str, text: str) -> None:
        """Keep what a tool answered when it did an item that the answer names."""
        tool = self.task.tools.get(call.tool)
        if tool is None or not tool.does:
            return
        items = self.task.items_of_call(tool, parse_arguments(arguments) or {}, text, False)
        bits = self.task.vocabulary
        if any(bits[name] & items and occurs_whole(name, text) for name in bits):
            self._told = {**self._told, " ".join(text.split()): items}

    @staticmethod
    def _broken(begun: Turn, turn: Turn | None, call: Call) -> Turn | None:
        """The turn that a call is of: what stands in an answer that broke off is cut off."""
        known = turn is not None and call in turn.calls
        return turn if known else make_turn(begun.content, "max_tokens")

    def _scripted(self, call: Call, arguments: str) -> tuple[str, bool]:
        """The answer to a call where the script has one of its own."""
        if self._decisions is not None and not self.asks_person:
            decided = self._decided(self._decisions, call, arguments)
            if isinstance(decided, tuple):
                return decided
            arguments = decided
        arm = None
        for candidate in self._arms:
            if candidate.tool == call.tool and candidate.arguments == call.arguments:
                arm = candidate
        if arm is not None and arm.settles is not None:
            for tool, values in self.world.settle_calls(arm.settles, f"wait-{self._serial}"):
                self.world.call(tool, values)
        return self._replied(call.tool, arguments, arm.reply if arm else None)

    def _decided(self, spec: ApproveSpec, call: Call, arguments: str) -> str | tuple[str, bool]:
        """What a person's decision makes of a gated call: its arguments, or the answer that it is refused."""
        tool, values = self.task.tools.get(call.tool), parse_arguments(arguments)
        name = values.get(tool.item or "") if tool is not None and values is not None else None
        bit = self.world.vocabulary.get(name, 0) if isinstance(name, str) else 0
        if values is None or not isinstance(name, str) or not bit & self.world.gated or spec.when != "now":
            return arguments
        if name in spec.refuse:
            return f"{name}: refused{': ' + spec.message if spec.message else ''}", True
        other = spec.change.get(name)
        if other is not None:
            self.world.approve(self.world.bits((other,)))
            changed = {**values, str(tool.item if tool else ""): other}
            action = action_of(tool, changed)
            if self.trace is not None and action is not None:
                # The person asked for it in the model's place.
                self.trace.called[action] = self.trace.called.get(action, 0) + 1
            return json.dumps(changed)
        if spec.allow == "all" or name in spec.allow:
            self.world.approve(bit)
        return arguments

    # Helpers

    def _help(self, call: Call) -> tuple[str, bool] | None:
        """Let a child agent work within a delegate call; None where the script has none for it.

        A limit stops it within the call.
        """
        helping = self._helping
        if helping is None or helping.call != call.id:
            child = next((child for child in self._children if child.arguments == call.arguments), None)
            if child is None:
                said = self._helped.get(call.arguments)
                return None if said is None else (said, False)
            self._children = tuple(other for other in self._children if other is not child)
            helping = Helping(
                call.id, child, self.player.child(child, self.state), count_tokens(call.arguments)
            )
        self._helping = None
        while True:
            if over_budget(self.limits, self.tokens, self.input_tokens, self.output_tokens):
                self._helping = helping
                return "The child agent was stopped: the limit is reached.", True
            helping, said = self._help_on(helping)
            if said is not None:
                self._helped = {**self._helped, call.arguments: said}
                return said, False

    def _help_on(self, helping: Helping) -> tuple[Helping, str | None]:
        """One delivery of a child agent, and what it says in the end, where it ends."""
        player, program = self.player, helping.child.program
        state, emitted = player.advance(helping.state, helping.moved, self.task.seed, self._shown, program)
        turn = emitted.turn
        self.state = msgspec.structs.replace(
            self.state, attempted=self.state.attempted | state.attempted, visits=state.visits
        )
        number = helping.number + 1
        over = player.is_played(state, program) or number > HELPER_CAP
        if over:
            return helping, helping.said or "The child agent ended without an answer."
        if turn.kind in ("failed", "in_progress"):
            return msgspec.structs.replace(helping, state=state, number=number, moved=_AGAIN), None
        if emitted.fresh:
            emitted = freshen(emitted, f"{self._serial + 1}")
            turn = emitted.turn
        carried = helping.carried
        self.input_tokens += carried
        self.output_tokens += turn.tokens
        self.helpers = self.helpers.more(carried, turn.tokens)
        if self.trace is not None:
            self.trace.helped(carried, turn.tokens)
            self.trace.calls_for(self._anew(emitted.actions))
        if turn.kind == "cut_off":
            moved = msgspec.structs.replace(_AGAIN, higher_limit=True, changed=True, shortened=True)
            return msgspec.structs.replace(helping, state=state, number=number, moved=moved), None
        if turn.kind == "refusal":
            if helping.refused:
                return helping, turn.text or "The child agent refused."
            moved = msgspec.structs.replace(_AGAIN, other_model=True, changed=True)
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, refused=True),
                None,
            )
        carried += turn.tokens
        if turn.kind == "pause":
            moved = msgspec.structs.replace(_AGAIN, resent=True)
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, carried=carried),
                None,
            )
        arms, children = self._arms, self._children
        self._arms, self._children = emitted.arms, emitted.children
        for call in turn.runnable:
            if not is_own(call.tool, self.offered):
                text, _ = self._helper_call(call)
                carried += count_tokens(text)
        self._arms, self._children = arms, children
        finished = finish_call(turn, self.offered) is not None
        said = turn.text or helping.said
        if not turn.calls or finished:
            if finished and turn.told is not None and not turn.text:
                said = "Completed: " + (", ".join(turn.told.completed) or "none") + "."
            return helping, said or "The child agent ended without an answer."
        return (
            msgspec.structs.replace(
                helping, state=state, number=number, moved=_AGAIN, carried=carried, said=said, refused=False
            ),
            None,
        )

    def _helper_call(self, call: Call) -> tuple[str, bool]:
        """A call of a child agent's; it may have a child of its own."""
        if call.tool == DELEGATE_TOOL:
            child = next((child for child in self._children if child.arguments == call.arguments), None)
            if child is not None:
                start = self.player.child(child, self.state)
                inner = Helping(call.id, child, start, count_tokens(call.arguments))
                while True:
                    if over_budget(self.limits, self.tokens, self.input_tokens, self.output_tokens):
                        return "The child agent was stopped: the limit is reached.", True
                    inner, said = self._help_on(inner)
                    if said is not None:
                        return said, False
        known = self._recorded(call.tool, call.arguments) if self.careful else None
        return self._scripted(call, call.arguments) if known is None else (known.text, known.error)

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
        trace, action = self.trace, outcome.action
        if action is not None and trace is not None:
            trace.had_effect(action, self.world.changes)
        return outcome.text, outcome.error

    def _replied(self, tool: str, arguments: str, reply: Reply | None) -> tuple[str, bool]:
        """What the script has the tool do and answer."""
        values = parse_arguments(arguments)
        if reply is None or values is None:
            return self._perform(tool, arguments)
        effect = reply.effective
        if effect == "applied":
            text, error = self._perform(tool, arguments)
        elif reply.text is None:
            probe = self.world.fork()
            outcome = probe.call(tool, values)
            probe.close()
            text, error = outcome.text, outcome.error
        if effect == "late" and reply.lands != "never":
            self._late = (*self._late, (reply.lands, tool, arguments))
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

    @property
    def coming(self) -> tuple[tuple[int, str, str], ...]:
        """The calls that were accepted and have their effect later: with which request, tool, arguments."""
        return self._late

    def begin_with(self, coming: tuple[tuple[int, str, str], ...]) -> None:
        """Begin where these calls were accepted before."""
        self._late = coming

    def settle(self) -> None:
        """Let accepted effects land: the run is over."""
        for _, tool, arguments in self._late:
            self._perform(tool, arguments)
        self._late = ()

    # Copies

    def fork(self) -> Stage:
        """An independent copy without observer, for asking what could still happen. It has no cap."""
        copy = object.__new__(Stage)
        for name in STAGE_SLOTS:
            setattr(copy, name, getattr(self, name))
        copy.world = self.world.fork()
        copy.ran = dict(self.ran)
        if self._helping is not None:
            # Who goes on from here, without limits, lets the helper go on.
            copy.ran.pop(self._helping.call, None)
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
STAGE_SLOTS = tuple(name for name in Stage.__slots__ if name != "__dict__")
