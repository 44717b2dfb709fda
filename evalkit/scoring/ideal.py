"""The ideal driver, which knows the oracle, and the ideal harness, which is it under limits."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from evalkit.core import thresholds
from evalkit.core.channels import finish_call, is_decision
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
from evalkit.core.requests import FALLBACK_MODEL, Result
from evalkit.core.tasks import Limits, Offered
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.harnesses.driver import Place
from evalkit.strategies.folds import Ran


class Setting(Place, Protocol):
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
    """Does everything right, by the design's section 3. ``limits`` None: the driver; else: the harness."""

    def __init__(self, stage: Setting, limits: Limits | None) -> None:
        self.stage = stage
        self.limits = limits
        self._seen: set[Hashable] = set()
        self._best = -1
        self._nudges = 0
        self._turns = 0
        #: Requests in a row that no turn has answered.
        self._idle = 0
        self._leaving = False
        self._fell_back = stage.previous.model == FALLBACK_MODEL

    #: It answers from its record what had its effect, and needs no keys.
    keyed = False

    def key(self, call: Call, ran: tuple[Ran, ...]) -> str | None:
        return None

    def out_of_turns(self, turn: Turn) -> Ending | None:
        limit = self._limit()
        return self._end("limit", limit).ending if limit else None

    def results(self, ran: tuple[Ran, ...]) -> None:
        pass

    def event(self, event: Event) -> None:
        if isinstance(event, UserWrites) and event.closes:
            self._leaving = True

    def turn(self, turn: Turn) -> tuple[Action, Verdict | None]:
        if turn.kind in ("failed", "in_progress"):
            return self._ask_again(turn), None
        self._idle = 0
        stage = self.stage
        if turn.calls and turn.kind not in ("cut_off", "refusal"):
            waiting = tuple(
                call
                for call in turn.calls
                if call.id not in stage.ran and parse_arguments(call.arguments) is not None
            )
            if waiting:
                return RunTools(waiting), None
        return self._judge(turn), None

    def _ask_again(self, turn: Turn) -> Action:
        """Retry or poll, until nothing changes any more."""
        self._idle += 1
        if self._idle > thresholds.DRIVER_TURNS:
            key = self.stage.key()
            if key in self._seen:
                return self._end("escalated", "gave up")
            self._seen.add(key)
        return Reissue("retry" if turn.kind == "failed" else "poll")

    def _judge(self, turn: Turn) -> Action:
        """What to do about a turn whose calls have run."""
        stage, world = self.stage, self.stage.world
        settled = world.settled()
        self._turns += turn.kind != "pause"
        progress = world.progress()
        if progress > self._best:
            self._best = progress
            self._nudges = self._turns = 0
        key = stage.key()
        gives_up = key in self._seen or self._turns >= thresholds.DRIVER_TURNS
        self._seen.add(key)
        finish = finish_call(turn, stage.offered) is not None
        decision = is_decision(turn, stage.offered)
        if decision and world.holds():
            return self._end("done", "oracle")
        limit = self._limit()
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
            return Reissue("limit")
        if turn.kind == "refusal" and not refused:
            self._fell_back = True
            return Reissue("model")
        self._fell_back = False
        if not nudge:
            return Send()
        self._nudges += 1
        open_items = stage.task.names(world.all & ~settled)
        text = f"Still open: {', '.join(open_items)}." if open_items else "An invariant is broken."
        return Reject(text) if finish else Send(text)

    def _limit(self) -> str:
        limits, stage = self.limits, self.stage
        if limits is None:
            return ""
        usd = cost(stage.input_tokens, stage.output_tokens)
        return limits.reached(stage.turns, stage.tokens, usd) or ("user_gone" if self._leaving else "")

    def _end(self, kind: EndingKind, native: str) -> End:
        world = self.stage.world
        if world.holds():
            kind = "done"
        outstanding = self.stage.task.names(world.all & ~world.settled())
        return End(Ending(kind, native, Report(outstanding, (), native)))
