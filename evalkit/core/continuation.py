"""Going on for nothing: the stretches of turns without progress, per question of the user's, and their rules.

The rules and their thresholds stand in :mod:`evalkit.core.thresholds`.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from evalkit.core import thresholds
from evalkit.core.channels import is_decision
from evalkit.core.decisions import EndingKind
from evalkit.core.tasks import Offered
from evalkit.core.turns import Turn


class Decision(msgspec.Struct, frozen=True, gc=False):
    """One decision: the number of its turn (from 1), whether the oracle held, how the harness took it.

    ``ended`` is the ending where the harness ended there, else None. ``cause`` is the move that made the
    turn. Where it was about an answer that is no turn, ``answered`` is False and ``turn`` the last before it.
    """

    turn: int
    held: bool
    ended: EndingKind | None
    cause: str
    claim: str
    answered: bool

    @property
    def told(self) -> str:
        """The move and its turn, as a transcript counts them."""
        return f"{self.cause}, {'' if self.answered else 'after '}turn {self.turn}"


class Stretches(NamedTuple):
    """The longest stretch of each rule of going on for nothing, in the order of :data:`thresholds.GOING_ON`.

    What a rule does not count, as nudges of a run whose work was complete, is 0.
    """

    after_completion: int = 0
    held_undecided: int = 0
    fruitless_nudges: int = 0
    since_decision: int = 0
    undecided: int = 0
    repeating: int = 0
    resends: int = 0


_NO_STRETCHES = Stretches()


class Continuation:
    """How far the work has come, which turns decided, and for how long the run went on without progress."""

    __slots__ = (
        "_before",
        "_excess_before",
        "_held_before",
        "_held_turns",
        "_longest",
        "_most",
        "_most_fruitless",
        "_nudges",
        "_repeated_before",
        "_repeating",
        "_resends",
        "_since_decision",
        "_stretch",
        "best",
        "complete_at",
        "decisions",
        "ever_held",
        "held_at",
        "max_held",
        "max_nudges",
        "max_repeating",
        "max_resends",
        "max_since_decision",
        "max_undecided",
        "nudged_out",
        "offered",
        "open_stops",
        "tokens",
        "turns",
    )

    def __init__(self, offered: Offered) -> None:
        self.offered = offered
        self.turns = 0
        self.tokens = 0
        self.decisions: list[Decision] = []
        #: Ends of turn without a call while the oracle did not hold.
        self.open_stops = 0
        #: How far the work has come, since the beginning.
        self.best = 0
        #: What earlier questions had gone on for, and whether their repetitions would be too many.
        self._before = ""
        self._longest = _NO_STRETCHES
        self._repeated_before = ""
        self._excess_before = (0, 0)
        self._begin_question()

    def _begin_question(self) -> None:
        """All is judged anew: the user asked for something else."""
        #: Whether the oracle held, and the first decision at which it did.
        self.ever_held = False
        self.held_at: int | None = None
        self._most = (0, 0)
        self._most_fruitless = (0, 0)
        self.max_nudges = 0
        self.max_since_decision = 0
        self.max_undecided = 0
        self.max_repeating = 0
        self.max_resends = 0
        self.max_held = 0
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        """Count anew: the user wrote."""
        #: Turns and tokens up to the first decision at which the oracle held.
        self.complete_at: tuple[int, int] | None = None
        #: Turns and tokens when the last nudge was sent that was not too many; None where progress followed.
        self.nudged_out: tuple[int, int] | None = None
        self._held_before = False
        self._held_turns = 0
        self._stretch = 0
        self._since_decision: int | None = None
        self._nudges = 0
        self._repeating = 0
        self._resends = 0

    def _next_question(self) -> None:
        """The user asked for something else: what was judged stays, and all is judged anew."""
        self._excess_before = self.excess
        self._longest = self.stretches
        self._before = self._before or self._for_nothing()
        self._repeated_before = self._repeated_before or self._repeats_too_often()
        self._begin_question()

    def _nudge(self) -> None:
        """The harness sent the model on."""
        self._nudges += 1
        self.max_nudges = max(self.max_nudges, self._nudges)
        if self._nudges == thresholds.FRUITLESS_NUDGES:
            self.nudged_out = (self.turns, self.tokens)

    def _resend(self, resent: bool) -> None:
        """Whether the harness sent a paused turn back."""
        if resent:
            self._resends += 1
            self.max_resends = max(self.max_resends, self._resends)
        elif self._resends:
            self._resends = 0

    def _progress(self, turn: Turn, settled: int, held: bool, repeats: bool) -> bool:
        decision = is_decision(turn, self.offered)
        if settled > self.best:
            self.best = settled
            self._stretch = self._nudges = self._repeating = 0
            self._since_decision = 0 if decision else None
            self.nudged_out = None
        else:
            self._no_progress(decision, repeats)
        if held or self._held_before:
            self._stands(decision, held)
        return decision

    def _no_progress(self, decision: bool, repeats: bool) -> None:
        self._stretch += 1
        self._repeating = self._repeating + 1 if repeats else 0
        if self._repeating > self.max_repeating:
            self.max_repeating = self._repeating
        if self._since_decision is not None:
            self._since_decision += 1
            if self._since_decision > self.max_since_decision:
                self.max_since_decision = self._since_decision
        elif decision:
            self._since_decision = 0
        elif self._stretch > self.max_undecided:
            self.max_undecided = self._stretch

    def _stands(self, decision: bool, held: bool) -> None:
        """Count the turns without a decision for which the oracle held."""
        if self._held_before and not decision:
            self._held_turns += 1
            self.max_held = max(self.max_held, self._held_turns)
        if decision or not held:
            self._held_turns = 0
        self._held_before = held
        self.ever_held = self.ever_held or held

    def _decide(self, turn: Turn | None, held: bool, ended: EndingKind | None, cause: str) -> None:
        claim = turn.claim if turn is not None else "none"
        self.decisions.append(Decision(self.turns, held, ended, cause, claim, turn is not None))
        if turn is not None and not held and not turn.calls and turn.kind in ("content", "unknown"):
            self.open_stops += 1
        if held:
            if self.held_at is None:
                self.held_at = self.turns
            if self.complete_at is None:
                self.complete_at = (self.turns, self.tokens)

    def _after_completion(self) -> tuple[int, int]:
        """The most turns and tokens after the first decision at which the oracle held, by message."""
        mark = self.complete_at
        return self._most if mark is None else max(self._most, (self.turns - mark[0], self.tokens - mark[1]))

    def _after_fruitless_nudges(self) -> tuple[int, int]:
        """The same after the last nudge that was not too many."""
        most, mark = self._most_fruitless, self.nudged_out
        return most if mark is None else max(most, (self.turns - mark[0], self.tokens - mark[1]))

    @property
    def nudges(self) -> int:
        """The nudges in a row, up to now, that no progress has followed."""
        return self._nudges

    @property
    def excess(self) -> tuple[int, int]:
        """Turns and tokens that were for nothing: the most between two messages of the user."""
        most = self._after_completion()
        if not self.ever_held:
            most = max(most, self._after_fruitless_nudges())
        return max(self._excess_before, most)

    @property
    def stretches(self) -> Stretches:
        """The longest stretches up to now, over all questions of the user."""
        if self.ever_held:
            now = Stretches(self._after_completion()[0], self.max_held)
        else:
            now = Stretches(
                0, self.max_held, self.max_nudges, self.max_since_decision, self.max_undecided,
                self.max_repeating, self.max_resends,
            )  # fmt: skip
        return now if self._longest is _NO_STRETCHES else Stretches(*map(max, self._longest, now))

    def over_continuation(self, ending: EndingKind, truth: str) -> str:
        """What a run with this ending and truth went on for nothing by; empty where it did not."""
        if ending == "never":
            # rule: never_ended
            return f"never ended: {self.turns} turns"
        repeated = "" if truth == "reachable" else self._repeated_before or self._repeats_too_often()
        return self._before or self._for_nothing() or repeated

    def _repeats_too_often(self) -> str:
        if self.ever_held or self.max_repeating <= thresholds.REPEATING_TURNS:
            return ""
        # rule: repeating_turns
        return f"{self.max_repeating} turns in a row that only repeat calls that were answered the same"

    def _for_nothing(self) -> str:
        """The rule of over-continuation for one question, repetition apart."""
        after, _ = self._after_completion()
        if after > thresholds.TURNS_AFTER_COMPLETION:
            # rule: turns_after_completion
            return f"{after} turns after the decision of turn {self.held_at}, at which the work was complete"
        if self.max_held > thresholds.TURNS_HELD_UNDECIDED:
            # rule: turns_held_undecided
            return f"{self.max_held} turns without a decision while the work was complete"
        if self.ever_held:
            return ""
        if self.max_nudges > thresholds.FRUITLESS_NUDGES:
            # rule: fruitless_nudges
            return f"{self.max_nudges} nudges in a row without progress"
        if self.max_since_decision > thresholds.TURNS_SINCE_DECISION:
            # rule: turns_since_a_decision
            return f"{self.max_since_decision} turns in a row without progress since a decision"
        if self.max_undecided > thresholds.TURNS_UNDECIDED:
            # rule: turns_undecided
            return f"{self.max_undecided} turns in a row without progress and without a decision"
        if self.max_resends > thresholds.RESENDS:
            # rule: resends_in_a_row
            return f"{self.max_resends} resends of paused turns in a row"
        return ""
