"""What happens to a run from outside: words of the user's, compactions, approvals, crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.channels import is_decision, is_own, world_calls
from evalkit.core.decisions import Ending
from evalkit.core.events import Approves, Compacts, Crashed, Event, UserWrites, shown_done, with_words
from evalkit.core.requests import Request, stimulus
from evalkit.core.tasks import Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Turn, count_tokens
from evalkit.scenarios.emissions import Emission
from evalkit.scenarios.moves import ApproveSpec, CompactSpec, CrashSpec
from evalkit.scenarios.player import Player, spare
from evalkit.scenarios.program import PlayerState
from evalkit.stage.compactor import Compactor
from evalkit.stage.conversation import Conversation
from evalkit.worlds import World

Moment: TypeAlias = Literal["turn", "pause", "decision", "ending"]
#: Moments of a crash that lie between two requests.
_BETWEEN = frozenset(("answered", "ended"))


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


class Events(Conversation):
    """What the script has happen to a run between its turns, within calls and after endings."""

    __slots__ = (
        "_crash_after",
        "_crash_answered",
        "_crash_waiting",
        "_fetched",
        "_gone",
        "_passed",
        "_sayable",
        "_waiting",
        "crash_delivered",
        "crash_wait",
        "crashes",
        "happened",
    )

    def __init__(
        self, player: Player, world: World, task: Task, trace: Trace | None, prompt_tokens: int
    ) -> None:
        super().__init__(player, world, task, trace, prompt_tokens)
        #: Whether the harness can be killed and resumed; where it cannot, crashes are left out of the script.
        self.crashes = False
        #: Of the crash that is due: milliseconds between its moment and the kill, and whether that moment is
        #: the delivery of the last turn, where whoever drives can be killed behind it.
        self.crash_wait = 0
        self.crash_delivered = False
        #: What happened to the run from outside, with the number of turns it came after.
        self.happened: tuple[tuple[int, Event], ...] = ()
        #: A crash that is due when so many more calls have run, and whether one is due before a request.
        self._crash_after: int | None = None
        self._crash_answered = False
        #: Whether a crash is due when calls are laid before a person.
        self._crash_waiting = False
        #: The script's next event, looked ahead for: words that can be said while the harness works.
        self._sayable: Words | None = None
        self._fetched = False
        #: Words that the user has and could not say yet, and whether the user has gone.
        self._waiting: tuple[Words, ...] = ()
        self._gone = False
        #: Where the events stand that are about to happen.
        self._passed: list[int] = []

    @property
    def eventful(self) -> bool:
        """Whether anything may happen to the harness from outside between its turns."""
        return self.player.eventful or (self.crashes and not self.player.crashes.isdisjoint(_BETWEEN))

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

    def _compaction_landed(self, compactor: Compactor) -> None:
        """A request shows that the program has compacted: what the model knows is what stands in it."""
        summary = self.summaries[-1] if self.summaries else ""
        if compactor.land():
            self.happened = (*self.happened, (self.turns, Compacts(summary)))
        if self.trace is not None:
            self._forgotten = dict(self.trace.called)

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

    @property
    def dies_first(self) -> bool:
        """Whether the harness is killed before the next call has its effect."""
        return self._crash_after == 0

    def killed(self) -> None:
        """The harness was killed at the moment that was due, and goes on from what it kept."""
        self._crash_answered = self.crash_delivered = self._crash_waiting = False
        self._crashed = True

    def waits(self) -> None:
        """The harness waits for a decision about a call. Crashed where the script kills it meanwhile."""
        if self._crash_waiting:
            self._crash()

    @property
    def decides(self) -> ApproveSpec | None:
        """What a person decides about the gated calls of the last turn."""
        return self._decisions

    def _crash(self) -> None:
        self._idle += 1
        self._crash_after = None
        self._crash_answered = self._crash_waiting = False
        self._crashed = True
        raise Crashed

    def _crash_within(self, emitted: Emission) -> int | None:
        """After how many calls of a turn its own crash is due; None without one, or if it came already."""
        if emitted.crash_after is None:
            return None
        spared, came = spare(self.state.spared, self.state.pc, 1)
        if came:
            self.state = msgspec.structs.replace(self.state, spared=spared)
            return None
        self._meet()
        return emitted.crash_after

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
