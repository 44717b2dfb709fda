"""What each strategy would have decided at each end of turn of a recording.

The reference loop itself is asked, turn by turn, with the recording's turns and tool answers. Every decision
is conditional on the recorded conversation before it: where a strategy would have done something else than
the recording has, the row is exact up to there (``parted``), since its own later turns are not known.

A message of the run's user is one rule, that of the loop: after an ending it goes on with the conversation.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from evalkit.core.decisions import Action, End, Ending, Reissue, Reject, Resend, RunTools, Send, Verdict
from evalkit.core.events import UserWrites
from evalkit.core.prices import cost
from evalkit.core.turns import Turn
from evalkit.loop.state import Loop, start
from evalkit.loop.transitions import on_event, on_results, on_turn, out_of_turns
from evalkit.strategies import conditions as c
from evalkit.strategies.condition import Condition
from evalkit.strategies.presets import ChecksFirst
from evalkit.strategies.strategy import Strategy
from evalkit.transcripts.recording import Step
from evalkit.transcripts.replay import Moment, Replay

#: Beside the endings of D1.9: it would have gone on past the recorded end; not judged.
BEYOND = "beyond"
UNKNOWN = "unknown"


class NeedsWorld(Exception):
    """A strategy asked for something that only the run's world can answer."""


class Stop(msgspec.Struct, frozen=True):
    """Where a strategy would have ended a recording.

    ``turn`` counts model turns from 1; for ``beyond`` it is the last one. An ending after which the run's
    user wrote again is a decision, and the conversation goes on: ``ended`` has the turn of every ending, the
    last one among them. ``decided`` has, for each end of turn, its turn and whether ``done_when`` was met
    (None where a policy came first). ``differs`` counts what the strategy would have done otherwise than was
    recorded before the stop, ``parted`` is the turn of the first such: up to there the row is exact (0:
    everywhere).
    """

    ending: str
    native: str
    reason: str
    turn: int
    decided: tuple[tuple[int, bool | None], ...] = ()
    differs: int = 0
    parted: int = 0
    ended: tuple[int, ...] = ()


class RecordedInstruments:
    """What a loop can measure of a recording: its tokens so far, and nothing of its world."""

    def __init__(self) -> None:
        self.input_tokens = 0
        self.output_tokens = 0
        self._turn: Turn | None = None

    def saw(self, step: Step, turn: Turn) -> None:
        """A turn was delivered."""
        self.input_tokens += step.input_tokens
        self.output_tokens += step.output_tokens
        self._turn = turn

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float:
        return cost(self.input_tokens, self.output_tokens)

    @property
    def last_turn(self) -> Turn | None:
        return self._turn

    def checks(self) -> Verdict:
        raise NeedsWorld("the task's checks need the run's world")

    def artifact(self) -> bool:
        raise NeedsWorld("whether work was left behind needs the run's world")

    def replays(self, item: str) -> bool:
        raise NeedsWorld("reading an item again needs the run's world")


def judge(replay: Replay, strategy: Strategy) -> Stop:
    """Where a strategy would have ended a recording; ``unknown``, with why, where that cannot be said."""
    missing = lacking(replay, strategy)
    if missing:
        return Stop(UNKNOWN, missing, "", 0)
    try:
        return _judge(replay, strategy)
    except NeedsWorld as error:
        return Stop(UNKNOWN, str(error), "", 0)
    except Exception as error:
        # A condition of the user's own may raise anything; the others are judged all the same.
        said = " ".join(f"{type(error).__name__}: {error}".split())
        return Stop(UNKNOWN, f"the strategy failed: {said}"[:200], "", 0)


def _judge(replay: Replay, strategy: Strategy) -> Stop:
    loop = Loop(strategy, replay.task)
    state = start(strategy, replay.task)
    instruments = RecordedInstruments()
    #: The ending since the user's last message, and the turn that it came at.
    now: tuple[Ending, int] | None = None
    over = False
    decided: list[tuple[int, bool | None]] = []
    ended: list[int] = []
    apart: list[int] = []
    total = len(replay.moments)
    for number, moment in enumerate(replay.moments, 1):
        turn = moment.turn
        instruments.saw(moment.step, turn)
        state, action, verdict = on_turn(loop, state, turn, instruments)
        if isinstance(action, RunTools):
            ran = {call.id for call in action.calls}
            state = on_results(loop, state, tuple(r for r in moment.ran if r.call.id in ran))
            state, action, verdict = on_turn(loop, state, turn, instruments)
        if moment.decision:
            decided.append((number, None if verdict is None else verdict.met))
        asked = moment.step.said is not None and moment.step.by == "user"
        if now is None and isinstance(action, End):
            now = action.ending, number
            ended.append(number)
            if number < total and not asked:
                apart.append(number)
        elif now is None and number < total and not _as_recorded(action, moment):
            apart.append(number)
        if asked and not over and number < total:
            state = on_event(loop, state, UserWrites(moment.step.said or ""), instruments)
            reached = out_of_turns(loop, state, turn, instruments)
            if reached is not None:
                # A message that finds the limit reached brings no turn: the ending before it stands. Whether
                # it asks for more nobody says of a recording.
                over, now = True, now or (reached, number)
                apart.append(number)
            else:
                now = None
    if now is None:
        return Stop(BEYOND, "", "would have gone on", total, *_kept(decided, apart, total), tuple(ended))
    ending, number = now
    stop = Stop(ending.kind, ending.native, ending.report.reason, number)
    before, differs, parted = _kept(decided, apart, number - 1)
    return msgspec.structs.replace(stop, decided=before, differs=differs, parted=parted, ended=tuple(ended))


def _kept(
    decided: list[tuple[int, bool | None]], apart: list[int], until: int
) -> tuple[tuple[tuple[int, bool | None], ...], int, int]:
    """All verdicts; how often a strategy parted from the recording up to a turn, and where first."""
    early = [number for number in apart if number <= until]
    return tuple(decided), len(early), early[0] if early else 0


def _as_recorded(action: Action, moment: Moment) -> bool:
    """Whether the recording went on as the action would have: same kind of request, same words."""
    said = moment.step.said
    if isinstance(action, Send):
        return said == action.text
    if isinstance(action, Resend):
        return said is None and not moment.step.results
    return not isinstance(action, Reissue | Reject)


# What a strategy needs


def lacking(replay: Replay, strategy: Strategy) -> str:
    """What the recording lacks for a strategy to be judged; empty where nothing."""
    if not replay.moments:
        return "the recording has no model turn"
    for leaf in leaves(strategy.done_when):
        missing = _lacks(replay, leaf)
        if missing:
            return missing
    return ""


def leaves(condition: Condition) -> Iterable[Condition]:
    """The single signals that a condition is made of."""
    inner: tuple[Any, ...] = getattr(condition, "parts", ())
    if isinstance(condition, c.Not):
        inner = (condition.part,)
    if isinstance(condition, c.evidence_over_time):
        inner = (condition.of,)
    if isinstance(condition, ChecksFirst):
        inner = (condition.checks,)
    if not inner:
        return (condition,)
    return tuple(leaf for part in inner for leaf in leaves(part))


def _lacks(replay: Replay, leaf: Condition) -> str:
    channels = replay.channels
    if isinstance(leaf, c.acceptance):
        return "acceptance: the task's checks need the run's world"
    if isinstance(leaf, c.artifact):
        return "artifact: what the work left behind needs the run's world"
    if isinstance(leaf, c.certificate):
        return "certificate: reading items again needs the run's world"
    if isinstance(leaf, c.checklist) and not channels.checklist:
        return "checklist: the recording has no to-do tool, so it names no items"
    if isinstance(leaf, c.verifier) and leaf.sees != "claim" and not channels.checklist:
        return f"verifier({leaf.sees}): the recording has no to-do tool, so it names no items"
    if isinstance(leaf, c.finish):
        if not channels.finish:
            return "finish: the recording's model had no finish tool"
        if leaf.validate and not (channels.names_items and channels.checklist):
            return "finish(validate): the recording's finish tool names no items"
    if isinstance(leaf, c.keyword) and not replay.agrees(leaf.word):
        return f"keyword: the recording's model was not told of {leaf.word}"
    if isinstance(leaf, c.typed_output) and leaf.schema is None:
        return "typed_output: the recording agrees no schema"
    return ""
