"""The ideal driver, which knows the oracle, and the ideal harness, which is it under limits."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Protocol

from evalkit.core import thresholds
from evalkit.core.channels import finish_call, is_decision, world_calls
from evalkit.core.decisions import (
    Action,
    End,
    Ending,
    EndingKind,
    Reissue,
    Reject,
    Report,
    Resend,
    RunTools,
    Send,
    Verdict,
)
from evalkit.core.events import Event, UserWrites
from evalkit.core.prices import cost
from evalkit.core.requests import FALLBACK_MODEL, Result, cannot_pass, says_window_full
from evalkit.core.tasks import Limits, Offered
from evalkit.core.turns import Call, Turn, make_turn, parse_arguments
from evalkit.drivers.in_process import Meter
from evalkit.strategies.folds import Ran

#: Stands for the last answer where that was a fault: the driver goes on from it, not from the turn before.
FAILED = make_turn((), "failed")


class IdealStage(Meter, Protocol):
    """Where the ideal driver works: a scripted stage, or a live run that is probed."""

    ran: dict[str, Result]
    turns: int
    #: Whether a call whose effect stands, or is still to come, is answered from the record of it.
    careful: bool

    @property
    def offered(self) -> Offered: ...

    def place(self) -> tuple[int, ...]:
        """How far the script has come; greater is nearer to its end."""

    def key(self) -> Hashable:
        """All that the future depends on."""


class IdealMind:
    """Does everything right, by D2.4 and D2.5. ``limits`` None: the driver; else: the harness.

    ``in_vain``: asked by the harness before it goes on with an action, whether the next turn would be
    over-continuation and the driver does not get there.
    """

    keyed = False

    def __init__(
        self, stage: IdealStage, limits: Limits | None, in_vain: Callable[[Action], bool] | None = None
    ) -> None:
        self.stage = stage
        self.limits = limits
        self._in_vain = in_vain
        self._seen: set[Hashable] = set()
        self._best = -1
        self._place: tuple[int, ...] = ()
        self._nudges = 0
        self._turns = 0
        #: Turns and endings at faults in which nothing was settled, however near the script came to its end
        #: and whoever wrote in between; of pauses those alone by which it came no nearer.
        self._unsettling = 0
        #: Requests in a row that no turn has answered.
        self._idle = 0
        self._calls = 0
        self._leaving = False
        self._fell_back = stage.previous.model == FALLBACK_MODEL
        self._since = (0, 0, 0.0)
        stage.careful = True

    def results(self, ran: tuple[Ran, ...]) -> None:
        pass

    def key(self, call: Call, ran: tuple[Ran, ...]) -> str | None:
        return None

    def out_of_turns(self, turn: Turn) -> Ending | None:
        limit = self._limit(decision=False)
        if limit:
            return self._end("limit", limit).ending
        # Who writes for ever would have it begin for ever.
        for_good = self._unsettling >= thresholds.DRIVER_LONGEST
        return self._end("escalated", "gave up").ending if for_good else None

    def event(self, event: Event) -> None:
        if not isinstance(event, UserWrites):
            return
        # Words of the user are a beginning: what was fruitless before them was not the answer to them.
        self._nudges = self._turns = 0
        self._leaving = self._leaving or event.closes
        if self.limits is not None and self.limits.per == "query":
            self._since = self._spent()
            self._calls = 0

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        return self._unless_in_vain(self._next(turn)), None

    def _next(self, turn: Turn) -> Action:
        if turn.is_no_turn:
            return self._ask_again(turn)
        self._idle = 0
        stage = self.stage
        if turn.calls and turn.kind not in ("cut_off", "refusal"):
            waiting = tuple(
                call
                for call in turn.calls
                if call.id not in stage.ran and parse_arguments(call.arguments) is not None
            )
            if waiting:
                batch = world_calls(turn, stage.offered)
                over = self.limits.forbids(self._calls, batch) if self.limits is not None else ""
                self._calls += batch
                return self._end("limit", over) if over else RunTools(waiting)
        return self._judge(turn)

    def _ask_again(self, failed: Turn) -> Action:
        """Retry, poll or shorten, until nothing changes any more."""
        full = failed.kind == "failed" and says_window_full(failed.native)
        if failed.kind == "failed" and not full and cannot_pass(failed.native):
            self._unsettling += 1
            return self._end("error", f"fault:{failed.native}")
        self._idle += 1
        if full or self._idle > thresholds.DRIVER_TURNS:
            key = (self.stage.key(), full)
            if key in self._seen:
                self._unsettling += 1
                return self._end("error" if full else "escalated", "gave up")
            self._seen.add(key)
        if full:
            return Reissue("shorten")
        return Reissue("retry" if failed.kind == "failed" else "poll")

    def _judge(self, turn: Turn) -> Action:
        """What to do about a turn whose calls have run."""
        stage, world = self.stage, self.stage.world
        progress, place = world.progress(), stage.place()
        self._turns += turn.kind != "pause"
        self._unsettling += turn.kind != "pause" or place <= self._place
        if progress > self._best:
            self._best = progress
            self._nudges = self._turns = self._unsettling = 0
        if place > self._place:
            self._place = place
            self._turns = 0
        key = stage.key()
        waited = self._turns >= thresholds.DRIVER_TURNS or self._unsettling >= thresholds.DRIVER_LONGEST
        gives_up = waited or key in self._seen
        self._seen.add(key)
        decision = is_decision(turn, stage.offered)
        if decision and world.holds():
            return self._end("done", "oracle")
        limit = self._limit(decision)
        if limit:
            return self._end("limit", limit)
        refused = turn.kind == "refusal" and (self._fell_back or turn.category == "reasoning_extraction")
        nudge = decision or refused
        cap = thresholds.DRIVER_NUDGES if self.limits is None else thresholds.FRUITLESS_NUDGES
        if gives_up or (nudge and self._nudges >= cap):
            return self._end("escalated", "gave up")
        if turn.kind == "pause":
            return Resend()
        if turn.kind == "cut_off":
            return Reissue("shorten" if turn.stop == "context_window" else "limit")
        if turn.kind == "refusal" and not refused:
            self._fell_back = True
            return Reissue("model")
        self._fell_back = False
        if not nudge:
            return Send()
        self._nudges += 1
        open_items = stage.task.names(world.all & ~world.settled())
        text = f"Still open: {', '.join(open_items)}." if open_items else "An invariant is broken."
        return Reject(text) if finish_call(turn, stage.offered) is not None else Send(text)

    def _unless_in_vain(self, action: Action) -> Action:
        if self._in_vain is None or isinstance(action, RunTools | End) or not self._in_vain(action):
            return action
        return self._end("escalated", "nothing would come of it")

    def _spent(self) -> tuple[int, int, float]:
        stage = self.stage
        return stage.turns, stage.tokens, cost(stage.input_tokens, stage.output_tokens)

    def _limit(self, decision: bool) -> str:
        if self.limits is None:
            return ""
        turns, tokens, usd = (now - then for now, then in zip(self._spent(), self._since, strict=True))
        reached = self.limits.reached(int(turns), int(tokens), usd)
        # What was asked last may still be answered, tools included.
        return reached or ("user_gone" if self._leaving and decision else "")

    def _end(self, kind: EndingKind, native: str) -> End:
        world = self.stage.world
        if world.holds():
            kind = "done"
        outstanding = self.stage.task.names(world.all & ~world.settled())
        return End(Ending(kind, native, Report(outstanding, (), native)))
