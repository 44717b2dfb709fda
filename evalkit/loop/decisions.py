"""What is decided at an end of turn: done, a limit, given up, or a nudge and its words."""

from __future__ import annotations

from evalkit.core.channels import claims, finish_call
from evalkit.core.decisions import EndingKind, Reject, Send, Verdict
from evalkit.core.turns import Text, Turn
from evalkit.loop.endings import (
    THEN,
    done,
    end,
    ending,
    evaluate_done_when,
    limit_reached,
    with_finish_report,
)
from evalkit.loop.state import Loop, State, Step, replace
from evalkit.strategies import wording
from evalkit.strategies.view import View


def decide(loop: Loop, state: State, view: View) -> Step:
    """What comes of an end of turn, a claim beside calls, or a limit that is reached behind calls."""
    strategy, turn = loop.strategy, view.turn
    calls = turn.calls
    decision = not calls or claims(turn, loop.offered)
    state = with_finish_report(loop, state, view)
    limit = limit_reached(loop, state, view.instruments)
    if strategy.limit_checked == "before_done" and limit:
        # rule: limit_before_done
        return end(loop, state, view, "limit", limit, asked=False)
    if not decision and not loop.asks_each_turn:
        # rule: limit_behind_calls
        return end(loop, state, view, "limit", limit)
    if strategy.text == "first_block" and not calls and not _first_is_text(turn):
        # rule: first_block_is_not_text
        return end(loop, state, view, "error", "first block is not text", asked=False)
    state, verdict = evaluate_done_when(loop, state, view)
    ending_step = _decided_ending(loop, state, view, verdict, limit, decision=decision)
    if ending_step is not None:
        return ending_step
    if not decision:
        # Asked each turn: it is not done, and may be hopeless.
        if strategy.give_up_when is not None and strategy.give_up_when(view).met:
            # rule: given_up_at_a_turn_with_calls
            return state, ending(loop, state, view, THEN[strategy.then], "give_up_when", verdict), verdict
        # rule: asked_at_each_turn
        return state, Send(), verdict
    if strategy.empty == "stop" and not calls and not turn.text.strip():
        # rule: empty_turn_stops
        return state, ending(loop, state, view, "error", "stopped:empty", verdict), verdict
    return nudge(loop, state, view, verdict)


def decide_unknown(loop: Loop, state: State, view: View) -> Step:
    """The same for a turn of an unknown stop reason: no claim beside calls, no empty turn."""
    state, verdict = evaluate_done_when(loop, with_finish_report(loop, state, view), view)
    limit = limit_reached(loop, state, view.instruments)
    return _decided_ending(loop, state, view, verdict, limit, decision=True) or nudge(
        loop, state, view, verdict
    )


def _decided_ending(
    loop: Loop, state: State, view: View, verdict: Verdict, limit: str, *, decision: bool
) -> Step | None:
    """The end of a run whose verdict, limit or user ends it; None where it goes on."""
    if verdict.met:
        # rule: done_when_is_met
        return done(loop, state, view, verdict)
    native = limit or ("user_gone" if decision and state.user_gone else "")
    if native:
        # rule: limit_at_a_decision
        return state, ending(loop, state, view, "limit", native, verdict), verdict
    return None


def nudge(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    """Send the model on, unless the run is given up or the nudges are spent."""
    strategy, turn = loop.strategy, view.turn
    if strategy.give_up_when is not None and strategy.give_up_when(view).met:
        # rule: given_up_at_a_decision
        return state, ending(loop, state, view, THEN[strategy.then], "give_up_when", verdict), verdict
    if strategy.loop_guard:
        gaps = (verdict.gaps, "" if verdict.names else verdict.reason)
        if state.guard == gaps:
            kind: EndingKind = "done" if view.claim == "done" else "escalated"
            # rule: loop_guard
            return state, ending(loop, state, view, kind, "loop guard", verdict), verdict
        state = replace(state, guard=gaps)
    cap, budget = strategy.nudges, strategy.nudge_budget
    if (cap is not None and state.nudges >= cap) or (budget is not None and state.nudges_total >= budget):
        # rule: nudges_are_spent
        return state, ending(loop, state, view, THEN[strategy.then], "nudges", verdict), verdict
    state = replace(
        state,
        nudges=0 if cap is None else state.nudges + 1,
        nudges_total=0 if budget is None else state.nudges_total + 1,
    )
    if finish_call(turn, loop.offered) is not None:
        # rule: finish_is_rejected
        return state, Reject(_rejection(loop, view, verdict)), verdict
    # rule: nudge
    return state, Send(_nudge_words(loop, view, verdict)), verdict


def _nudge_words(loop: Loop, view: View, verdict: Verdict) -> str:
    """A nudge: every item id that a gap names, else "Continue."."""
    if not verdict.gaps or loop.strategy.nudge_says == "continue":
        return wording.CONTINUE
    # rule: nudge_names_what_is_open
    return wording.still_open(view.named(verdict.gaps))


def _rejection(loop: Loop, view: View, verdict: Verdict) -> str:
    """The answer to a finish call that was not accepted: it names what is unaccounted for."""
    if loop.strategy.nudge_says == "continue":
        # rule: rejection_without_names
        return wording.NOT_ACCEPTED
    if not verdict.gaps:
        return wording.not_accepted(verdict.reason)
    # rule: rejection_names_what_is_open
    return wording.unaccounted(verdict.gaps.bit_count(), view.named(verdict.gaps))


def _first_is_text(turn: Turn) -> bool:
    return bool(turn.content) and type(turn.content[0]) is Text
