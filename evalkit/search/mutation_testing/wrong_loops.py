"""Loops with one rule changed: each takes the reference loop's functions and breaks one thing about them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

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
)
from evalkit.core.tasks import FINISH_TOOL
from evalkit.core.turns import Call, Turn, make_turn, read_finish
from evalkit.loop.state import Loop, State, Step
from evalkit.loop.transitions import on_results, on_turn
from evalkit.search.proofs.steps import Rules
from evalkit.strategies.folds import Ran
from evalkit.strategies.view import Instruments
from evalkit.strategies.wording import CONTINUE

_replace = msgspec.structs.replace
#: What a turn is to a wrong loop that looks for one.
Sign: TypeAlias = Callable[[Turn], bool]


def ends(sign: Sign, kind: EndingKind = "done") -> Rules:
    """Takes a turn with this sign for the end, whatever stands in it."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        if sign(turn) and not state.ran:
            return state, End(Ending(kind, "mutant", Report())), None
        return on_turn(loop, state, turn, instruments)

    return Rules(on_turn=turned)


def answers(change: Callable[[Turn, Action], Action]) -> Rules:
    """Decides like the reference loop and then does something else."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        after, action, verdict = on_turn(loop, state, turn, instruments)
        return after, change(turn, action), verdict

    return Rules(on_turn=turned)


def reads(change: Callable[[Turn], Turn]) -> Rules:
    """Sees another turn than the one that came."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        return on_turn(loop, state, change(turn), instruments)

    return Rules(on_turn=turned)


def starts_at(turns: int) -> Rules:
    """Counts turns from another number than 0, and so has its limit elsewhere."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        if state.turns == 0 and not state.ran and not turn.is_no_turn:
            state = _replace(state, turns=turns)
        return on_turn(loop, state, turn, instruments)

    return Rules(on_turn=turned)


def remembers(change: Callable[[State, State, tuple[Ran, ...]], State]) -> Rules:
    """Keeps other things in mind when calls were run; ``change`` has the state before and after."""

    def ran(loop: Loop, state: State, records: tuple[Ran, ...]) -> State:
        return change(state, on_results(loop, state, records), records)

    return Rules(on_results=ran)


def records(change: Callable[[Ran], Ran]) -> Rules:
    """Takes down other results than the tools gave."""

    def ran(loop: Loop, state: State, found: tuple[Ran, ...]) -> State:
        return on_results(loop, state, tuple(change(record) for record in found))

    return Rules(on_results=ran)


def never_gives_up(kind: str, action: Action) -> Rules:
    """Answers turns of one kind with the same action for ever."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        if turn.kind == kind:
            counted = state if kind == "failed" else on_turn(loop, state, turn, instruments)[0]
            return _replace(counted, resends=0, cut_offs=0, refusals=0, faults=0), action, None
        return on_turn(loop, state, turn, instruments)

    return Rules(on_turn=turned)


def counts_in_all(field: str) -> Rules:
    """Never forgets a count of answers in a row."""

    def turned(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
        before = getattr(state, field)
        after, action, verdict = on_turn(loop, state, turn, instruments)
        if turn.kind in ("content", "unknown"):
            after = _replace(after, **{field: max(before, getattr(after, field))})
        return after, action, verdict

    return Rules(on_turn=turned)


def drops_last_calls(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """Does not run the calls of the last allowed turn."""
    limit = loop.limits.turns
    if limit is not None and turn.calls and not state.ran and state.turns + 1 >= limit:
        after, _, _ = on_turn(loop, state, turn, instruments)
        return on_turn(loop, _replace(after, ran=True), turn, instruments)
    return on_turn(loop, state, turn, instruments)


def claims_before_calls(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """Judges a finish call before the other calls of its turn have run, and does not run them."""
    if not state.ran and any(call.tool == FINISH_TOOL for call in turn.calls):
        after, action, verdict = on_turn(loop, state, turn, instruments)
        if isinstance(action, RunTools):
            finish = tuple(call for call in action.calls if call.tool == FINISH_TOOL)
            return after, RunTools(finish), verdict
    return on_turn(loop, state, turn, instruments)


def changes_retries(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """Retries a failed answer with another text, once there is a turn to answer."""
    after, action, verdict = on_turn(loop, state, turn, instruments)
    if turn.kind == "failed" and action == Reissue("retry") and instruments.last_turn is not None:
        return after, Send("Are you still there?"), verdict
    return after, action, verdict


def resets_nudges(sign: Callable[[tuple[Ran, ...]], bool]) -> Rules:
    """Forgets the nudges when calls with this sign were run."""
    return remembers(lambda before, after, ran: _replace(after, nudges=0) if sign(ran) else after)


# Signs


def of_kind(kind: str) -> Sign:
    """Turns of a kind."""
    return lambda turn: turn.kind == kind


def is_empty(turn: Turn) -> bool:
    """A turn without any block."""
    return turn.kind == "content" and not turn.content


def only_thinks(turn: Turn) -> bool:
    """A turn that has blocks, but no words and no calls."""
    return turn.kind == "content" and bool(turn.content) and not turn.calls and not turn.text.strip()


def only_speaks(turn: Turn) -> bool:
    """A turn that has words and no calls."""
    return turn.kind == "content" and not turn.calls and bool(turn.text.strip())


def only_reports(turn: Turn) -> bool:
    """A progress report without calls."""
    return turn.claim == "partial" and not turn.calls


def any_call(ran: tuple[Ran, ...]) -> bool:
    """Any call at all."""
    return bool(ran)


def any_effect(ran: tuple[Ran, ...]) -> bool:
    """A call that did an item, for the first time or again."""
    return any(record.tool is not None and record.tool.does and not record.result.error for record in ran)


def any_tick(ran: tuple[Ran, ...]) -> bool:
    """A call of one of the harness's own tools."""
    return any(record.tool is None for record in ran)


# Changes


def keeps_nudges(before: State, after: State, ran: tuple[Ran, ...]) -> State:
    """Lets nothing reset the nudges."""
    return _replace(after, nudges=before.nudges)


def without_error(ran: Ran) -> Ran:
    """Takes an error for a success."""
    return _replace(ran, result=_replace(ran.result, error=False))


def first_call_only(turn: Turn, action: Action) -> Action:
    """Runs only the first of several calls."""
    return RunTools(action.calls[:1]) if isinstance(action, RunTools) else action


def message_after_pause(turn: Turn, action: Action) -> Action:
    """Answers a paused turn with a user message."""
    return Send(CONTINUE) if isinstance(action, Resend) else action


def same_limit(turn: Turn, action: Action) -> Action:
    """Asks for a cut-off turn again without raising the limit."""
    return Reissue("retry") if action == Reissue("limit") else action


def same_model(turn: Turn, action: Action) -> Action:
    """Asks the model that refused again, and not the fallback."""
    return Reissue("retry") if action == Reissue("model") else action


def partial_as_done(turn: Turn, action: Action) -> Action:
    """Calls a run done although it knows of a skip that the task does not allow."""
    if isinstance(action, End) and action.ending.kind == "partial":
        return End(_replace(action.ending, kind="done"))
    return action


def silent_report(turn: Turn, action: Action) -> Action:
    """Reports nothing as outstanding."""
    if isinstance(action, End) and action.ending.report.outstanding:
        return End(_replace(action.ending, report=_replace(action.ending.report, outstanding=())))
    return action


def silent_nudge(turn: Turn, action: Action) -> Action:
    """Goes on after a decision without a word."""
    if isinstance(action, Reject) or (isinstance(action, Send) and action.text and not turn.calls):
        return Send()
    return action


def without_category(turn: Turn) -> Turn:
    """A refusal of no category."""
    return _replace(turn, category=None) if turn.category else turn


def by_label(turn: Turn) -> Turn:
    """The turn that its stop label speaks of: ``end_turn`` has no calls."""
    if turn.stop == "end_turn" and turn.calls:
        words = tuple(block for block in turn.content if not isinstance(block, Call))
        return make_turn(words, turn.stop, native=turn.native, claim=turn.claim, told=turn.told)
    return turn


def with_reason(turn: Turn) -> Turn:
    """A turn whose finish gives a reason for what it skips."""
    blocks = tuple(_excused(block) if isinstance(block, Call) else block for block in turn.content)
    if blocks == turn.content:
        return turn
    return make_turn(
        blocks,
        turn.stop,
        native=turn.native,
        category=turn.category,
        claim=turn.claim,
        told=turn.told,
    )


def _excused(call: Call) -> Call:
    told = read_finish(call.arguments)
    if call.tool != FINISH_TOOL or told.reason or not told.skipped:
        return call
    finish = {
        "items_completed": told.completed,
        "items_skipped": told.skipped,
        "reason_skipped": "none given",
    }
    return Call(call.id, call.tool, msgspec.json.encode(finish).decode())
