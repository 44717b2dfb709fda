"""How a run ends: which limit is reached, what ``done_when`` says once more, the report of each ending."""

from __future__ import annotations

from collections.abc import Hashable

from evalkit.core.decisions import End, Ending, EndingKind, Report, Verdict
from evalkit.loop.state import Loop, State, Step, replace
from evalkit.strategies.view import Instruments, View

THEN: dict[str, EndingKind] = {
    "escalate": "escalated",
    "done": "done",
    "limit": "limit",
    "error": "error",
}


def limit_reached(loop: Loop, state: State, instruments: Instruments) -> str:
    """The native name of the limit that is reached; empty where none is."""
    if not loop.costs:
        return loop.limits.reached(state.turns, 0, 0.0)
    tokens, usd = state.spent
    return loop.limits.reached(state.turns, instruments.tokens - tokens, instruments.usd - usd)


def evaluate_done_when(loop: Loop, state: State, view: View) -> tuple[State, Verdict]:
    """The verdict of ``done_when``, and the state once it was asked."""
    verdict = loop.strategy.done_when(view)
    if loop.look_folds:
        folds: list[Hashable] = []
        for fold, memory in zip(loop.folds, state.folds, strict=True):
            look = getattr(fold, "after_look", None)
            folds.append(memory if look is None else look(memory, view))
        state = replace(state, folds=tuple(folds))
    return state, verdict


def with_finish_report(loop: Loop, state: State, view: View) -> State:
    """The state with a finish call taken down as a report; one without known items to hold it to is none."""
    if state.finish_seen or view.finish is None or (loop.validates and not view.items("known")):
        return state
    return replace(state, finish_seen=True)


def end(loop: Loop, state: State, view: View, kind: EndingKind, native: str, *, asked: bool = True) -> Step:
    """End the run, unless ``done_when``, which is asked first unless ``asked`` is False, is met."""
    verdict = None
    if asked:
        state, verdict = evaluate_done_when(loop, state, view)
    if verdict is not None and verdict.met:
        # rule: done_before_a_limit
        return done(loop, state, view, verdict)
    return state, ending(loop, state, view, kind, native, verdict), verdict


def end_at_cap(loop: Loop, state: State, view: View, native: str) -> Step:
    """End the run at one of the strategy's own caps, as its ``then`` says."""
    return end(loop, state, view, THEN[loop.strategy.then], native)


def give_up(loop: Loop, state: State, view: View) -> Step | None:
    """The end of a run that the strategy gives up; None where it does not."""
    condition = loop.strategy.give_up_when
    if condition is None or not condition(view).met:
        return None
    return end_at_cap(loop, state, view, "give_up_when")


def done(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    """``done``, or ``partial`` where the harness knows of a skip that the task does not allow."""
    task = loop.task
    reported = view.finish
    refused = 0
    if reported is not None:
        refused |= task.items_of(reported.skipped) & ~task.skippable
    if loop.reads_words:
        refused |= view.items("skipped") & ~task.skippable
    # rule: a_skip_that_is_not_allowed_is_partial
    kind: EndingKind = "partial" if refused else "done"
    return state, ending(loop, state, view, kind, "done_when", verdict), verdict


def ending(
    loop: Loop, state: State, view: View, kind: EndingKind, native: str, verdict: Verdict | None
) -> End:
    """The same report for every ending: what is outstanding, what was skipped, why it ended."""
    task = loop.task
    outstanding: tuple[str, ...] | None = None
    if (verdict is not None and verdict.names) or state.finish_seen:
        items = verdict.gaps if verdict is not None else 0
        named = task.items_of(state.skips)
        # rule: what_was_skipped_without_a_reason_is_outstanding
        items |= named & ~task.skippable if state.skip_reason_given else named
        outstanding = task.names(items)
    reason = verdict.reason if verdict is not None else native
    return End(Ending(kind, native, Report(outstanding, state.skips, reason)))
