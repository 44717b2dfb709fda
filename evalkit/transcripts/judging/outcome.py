"""What can be said of a stop, given the label of the recorded end. What cannot is None.

A label speaks of the recorded end. One of the world's state also holds at an earlier turn after which nothing
may have changed the world (:mod:`~evalkit.transcripts.effects`); one that looked at words does not, since an
earlier end would have had other last words, and a run that changed nothing was about its words.
``complete_at`` says it for every turn. Nothing else is inferred: a run that ended incomplete may have been
complete before. Turns that the run's user asked for are counted anew from each of the user's messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from evalkit.core import thresholds
from evalkit.transcripts.judging.judge import BEYOND, UNKNOWN, Stop
from evalkit.transcripts.recording import Recording
from evalkit.transcripts.replay import Replay


class Outcome(msgspec.Struct, frozen=True):
    """One row: a recording and a strategy, or the recording's own harness.

    Flags are None where the labels do not say. ``work_after`` counts the recorded turns after an ending, up
    to the user's next message, that may have changed the world. ``parted`` is the turn up to which the row is
    exact, 0 where all of it is. ``claim`` is what the last turn claims. ``excess_turns`` is a lower bound
    without ``complete_at``. ``saved_turns`` and ``saved_tokens`` are those of the recording after a ``done``
    stop that was complete.
    """

    recording: str
    format: str
    strategy: str
    ending: str
    native: str
    truth: str
    label: str
    turn: int
    turns: int
    tokens: int
    tokens_after: int
    work_after: int
    false_done: bool | None
    premature_stop: bool | None
    over_continuation: bool | None
    unclosed: bool | None
    excess_turns: int | None
    saved_turns: int | None
    saved_tokens: int | None
    decisions: int
    decided: str
    tp: int
    fp: int
    tn: int
    fn: int
    differs: int
    parted: int
    claim: str
    reason: str


COLUMNS: tuple[str, ...] = Outcome.__struct_fields__

RECORDED = "recorded"


class Truth:
    """Whether a recording was complete after each of its turns, as far as its label says."""

    def __init__(self, recording: Recording, replay: Replay) -> None:
        self.label = recording.label
        self.turns = len(replay.moments)
        effects = [number for number, moment in enumerate(replay.moments, 1) if moment.effect]
        #: The turn from which on the label holds.
        self.settled = effects[-1] if effects and self.label.by == "state" else self.turns
        self.decisions = [number for number, moment in enumerate(replay.moments, 1) if moment.decision]
        #: The last turn before each message of the user's, and the last of all.
        self.asked = [
            number
            for number, moment in enumerate(replay.moments, 1)
            if number == self.turns or (moment.step.said is not None and moment.step.by == "user")
        ]
        #: Tokens up to each turn.
        self.tokens = [0]
        for moment in replay.moments:
            self.tokens.append(self.tokens[-1] + moment.step.input_tokens + moment.step.output_tokens)
        #: A hand-over that the label calls right is no task that was left unclosed.
        self.handed_over = recording.ending == "escalated" and self.label.complete is True

    def at(self, turn: int) -> bool | None:
        """Whether the task was complete after a turn; None where nobody knows."""
        label = self.label
        if label.complete is None:
            return None
        if label.complete_at is not None and turn < self.turns:
            return turn >= label.complete_at
        return label.complete if turn >= self.settled else None

    def first_held(self, after: int = 0, until: int | None = None) -> int | None:
        """The first decision after a turn at which the task is known to have been complete."""
        last = self.turns if until is None else until
        return next((turn for turn in self.decisions if after < turn <= last and self.at(turn)), None)

    def first_decision(self, after: int, until: int) -> int | None:
        """The first decision after a turn, complete or not."""
        return next((turn for turn in self.decisions if after < turn <= until), None)

    def questions(self, until: int) -> Iterator[tuple[int, int]]:
        """The stretches of turns from one message of the user's to the next, up to a turn."""
        before = 0
        for last in self.asked:
            if before >= until:
                return
            yield before, min(last, until)
            before = last


def outcome_of(
    recording: Recording, replay: Replay, name: str, stop: Stop, truth: Truth | None = None
) -> Outcome:
    """The row of a stop; ``truth`` is the recording's, where it was made before."""
    truth = truth if truth is not None else Truth(recording, replay)
    total = truth.tokens[-1]
    counted: dict[str, Any] = dict.fromkeys(
        (
            "false_done",
            "premature_stop",
            "over_continuation",
            "unclosed",
            "excess_turns",
            "saved_turns",
            "saved_tokens",
        )
    )
    after = tokens = work = 0
    held: bool | None = None
    if stop.ending not in (UNKNOWN, BEYOND):
        after = total - truth.tokens[stop.turn]
        tokens, work = total - after, _work_after(truth, replay, stop)
        held = truth.at(stop.turn)
        counted = _flags(truth, stop, held, after)
    elif stop.ending == BEYOND:
        tokens = total
    confusion = _confusion(truth, stop)
    return Outcome(
        recording=recording.id,
        format=recording.format,
        strategy=name,
        ending=stop.ending,
        native=stop.native,
        truth="unknown" if held is None else "complete" if held else "incomplete",
        label="unknown"
        if truth.label.complete is None
        else "complete"
        if truth.label.complete
        else "incomplete",
        turn=stop.turn,
        turns=truth.turns,
        tokens=tokens,
        tokens_after=after,
        work_after=work,
        decisions=len(truth.decisions),
        decided=_written(stop),
        tp=confusion[0],
        fp=confusion[1],
        tn=confusion[2],
        fn=confusion[3],
        differs=stop.differs,
        parted=stop.parted,
        claim=replay.moments[-1].turn.claim if replay.moments else "none",
        reason=" ".join(stop.reason.split())[:200],
        **counted,
    )


def _work_after(truth: Truth, replay: Replay, stop: Stop) -> int:
    """Recorded turns after an ending and before the user's next message that may have changed the world."""
    count = 0
    for turn in stop.ended or (stop.turn,):
        last = next((asked for asked in truth.asked if asked >= turn), truth.turns)
        count += sum(moment.effect for moment in replay.moments[turn:last])
    return count


def recorded_stop(recording: Recording) -> Stop:
    """The recorded end, as a stop of its own harness."""
    return Stop(recording.ending, recording.native, "", len(recording.steps))


def _flags(truth: Truth, stop: Stop, held: bool | None, after: int) -> dict[str, Any]:
    done = stop.ending == "done"
    excess, over = _going_on(truth, stop)
    return {
        "false_done": None if held is None else done and not held,
        "premature_stop": _premature(truth, stop, held),
        "over_continuation": over,
        "unclosed": None if held is None or not held else not done and not _handed_over(truth, stop),
        "excess_turns": excess,
        "saved_turns": truth.turns - stop.turn if held and done else None,
        "saved_tokens": after if held and done else None,
    }


def _going_on(truth: Truth, stop: Stop) -> tuple[int | None, bool | None]:
    """Turns after the first decision known to be complete, and whether they are too many, by question.

    They are not too many, whatever is not known, where no decision lies that far before its question's end.
    """
    excess: int | None = None
    most = undecided = 0
    over = False
    at = truth.label.complete_at
    for before, last in truth.questions(stop.turn):
        first = truth.first_held(before, last)
        possible = first if at is not None else truth.first_decision(before, last)
        if possible is not None:
            most = max(most, last - possible)
            undecided = max(undecided, possible - before)
        else:
            undecided = max(undecided, last - before)
        if first is not None:
            excess = max(excess or 0, last - first)
            quiet = max(before, at if at is not None else truth.settled)
            over |= last - first > thresholds.TURNS_AFTER_COMPLETION
            over |= first - quiet > thresholds.TURNS_HELD_UNDECIDED
    if excess is None or over:
        return excess, over or None
    if at is not None:
        return excess, False
    few = most <= thresholds.TURNS_AFTER_COMPLETION and undecided <= thresholds.TURNS_HELD_UNDECIDED
    return excess, False if few else None


def _handed_over(truth: Truth, stop: Stop) -> bool:
    return truth.handed_over and stop.ending == "escalated" and stop.turn == truth.turns


def _premature(truth: Truth, stop: Stop, held: bool | None) -> bool | None:
    """The recording itself is the witness that going on would have got there, where it did."""
    if held:
        return False
    if held is False and truth.label.complete and stop.turn < truth.turns:
        return True
    return None


def _confusion(truth: Truth, stop: Stop) -> tuple[int, int, int, int]:
    """The verdicts at the ends of turn where the truth is known: tp, fp, tn, fn."""
    tp = fp = tn = fn = 0
    for turn, met in stop.decided:
        held = truth.at(turn)
        if held is None or met is None:
            continue
        tp += met and held
        fp += met and not held
        tn += not met and not held
        fn += not met and held
    return tp, fp, tn, fn


def _written(stop: Stop) -> str:
    marks = {True: "+", False: "-", None: "?"}
    return " ".join(f"{turn}{marks[met]}" for turn, met in stop.decided)
