"""What comes before the content of a turn is looked at: pauses, cut-offs, full windows, refusals, faults.

Each is a field of :class:`~evalkit.strategies.strategy.Strategy`; one that is ``as_content`` does not come
here (:attr:`~evalkit.loop.state.Loop.policies`). What the fields for empty turns, first blocks and limits
say is carried out in :mod:`~evalkit.loop.decisions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from evalkit.core.decisions import End, Ending, Reissue, Report, Resend, Send
from evalkit.core.requests import cannot_pass, says_window_full
from evalkit.core.turns import Turn
from evalkit.loop.decisions import decide_unknown
from evalkit.loop.endings import THEN, end, end_at_cap, limit_reached
from evalkit.loop.state import Loop, State, Step, memory_after_compaction, replace, view_of
from evalkit.strategies.strategy import FAULTS_IN_A_ROW, REFUSALS_IN_A_ROW
from evalkit.strategies.view import Instruments, View
from evalkit.strategies.wording import CONTINUE


def on_fault(loop: Loop, state: State, failed: Turn, instruments: Instruments) -> Step:
    """What comes of an answer that is no turn: asked again, or the end."""
    strategy, native = loop.strategy, f"fault:{failed.native or failed.stop}"
    turn = instruments.last_turn
    view = view_of(loop, state, turn, instruments) if turn is not None else None
    if says_window_full(failed.native) and strategy.overflow in ("compact", "raise_limit"):
        step = _reissue_with_room(loop, state)
        if step is not None:
            return step
        if view is not None:
            # rule: full_window_and_no_room
            return end_at_cap(loop, state, view, "overflow")
        return state, End(Ending(THEN[strategy.then], "overflow", Report(reason=native))), None
    passes = not cannot_pass(failed.native)
    if passes and strategy.faults == "retry" and state.faults < FAULTS_IN_A_ROW:
        # rule: fault_is_asked_again
        return replace(state, faults=state.faults + 1), Reissue("retry"), None
    if view is not None:
        # rule: fault_ends
        return end(loop, state, view, "error", native)
    return state, End(Ending("error", native, Report(reason=native))), None


def _on_pause(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.pause == "stop":
        # rule: pause_stops
        return end(loop, state, view, "error", f"stopped:{view.turn.stop}")
    if native := limit_reached(loop, state, view.instruments):
        return end(loop, state, view, "limit", native)
    cap = loop.strategy.resends
    if cap is not None and state.resends >= cap:
        # rule: resends_are_spent
        return end_at_cap(loop, state, view, "resends")
    # rule: pause_is_sent_back
    return replace(state, resends=_counted_up(state.resends, cap)), Resend(), None


def _on_cut_off(loop: Loop, state: State, view: View) -> Step:
    policy, turn = loop.strategy.cut_off, view.turn
    if policy == "stop":
        # rule: cut_off_stops
        return end(loop, state, view, "error", f"stopped:{turn.stop}")
    if native := limit_reached(loop, state, view.instruments):
        return end(loop, state, view, "limit", native)
    cap = loop.strategy.cut_offs
    if cap is not None and state.cut_offs >= cap:
        # rule: cut_offs_are_spent
        return end_at_cap(loop, state, view, "cut_offs")
    state = replace(state, cut_offs=_counted_up(state.cut_offs, cap))
    if policy == "raise_limit":
        # rule: cut_off_asks_with_a_larger_limit
        return state, Reissue("limit"), None
    if policy == "fail_calls" and turn.calls:
        # rule: cut_off_calls_fail
        return state, Send(), None
    # rule: cut_off_is_continued
    return state, Send(CONTINUE), None


def _on_overflow(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.overflow == "stop":
        # rule: full_window_stops
        return end(loop, state, view, "error", f"stopped:{view.turn.stop}")
    if native := limit_reached(loop, state, view.instruments):
        return end(loop, state, view, "limit", native)
    return _reissue_with_room(loop, state) or end_at_cap(loop, state, view, "overflow")


def _reissue_with_room(loop: Loop, state: State) -> Step | None:
    """Ask again after a full window, with less history or a larger limit; None where that was of no use."""
    if loop.strategy.overflow == "compact":
        if state.overflows:
            return None
        # rule: full_window_is_compacted
        return (
            replace(state, overflows=1, folds=memory_after_compaction(loop, state)),
            Reissue("shorten"),
            None,
        )
    cap = loop.strategy.cut_offs
    if cap is not None and state.overflows >= cap:
        return None
    # rule: full_window_asks_with_a_larger_limit
    return replace(state, overflows=_counted_up(state.overflows, cap)), Reissue("limit"), None


def _on_refusal(loop: Loop, state: State, view: View) -> Step:
    policy, turn = loop.strategy.refusal, view.turn
    if policy == "stop":
        # rule: refusal_stops
        return end(loop, state, view, "error", "stopped:refusal")
    allowed = {"fallback": 1, "retry": REFUSALS_IN_A_ROW}.get(policy, 0)
    if turn.category == "reasoning_extraction" and policy == "fallback":
        # rule: refused_reasoning_has_no_fallback
        allowed = 0
    if state.refusals >= allowed:
        # rule: refusal_goes_to_a_person
        return end(loop, state, view, "escalated", f"refusal:{turn.category or 'no category'}")
    if native := limit_reached(loop, state, view.instruments):
        return end(loop, state, view, "limit", native)
    state = replace(state, refusals=state.refusals + 1)
    # rule: refusal_is_asked_again
    return state, Reissue("model" if policy == "fallback" else "retry"), None


def _on_unknown(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.unknown == "stop":
        # rule: unknown_reason_stops
        return end(loop, state, view, "error", f"stopped:{view.turn.native or 'unknown'}")
    return decide_unknown(loop, state, view)


def _counted_up(count: int, cap: int | None) -> int:
    return 0 if cap is None else count + 1


#: By protocol state; which of them a strategy has, :attr:`~evalkit.loop.state.Loop.policies` says.
POLICIES: Mapping[str, Callable[[Loop, State, View], Step]] = {
    "pause": _on_pause,
    "cut_off": _on_cut_off,
    "overflow": _on_overflow,
    "refusal": _on_refusal,
    "unknown": _on_unknown,
}
