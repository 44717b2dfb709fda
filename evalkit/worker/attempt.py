"""One worker's attempt at one task: the reference loop, driven against the record.

Each turn is kept before it is acted on, each call with an effect is reserved before and confirmed after it
is made, and the loop's state is kept with the request that comes next. So an attempt may end anywhere, by
SIGKILL too, and the next one goes on from the record.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import msgspec

from evalkit.core.channels import is_decision, is_nudge
from evalkit.core.decisions import Action, Ending, Report, RunTools, Verdict
from evalkit.core.events import Event as OutsideEvent
from evalkit.core.keys import item_of
from evalkit.core.prices import cost
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.turns import Call, Turn
from evalkit.drivers.in_process import LoopMind, StrategyFailed, drive
from evalkit.loop.state import Loop, start
from evalkit.stage.tools import ToolFailed
from evalkit.strategies.strategy import Strategy
from evalkit.worker.checklist import checklist_of
from evalkit.worker.encoding import echo_of
from evalkit.worker.idempotency import key_of
from evalkit.worker.store.protocol import LeaseLost, Store
from evalkit.worker.task_records import (
    Completion,
    Effect,
    Event,
    Evidence,
    Exchange,
    Held,
    Item,
    Progress,
    Resume,
    Status,
)
from evalkit.worker.telemetry import end_event, stop_event
from evalkit.worker.workplace import Unavailable, Workplace

#: Called before a request is repeated whose answer failed or was not ready for the n-th time in a row.
Pause = Callable[[int], None]
#: Held while a model is asked; entering it raises where the worker is to stop.
Asking = Callable[[], AbstractContextManager[None]]

UNCERTAIN = "uncertain_effect"


class Uncertain(Exception):
    """Nobody can say whether a call that was reserved happened; a person has to look."""


class KeptMind(LoopMind):
    """The reference loop, begun at the state that the record holds."""

    def __init__(self, strategy: Strategy, attempt: Attempt) -> None:
        self.loop = Loop(strategy, attempt.task)
        #: The worker's calls go out under keys of its record, whatever the strategy says.
        self.keyed = False
        self.state = attempt.kept.state or start(strategy, attempt.task)
        self.instruments = attempt


class Attempt:
    """A task under a lease, at its workplace. ``clock`` gives seconds since the epoch.

    It is what the loop is driven against, and the instruments that the loop measures with.
    """

    def __init__(
        self,
        held: Held,
        strategy: Strategy,
        workplace: Workplace,
        store: Store,
        clock: Callable[[], float],
        *,
        pause: Pause = lambda times: None,
        asking: Asking = nullcontext,
    ) -> None:
        self.record = held.record
        self.lease = held.lease
        self.kept = held.progress
        offered = workplace.task.offered | strategy.offers
        self.task = msgspec.structs.replace(workplace.task, offered=offered)
        self.ran: dict[str, Result] = {}
        self._workplace = workplace
        self._store = store
        self._clock = clock
        self._pause = pause
        self._asking = asking
        self._transcript = store.transcript(held.record.seq)
        self._effects = {effect.step: effect for effect in store.effects(held.record.seq)}
        # What was read may be another worker's by now.
        self._check_lease()
        self._fresh = True
        self._word = held.record.word
        self._input, self._output = held.record.input_tokens, held.record.output_tokens
        self._missed = 0
        self._events: list[Event] = []
        self._nudged = False
        self._verdict: Verdict | None = None
        self._checked: list[Evidence] = []
        last = self._transcript[-1].turn if self._transcript else None
        self.previous = Delivered(last, self.kept.request.limit, self.kept.request.model)
        self._mind = KeptMind(strategy, self)

    def work(self) -> Status:
        """Go on with the task to its ending, and leave it there; the status in which it is left.

        LeaseLost, Unavailable, StoreError and what ``asking`` raises end the attempt and not the task.
        """
        pending = self.previous.turn if self.kept.resume == "act" else None
        resume: Resume = "act"
        try:
            ending = drive(self._mind, self, pending=pending, request=self.kept.request, watch=self._watch)
            resume = "ask" if ending.native.startswith("fault:") else "answer"
        except Uncertain as doubt:
            ending = Ending("escalated", UNCERTAIN, Report(reason=str(doubt)))
        except (StrategyFailed, ToolFailed) as error:
            if isinstance(error.__cause__, Unavailable):
                raise error.__cause__ from None
            said = " ".join(str(error).split())
            ending = Ending("error", said.split(":")[0], Report(reason=said))
        return self._close(ending, resume)

    def _check_lease(self) -> None:
        if not self._store.holds(self.lease):
            lease = self.lease
            raise LeaseLost(f"task {lease.task}: lease {lease.number} of {lease.worker} is lost")

    # What the loop is driven against

    def ask(self, request: Request) -> Turn:
        """The model's turn, kept before anyone acts on it. The request is kept before it is sent."""
        request = self._keep(request)
        if self._missed:
            self._pause(self._missed)
        with self._asking():
            answer = self._workplace.model.ask(self._transcript, request)
        turn = answer.turn
        if turn.is_no_turn:
            self._missed += 1
            self.previous = Delivered(self.previous.turn, request.limit, request.model)
            return turn
        self._missed = 0
        number = len(self._transcript) + 1
        exchange = Exchange(number, request, turn, answer.input_tokens, answer.output_tokens, self._clock())
        status: Status = "awaiting_verification" if is_decision(turn, self.task.offered) else "in_progress"
        self._store.keep_turn(self.lease, exchange, self.kept.echo, status)
        self._transcript.append(exchange)
        self._input += answer.input_tokens
        self._output += answer.output_tokens
        self.previous = Delivered(turn, request.limit, request.model)
        self.ran = {}
        return turn

    def _keep(self, request: Request) -> Request:
        """Keep the loop's state and its next request, unless the record is just there."""
        if self._fresh:
            self._fresh = False
            if self.kept.resume == "ask" and self._word is None:
                return self.kept.request
        added = request.echo is not None or not self._transcript
        if request.again or (request.shortened and added):
            # A repetition repeats a person's words too, which the loop does not know of.
            asked = self.kept.request
            request = msgspec.structs.replace(request, results=asked.results, text=asked.text)
        word = self._word if request.echo is not None and not request.again else None
        if self._word is not None and not self._transcript:
            word = self._word
        if word is not None:
            request = msgspec.structs.replace(
                request, text=f"{request.text}\n{word}" if request.text else word
            )
            self._word = None
        echo = echo_of(request, len(self._transcript), self.kept.echo)
        self.kept = Progress(self._mind.state, request, echo)
        self._store.keep_progress(
            self.lease, self.kept, self._checklist(), self._events, self._nudged, self._clock()
        )
        self._events, self._nudged = [], False
        return request

    def run(self, call: Call, key: str | None = None) -> Result:
        """The result of a call: the recorded one, or that of making it now, under a key of the record's."""
        turn = self.previous.turn
        assert turn is not None
        number, place = len(self._transcript), turn.calls.index(call)
        effect = self._effects.get(f"{number}/{place}")
        if effect is not None and effect.status == "confirmed" and effect.result is not None:
            result = effect.result
        else:
            result = self._act(call, number, place, effect)
        self.ran[call.id] = result
        return result

    def _act(self, call: Call, number: int, place: int, effect: Effect | None) -> Result:
        """Make a call: reserved before, confirmed after. One that was reserved is not simply repeated."""
        result = None
        known = effect is not None
        if effect is None:
            care = self._workplace.care(call)
            key = key_of(self.record.id, self.task, call, number, place, self._effects.values())
            item = item_of(self.task, call)
            effect = Effect(number, place, call.tool, call.arguments, care, key, item, reserved=self._clock())
            if care != "free":
                self._store.reserve(self.lease, effect)
        elif effect.care == "looked_up":
            result = self._workplace.look_up(call)
        elif effect.care == "uncertain":
            self._store.doubt(self.lease, effect)
            raise Uncertain(
                f"{call.tool} (step {effect.step}) was begun and nobody can say whether it happened"
            )
        if result is None:
            if known:
                # The reservation is there and is no progress: a call that kills each worker has an end.
                self._check_lease()
            result = self._workplace.run(call, effect.key if effect.care == "keyed" else None)
        now = self._clock()
        self._store.confirm(self.lease, effect, result, now)
        self._effects[effect.step] = msgspec.structs.replace(
            effect, status="confirmed", result=result, confirmed=now
        )
        return result

    # What happens from outside

    @property
    def eventful(self) -> bool:
        """Whether anything may happen to the run from outside."""
        return self._workplace.eventful

    def happens(self, request: Request) -> tuple[OutsideEvent, ...]:
        """What happens before a request is made."""
        return self._workplace.happens(request)

    def after(self, ending: Ending, request: Request) -> tuple[OutsideEvent, ...]:
        """What happens after an ending, where a user then writes."""
        return self._workplace.after(ending, request)

    # Instruments

    def _used(self) -> tuple[int, int]:
        """Input and output tokens of the answers so far, and of helpers that work within a call."""
        read, wrote = self._workplace.spent_in_calls()
        return self._input + read, self._output + wrote

    @property
    def tokens(self) -> int:
        """Tokens spent since a person last granted an allowance."""
        return sum(self._used()) - sum(self.record.spent_before)

    @property
    def usd(self) -> float:
        """The same in US dollars."""
        read, wrote = self._used()
        before = self.record.spent_before
        return cost(read - before[0], wrote - before[1])

    @property
    def last_turn(self) -> Turn | None:
        """The last turn that was delivered."""
        return self.previous.turn

    def checks(self) -> Verdict:
        """Run the task's acceptance checks by name; all have to pass."""
        names = self.record.order.checks
        verdicts = [self._workplace.check(name) for name in names]
        now = self._clock()
        self._checked = [
            Evidence(
                f"check {name}", self.lease.worker, {"passed": verdict.met, "detail": verdict.reason}, now
            )
            for name, verdict in zip(names, verdicts, strict=True)
        ]
        if len(verdicts) == 1:
            return verdicts[0]
        against = [verdict for verdict in verdicts if not verdict.met]
        gaps = 0
        for verdict in against:
            gaps |= verdict.gaps
        named = any(verdict.names for verdict in verdicts)
        reasons = "; ".join(verdict.reason for verdict in against or verdicts)
        return Verdict(not against, reasons or "no checks", gaps, named)

    def artifact(self) -> bool:
        """Whether the work left anything behind."""
        return self._workplace.artifact()

    def replays(self, item: str) -> bool:
        """Whether an item, read again, is done."""
        return self._workplace.replays(item)

    # The record

    def _watch(
        self, turn: Turn, action: Action, verdict: Verdict | None, results: tuple[Result, ...]
    ) -> None:
        if isinstance(action, RunTools):
            return
        self._verdict = verdict
        event = stop_event(turn, self.task.offered, action, verdict, self._clock())
        if event is not None:
            self._events.append(event)
        self._nudged = is_nudge(turn, action, self.task.offered)

    def _checklist(self) -> tuple[Item, ...]:
        memory = dict(zip(self._mind.loop.names, self._mind.state.folds, strict=True))
        return checklist_of(self.task, memory, self.record.checklist)

    def _close(self, ending: Ending, resume: Resume) -> Status:
        """Leave the task. What was not acted on to the end stays where it was kept."""
        order, now = self.record.order, self._clock()
        status: Status = "escalated"
        completion = None
        checklist = self._checklist()
        if ending.kind == "done" and order.closure == "person":
            status = "awaiting_verification"
        elif ending.kind == "done":
            status = "done"
            completion = Completion(f"{order.id}:final", self.lease.worker, self._proof(checklist), now)
        if resume == "answer":
            progress = msgspec.structs.replace(self.kept, state=self._mind.state, resume=resume)
        else:
            progress = msgspec.structs.replace(self.kept, resume=resume)
        last = self.previous.turn
        events = [*self._events, end_event(ending, last.stop if last is not None else "", now)]
        evidence = self._checked if ending.native != UNCERTAIN else []
        self._store.close(self.lease, ending, status, progress, checklist, evidence, events, completion, now)
        return status

    def _proof(self, checklist: tuple[Item, ...]) -> dict[str, object]:
        """What closes a task: the condition's reason and what the worker saw itself."""
        made = [effect for effect in self._effects.values() if effect.care != "free"]
        return {
            "condition": self._verdict.reason if self._verdict is not None else "",
            "checks": {piece.name.removeprefix("check "): piece.content for piece in self._checked},
            "checked": bool(self._checked),
            "calls_confirmed": sum(effect.status == "confirmed" for effect in made),
            "checklist": [line.item for line in checklist if line.done],
        }
