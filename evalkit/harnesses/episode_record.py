"""What is kept of an episode of a foreign harness, which cannot be played again: its exchanges, its end."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import msgspec

from evalkit.core.channels import is_own
from evalkit.core.requests import FIRST_MODEL, Request, Result
from evalkit.core.tasks import FINISH_TOOL
from evalkit.core.trace import Finding
from evalkit.core.turns import Block, Call, ServerCall, Text, Thinking, Turn
from evalkit.stage.approver import Approver, Decision
from evalkit.stage.child_conversation import ChildConversation
from evalkit.stage.stage import STAGE_SLOTS, Stage

#: How a resident process that mixes up its tasks is told in an episode's record.
CARRIED = "carried over"
#: How tools that were called and never offered are told there.
UNOFFERED = "tools that were never offered"
#: How answers are told there that an API would not give to such a request.
UNREACHABLE = "answers that cannot come"

#: How the evidence for events is told there, and why there is none; and the requests of child agents.
KILLS, WORDS, DECISIONS, COMPACTIONS = "kills", "the user's words", "decisions of a person", "compactions"
CHILDREN = "child agents' requests"
NOT_EXERCISED = "not exercised"
LANDED = (KILLS, WORDS, DECISIONS, COMPACTIONS, CHILDREN, NOT_EXERCISED)


class Exchange(msgspec.Struct, omit_defaults=True):
    """One answer of the model, and what the harness made of it.

    ``number`` is 0 for an answer that is no turn. ``settled`` and ``held`` are of the moment when the harness
    went on, or ended. ``before`` is what happened from outside before it. ``by`` names the child agent whose
    conversation it is of; the turns of those are numbered by themselves.
    """

    number: int
    stop: str
    native: str | None
    claim: str
    blocks: list[dict[str, Any]]
    results: list[dict[str, Any]] = []
    action: str = ""
    says: str = ""
    settled: int = 0
    held: bool = False
    before: list[str] = []
    by: str = ""


class Wrong(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first that went wrong: its turn, whether the oracle held, the ending if the harness ended there.

    ``harm`` says what it was where it was no decision.
    """

    turn: int
    held: bool
    ended: str | None
    cause: str
    harm: str = ""

    @property
    def said(self) -> str:
        """In words."""
        if self.harm:
            return f"went wrong first at turn {self.turn}: {self.harm}"
        told = f"first wrong decision: turn {self.turn}"
        if self.held:
            done = f"ended as {self.ended}" if self.ended else "went on"
            return f"{told}: the work was complete and the harness {done}"
        return f"{told}: the harness ended as done and the work was not complete"


class Kept(msgspec.Struct, omit_defaults=True):
    """An episode as it is kept: its exchanges, what it printed, what the server saw beside its trace.

    ``findings`` are the turns and things of its flags, ``open`` the items that were not settled when the
    truth was read.
    """

    harness: str
    seed: int
    exchanges: list[Exchange]
    output: str = ""
    exit: str = ""
    seconds: float = 0.0
    seen: dict[str, Any] = {}
    wrong: Wrong | None = None
    findings: tuple[Finding, ...] = ()
    open: tuple[str, ...] = ()


def shown_block(block: Block) -> dict[str, Any]:
    """A block of a turn as a transcript shows it."""
    if isinstance(block, Text):
        return {"kind": "text", "text": block.text}
    if isinstance(block, Thinking):
        return {"kind": "thinking", "text": block.text}
    if isinstance(block, ServerCall):
        return {"kind": "server call", "text": block.name + (f" → {block.result}" if block.result else "")}
    assert isinstance(block, Call)
    return {"kind": "call", "text": f"{block.tool} {block.arguments}"}


class Closed(Exception):
    """The episode has ended; nothing of the harness counts any more."""


class Observed(Stage):
    """A stage that keeps each exchange, and lets nothing in once it was closed."""

    exchanges: list[Exchange]
    lock: threading.RLock
    closed: bool
    #: How many child agents of each name held a conversation of their own.
    _named: Counter[str]
    #: The person who decides about gated calls, where the harness asks one.
    approver: Approver | None

    @classmethod
    def of(cls, stage: Stage) -> Observed:
        """The same stage, observed."""
        observed = object.__new__(cls)
        for name in STAGE_SLOTS:
            setattr(observed, name, getattr(stage, name))
        observed.exchanges = []
        observed._named = Counter()
        observed.lock = threading.RLock()
        observed.closed = False
        observed.approver = None
        return observed

    def ask(self, request: Request) -> Turn:
        with self.lock:
            self._check()
            self._resolve(request)
            turn = super().ask(request)
            real = not turn.is_no_turn
            blocks = [shown_block(block) for block in turn.content]
            number = self.turns if real else 0
            self.exchanges.append(Exchange(number, turn.stop, turn.native, turn.claim, blocks))
            return turn

    def run(self, call: Call, key: str | None = None, instead: str | None = None) -> Result:
        with self.lock:
            self._check()
            if self.approver is not None and not self.dies_first:
                asked = self.approver.runs(call.tool, call.arguments)
                if asked is not None:
                    call, instead = asked, call.arguments
            result = super().run(call, key, instead)
            self._answered_call(call, result, self.previous.turn)
            return result

    def _answered_call(self, call: Call, result: Result, turn: Turn | None, by: str = "") -> None:
        """Keep what a tool answered to a call of a turn."""
        last = self._last(by)
        if last is None:
            return
        told: dict[str, Any] = {"text": result.text, "error": result.error}
        if turn is None or call not in turn.calls:
            # The model did not ask for it, so it answers none of its calls.
            told["orphan"] = True
        last.results.append(told)

    def _last(self, by: str = "") -> Exchange | None:
        """The last exchange with the model, or with a child agent."""
        return next((step for step in reversed(self.exchanges) if step.by == by), None)

    def child(self, call: Call, within: ChildConversation | None = None) -> ChildConversation | None:
        with self.lock:
            self._check()
            child = super().child(call, within)
            if child is not None:
                self._named[child.name] += 1
                # Several of one name are told apart.
                count = self._named[child.name]
                child.name += f" ({count})" if count > 1 else ""
            return child

    def child_asks(self, child: ChildConversation, request: Request) -> Turn:
        with self.lock:
            self._check()
            self._note("went on", request.text or "", child.name)
            turn = super().child_asks(child, request)
            blocks = [shown_block(block) for block in turn.content]
            number = 0 if turn.is_no_turn else child.previous.number
            step = Exchange(number, turn.stop, turn.native, turn.claim, blocks, by=child.name)
            self.exchanges.append(step)
            self._look(step)
            return turn

    def child_runs(self, child: ChildConversation, call: Call) -> Result:
        with self.lock:
            self._check()
            result = super().child_runs(child, call)
            self._answered_call(call, result, child.previous.turn, child.name)
            return result

    def asked(self, calls: list[Any], *, resumed: bool) -> list[Decision]:
        """What the person decides about calls that the harness lays before it."""
        with self.lock:
            if self.closed or self.approver is None:
                return []
            return self.approver.asked(calls, resumed=resumed)

    def fetch(self) -> str | None:
        with self.lock:
            return None if self.closed else super().fetch()

    def close(self) -> bool:
        """Wait for what is under way and let nothing more in; whether calls of the last turn were not run."""
        with self.lock:
            self.closed = True
            self._note("ended", "")
            turn = self.previous.turn
            if turn is None:
                return False
            world_calls = [call for call in turn.calls if not is_own(call.tool, self.offered)]
            return any(call.id not in self.ran for call in world_calls)

    def _check(self) -> None:
        if self.closed:
            raise Closed

    def _resolve(self, request: Request) -> None:
        turn = self.previous.turn
        if request.poll:
            said = "asked for the pending answer"
        elif request.again:
            said = "asked the same again"
        elif request.model != FIRST_MODEL and request.model != self.previous.model:
            said = "asked another model"
        elif request.echo is None:
            said = "asked anew"
        elif turn is not None and turn.kind == "pause" and request.text is None:
            said = "sent the paused turn back"
        else:
            said = "nudged" if request.text else "went on"
        rejected = turn is not None and any(
            call.tool == FINISH_TOOL and self.offered.finish and result.error
            for call, result in zip(turn.calls, request.results, strict=False)
        )
        self._note("rejected the finish" if rejected else said, request.text or "")

    def _note(self, action: str, says: str, by: str = "") -> None:
        last = self._last(by)
        if last is not None:
            last.action, last.says = action, says[:2000]
            self._look(last)

    def _look(self, step: Exchange) -> None:
        """See what is settled."""
        step.settled, step.held = self.world.settled().bit_count(), self.world.holds()
