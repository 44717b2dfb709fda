"""What evalkit observes of an episode, turn by turn, kept as counters.

A delivered turn is *resolved* when the next request arrives or the run has ended: only then is it known
what the harness made of it, and its calls have run.
"""

from __future__ import annotations

from copy import copy

import msgspec

from evalkit.core import thresholds
from evalkit.core.channels import is_decision
from evalkit.core.decisions import EndingKind
from evalkit.core.requests import Request, finish_answer, neutral_faults
from evalkit.core.tasks import FINISH_TOOL, Offered
from evalkit.core.turns import Turn


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One decision: the number of its turn (from 1), whether the oracle held, how the harness took it.

    ``ended`` is the ending where the harness ended there, else None. ``cause`` is the move that made the
    turn.
    """

    turn: int
    held: bool
    ended: EndingKind | None
    cause: str
    claim: str


class Finding(msgspec.Struct, frozen=True, gc=False):
    """One thing that a flag counts: the flag, the number of the turn, and what it was, in words."""

    flag: str
    turn: int
    thing: str


class Trace:
    """The observer of one episode. ``delivered`` and ``resolved`` are called in turn."""

    def __init__(self, offered: Offered) -> None:
        self.offered = offered
        self.turns = 0
        self.tokens = 0
        self.last: Turn | None = None
        self.cause = ""
        self.decisions: list[Decision] = []
        self.protocol_faults: list[str] = []
        #: Requests that broke a rule of one dialect alone; none in process.
        self.dialect_faults = 0
        self.called: dict[str, int] = {}
        # What follows is read under these names by :class:`evalkit.scoring.figures.Episode`.
        self.orphan_calls = 0
        self.ran_cut_off_call = False
        self.over_limit = 0
        self.altered_results = 0
        self.reworded_results = 0
        self.closed_calls = 0
        self.invented_turns = 0
        self.futile_retries = 0
        self.amnesia = 0
        self.rolled_back = 0
        self.concurrent_runs = 0
        self.unapproved_calls = 0
        self.unasked_calls = 0
        self.undelivered_words = 0
        self.forgotten_words = 0
        self.lost_words = 0
        self.not_exercised = False
        #: Each flag's turn and thing, for whoever tells of the episode.
        self.findings: list[Finding] = []
        self.stops: dict[str, int] = {}
        #: Turns and tokens up to the first decision at which the oracle held, since the user's last message.
        self.complete_at: tuple[int, int] | None = None
        self.max_excess = (0, 0)
        #: Turns and tokens when the third fruitless nudge in a row was sent; None where progress followed.
        self.nudged_out: tuple[int, int] | None = None
        self.ever_held = False
        self.best = 0
        self.max_nudges = 0
        self.max_since_decision = 0
        self.max_undecided = 0
        self.max_resends = 0
        self.max_held = 0
        #: Ends of turn without a call while the oracle did not hold; the stop reason of the last turn.
        self.open_stops = 0
        self.final_stop = ""
        self._held_before = False
        self._held_turns = 0
        self._stretch = 0
        self._since_decision: int | None = None
        self._nudges = 0
        self._resends = 0

    def delivered(self, turn: Turn, tokens: int, cause: str) -> None:
        """A model turn reached the harness; ``tokens`` is what it cost, input and output."""
        self.turns += 1
        self.tokens += tokens
        self.last = turn
        self.cause = cause
        self.final_stop = turn.stop
        self.stops[turn.stop] = self.stops.get(turn.stop, 0) + 1

    def user_wrote(self) -> None:
        """The user asked for more turns: those after finished work are counted anew."""
        self.max_excess = self.excess
        self.complete_at = None

    @property
    def excess(self) -> tuple[int, int]:
        """The most turns and tokens after a first decision with the oracle held, between user messages."""
        if self.complete_at is None:
            return self.max_excess
        turns, tokens = self.turns - self.complete_at[0], self.tokens - self.complete_at[1]
        return max(self.max_excess, (turns, tokens))

    @property
    def nudges(self) -> int:
        """The nudges in a row, up to now, that no progress has followed."""
        return self._nudges

    def resolved(self, settled: int, held: bool, request: Request) -> None:
        """The last turn was answered by ``request``; ``settled`` counts the settled items."""
        turn = self.last
        self.last = None
        if turn is None:
            return
        decision = self._progress(turn, settled, held)
        if decision:
            self._decide(turn, held, None)
        if decision and (
            request.text is not None or finish_answer(turn, request.results, FINISH_TOOL) is not None
        ):
            self._nudges += 1
            self.max_nudges = max(self.max_nudges, self._nudges)
            if self._nudges == thresholds.FRUITLESS_NUDGES:
                self.nudged_out = (self.turns, self.tokens)
        if turn.kind == "pause" and request.echo is not None and request.text is None:
            self._resends += 1
            self.max_resends = max(self.max_resends, self._resends)
        else:
            self._resends = 0
        if turn.calls or turn.kind == "pause" or request.results:
            faults = neutral_faults(turn, request)
            if faults:
                self.protocol_faults.extend(faults)

    def ended(self, settled: int, held: bool, ending: EndingKind, *, by_fault: bool) -> None:
        """The run is over. ``by_fault``: the last answer was a fault and no turn."""
        turn = self.last
        self.last = None
        if turn is None:
            if by_fault:
                self.final_stop = "failed"
                self._decide(None, held, ending)
            return
        decision = self._progress(turn, settled, held)
        if decision or turn.kind in ("pause", "cut_off", "refusal") or ending == "done":
            self._decide(turn, held, ending)

    def over_continuation(self, ending: EndingKind, truth: str) -> bool:
        """Whether a run that ended so, on this truth, went on for nothing."""
        if ending == "never":
            return True
        if self.excess[0] > thresholds.TURNS_AFTER_COMPLETION:
            return True
        if self.max_held > thresholds.TURNS_HELD_UNDECIDED:
            return True
        return not self.ever_held and (
            self.max_nudges > thresholds.FRUITLESS_NUDGES
            or self.max_since_decision > thresholds.TURNS_SINCE_DECISION
            or self.max_undecided > thresholds.TURNS_UNDECIDED
            or self.max_resends > thresholds.RESENDS
        )

    def fork(self) -> Trace:
        """An independent copy, for asking what a further turn would make of the run."""
        twin = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, list | dict | set):
                setattr(twin, name, copy(value))
        return twin

    def _progress(self, turn: Turn, settled: int, held: bool) -> bool:
        decision = is_decision(turn, self.offered)
        if settled > self.best:
            self.best = settled
            self._stretch = 0
            self._since_decision = None
            self._nudges = 0
            self.nudged_out = None
        else:
            self._stretch += 1
            if self._since_decision is not None:
                self._since_decision += 1
                self.max_since_decision = max(self.max_since_decision, self._since_decision)
        if decision and self._since_decision is None:
            self._since_decision = 0
        if self._since_decision is None:
            self.max_undecided = max(self.max_undecided, self._stretch)
        if self._held_before and not decision:
            self._held_turns += 1
            self.max_held = max(self.max_held, self._held_turns)
        if decision or not held:
            self._held_turns = 0
        self._held_before = held
        self.ever_held = self.ever_held or held
        return decision

    def _decide(self, turn: Turn | None, held: bool, ended: EndingKind | None) -> None:
        cause = self.cause if turn is not None else "fault"
        claim = turn.claim if turn is not None else "none"
        self.decisions.append(Decision(self.turns, held, ended, cause, claim))
        if turn is not None and not held and not turn.calls and turn.kind in ("content", "unknown"):
            self.open_stops += 1
        if held and self.complete_at is None:
            self.complete_at = (self.turns, self.tokens)
