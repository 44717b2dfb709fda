"""The loop as pure functions: ``on_turn`` decides, ``on_results`` and ``on_event`` remember.

The state is one immutable, hashable value: no messages, reasons, call ids or order of calls in it. Whoever
drives the loop (in process, over an SDK, the explorer) carries out the actions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
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
    Verdict,
)
from evalkit.core.events import Compacts, Event, UserWrites
from evalkit.core.tasks import FINISH_TOOL, Limits, Task, occurs_whole
from evalkit.core.turns import Call, Finish, Text, Turn, read_finish
from evalkit.strategies.folds import Ran, looks_at_turns
from evalkit.strategies.strategy import FAULTS_IN_A_ROW, REFUSALS_IN_A_ROW, Strategy
from evalkit.strategies.view import Instruments, View

Step: TypeAlias = "tuple[State, Action, Verdict | None]"

_THEN: dict[str, EndingKind] = {
    "escalate": "escalated",
    "done": "done",
    "limit": "limit",
    "error": "error",
}
#: The events that the reference loop has a notion of. A crash needs a memory outside of the process.
NOTIONS = frozenset(("user", "compact", "approve"))
#: Counters stop here where a strategy has no cap to compare them with.
SATURATED = 1_000_000


class State(msgspec.Struct, frozen=True, gc=False):
    """All that the loop remembers between turns.

    ``turns`` are model turns; ``nudges`` those since the last new effect, ``nudged`` those in all;
    ``resends``, ``cut_offs``, ``refusals``, ``faults`` are in a row. ``ran`` says that the calls of the
    current turn were run. ``acted`` are the logical actions that succeeded and are not about one item;
    ``touched`` are the items on which each tool of :attr:`Loop.acting` succeeded, empty where none has.
    ``guard`` is what the loop guard blocked for last. ``skips`` are the ids that the last finish skipped,
    ``excused`` says that it gave a reason. ``folds`` are the strategy's memory. ``leaving`` is 1 when the
    user is gone after the next turn, 2 when that turn has come.
    """

    turns: int = 0
    nudges: int = 0
    nudged: int = 0
    resends: int = 0
    cut_offs: int = 0
    refusals: int = 0
    faults: int = 0
    ran: bool = False
    acted: frozenset[str] = frozenset()
    guard: tuple[int, str] | None = None
    finish_seen: bool = False
    skips: tuple[str, ...] = ()
    excused: bool = False
    folds: tuple[Hashable, ...] = ()
    leaving: int = 0
    touched: tuple[int, ...] = ()


def start(strategy: Strategy, task: Task) -> State:
    """The state before the first turn."""
    return State(folds=tuple(fold.start(task) for fold in strategy.folds))


def limits_of(strategy: Strategy, limits: Limits) -> Limits:
    """The limits that bind: the smaller of the strategy's own and the scenario's."""

    def smaller(own: float | None, given: float | None) -> float | None:
        return min(own, given) if own is not None and given is not None else own if given is None else given

    turns, tokens = smaller(strategy.max_turns, limits.turns), smaller(strategy.max_tokens, limits.tokens)
    return Limits(
        turns=None if turns is None else int(turns),
        tokens=None if tokens is None else int(tokens),
        usd=smaller(strategy.max_usd, limits.usd),
    )


class Loop:
    """A strategy bound to a task: what ``on_turn`` and ``on_results`` need, worked out once.

    ``counts_turns`` is False where no turn limit binds; the turn count is then no part of the state.
    """

    __slots__ = (
        "acting",
        "asks_each_turn",
        "counts_turns",
        "folds",
        "keyword",
        "limits",
        "looks",
        "names",
        "policies",
        "strategy",
        "task",
        "turn_folds",
        "wants_reset",
    )

    def __init__(self, strategy: Strategy, task: Task) -> None:
        self.strategy = strategy
        self.task = task
        self.limits = limits_of(strategy, task.limits)
        self.folds = strategy.folds
        self.looks = tuple(looks_at_turns(fold) for fold in strategy.folds)
        self.turn_folds = any(self.looks)
        self.names = tuple(fold.name for fold in strategy.folds)
        self.keyword = strategy.offers.keyword
        self.counts_turns = self.limits.turns is not None or strategy.random
        self.wants_reset = strategy.nudges is not None or strategy.loop_guard
        self.asks_each_turn = strategy.check == "each_tool_turn"
        #: The tools that are not read-only, each with its place in ``State.touched``.
        self.acting = acting_tools(task)
        #: What comes before the content is looked at, by the kind of turn.
        self.policies: dict[str, Callable[[Loop, State, View], Step]] = {
            kind: policy
            for kind, policy, chosen in (
                ("pause", _on_pause, strategy.pause),
                ("cut_off", _on_cut_off, strategy.cut_off),
                ("refusal", _on_refusal, strategy.refusal),
                ("unknown", _on_unknown, strategy.unknown),
            )
            if chosen != "as_content"
        }


def acting_tools(task: Task) -> dict[str, int]:
    """The tools whose success can be a new effect, each with its place in :attr:`State.touched`."""
    names = [name for name, tool in task.tools.items() if not tool.read_only]
    return {name: place for place, name in enumerate(names)}


def on_turn(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """What to do about a delivered turn: the new state, the action, and the verdict where one was asked.

    It is called when the turn arrives and, where it asked for tools, again when they have run
    (``state.ran``). A turn of kind ``failed`` or ``in_progress`` is an answer that is no turn.
    """
    kind = turn.kind
    if kind == "failed":
        return _on_fault(loop, state, turn, instruments)
    if kind == "in_progress":
        return state, Reissue("poll"), None
    if state.ran:
        state = _replace(state, ran=False)
        if not loop.asks_each_turn and not _claims(loop, turn) and not _limit(loop, state, instruments):
            return state, _GO_ON, None
        return _decide(loop, state, _view(loop, state, turn, instruments))
    state = _counted(loop, state, turn)
    policy = loop.policies.get(kind)
    if policy is not None:
        return policy(loop, state, _view(loop, state, turn, instruments))
    if turn.calls:
        return state, RunTools(turn.runnable), None
    return _decide(loop, state, _view(loop, state, turn, instruments))


def on_results(loop: Loop, state: State, ran: tuple[Ran, ...]) -> State:
    """The state when calls of the current turn were run: evidence remembered, nudges reset by new effects."""
    task = loop.task
    folds = state.folds
    if folds:
        folds = tuple(
            [fold.after_results(memory, ran, task) for fold, memory in zip(loop.folds, folds, strict=True)]
        )
    nudges, acted, touched, guard = state.nudges, state.acted, state.touched, state.guard
    finish_seen, skips, excused = state.finish_seen, state.skips, state.excused
    for record in ran:
        tool = record.tool
        if tool is None:
            if record.call.tool == FINISH_TOOL:
                finish_seen = True
                skips, excused = _skips(read_finish(record.call.arguments))
        elif not tool.read_only and not record.result.error:
            if skips and tool.does:
                done = task.names(record.item)
                skips = tuple(name for name in skips if name not in done)
            if not loop.wants_reset:
                continue
            item = record.item
            # The tools of a recording are not the task's: no task was given.
            place = loop.acting.get(tool.name)
            if place is not None and item and not item & (item - 1):
                touched = touched or (0,) * len(loop.acting)
                if not touched[place] & item:
                    touched = (*touched[:place], touched[place] | item, *touched[place + 1 :])
                    nudges, guard = 0, None
            elif (action := _action(record)) not in acted:
                acted = acted | {action}
                nudges, guard = 0, None
    return State(
        state.turns,
        nudges,
        state.nudged,
        state.resends,
        state.cut_offs,
        state.refusals,
        state.faults,
        True,
        acted,
        guard,
        finish_seen,
        skips,
        excused,
        folds,
        state.leaving,
        touched,
    )


def on_event(loop: Loop, state: State, event: Event) -> State:
    """The state when something happened from outside.

    A compaction erases what only the conversation held; an approval is the world's. A user's message changes
    nothing of what was counted, but when the user leaves the next turn is the last.
    """
    if isinstance(event, Compacts):
        forget = [getattr(fold, "after_compaction", None) for fold in loop.folds]
        return _replace(
            state,
            folds=tuple(
                memory if forgets is None else forgets(memory, loop.task)
                for forgets, memory in zip(forget, state.folds, strict=True)
            ),
        )
    if isinstance(event, UserWrites) and event.closes:
        return _replace(state, leaving=1)
    return state


def _skips(told: Finish | None) -> tuple[tuple[str, ...], bool]:
    """What the loop keeps of a finish: the ids it skips, and whether it gave a reason."""
    return (told.skipped, bool(told.reason)) if told is not None else ((), False)


def _action(record: Ran) -> str:
    """The logical action of a call: tool and items, or tool and arguments where it names no item."""
    if record.item and record.tool is not None:
        return f"{record.tool.name} {record.item}"
    return f"{record.call.tool} {record.call.arguments}"


_replace = msgspec.structs.replace
_GO_ON = Send()


def _view(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> View:
    memory = dict(zip(loop.names, state.folds, strict=True))
    return View(loop.task, turn, memory, instruments, state.turns)


def _claims(loop: Loop, turn: Turn) -> bool:
    """Whether a turn with calls is a decision: it holds a finish call or the agreed keyword."""
    if _finish_call(turn) is not None:
        return True
    return loop.keyword is not None and occurs_whole(loop.keyword, turn.text)


def _counted(loop: Loop, state: State, turn: Turn) -> State:
    kind = turn.kind
    folds = state.folds
    if loop.turn_folds:
        task = loop.task
        folds = tuple(
            [
                fold.after_turn(memory, turn, task) if looks else memory
                for fold, looks, memory in zip(loop.folds, loop.looks, folds, strict=True)
            ]
        )
    skips, excused, seen = state.skips, state.excused, state.finish_seen
    if turn.told is not None and not turn.calls and kind != "cut_off" and "skipped" in loop.names:
        skips, excused = _skips(turn.told)
        seen = True
    return State(
        min(state.turns + 1, SATURATED) if loop.counts_turns else 0,
        state.nudges,
        state.nudged,
        state.resends if kind == "pause" else 0,
        state.cut_offs if kind == "cut_off" else 0,
        state.refusals if kind == "refusal" else 0,
        0,
        False,
        state.acted,
        state.guard,
        seen,
        skips,
        excused,
        folds,
        2 if state.leaving else 0,
        state.touched,
    )


# Protocol states


def _on_fault(loop: Loop, state: State, failed: Turn, instruments: Instruments) -> Step:
    if loop.strategy.faults == "retry" and state.faults < FAULTS_IN_A_ROW:
        return _replace(state, faults=state.faults + 1), Reissue("retry"), None
    native = f"fault:{failed.native or failed.stop}"
    turn = instruments.last_turn
    if turn is None:
        return state, End(Ending("error", native, Report(reason=native))), None
    return _end(loop, state, _view(loop, state, turn, instruments), "error", native)


def _on_pause(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.pause == "stop":
        return _end(loop, state, view, "error", f"stopped:{view.turn.stop}")
    if _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    cap = loop.strategy.resends
    if cap is not None and state.resends >= cap:
        return _run_out(loop, state, view, "resends")
    return _replace(state, resends=_more(state.resends, cap)), Resend(), None


def _on_cut_off(loop: Loop, state: State, view: View) -> Step:
    policy, turn = loop.strategy.cut_off, view.turn
    if policy == "stop":
        return _end(loop, state, view, "error", f"stopped:{turn.stop}")
    if _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    cap = loop.strategy.cut_offs
    if cap is not None and state.cut_offs >= cap:
        return _run_out(loop, state, view, "cut_offs")
    state = _replace(state, cut_offs=_more(state.cut_offs, cap))
    if policy == "raise_limit":
        return state, Reissue("limit"), None
    if policy == "fail_calls" and turn.calls:
        return state, Send(), None
    return state, Send("Continue."), None


def _on_refusal(loop: Loop, state: State, view: View) -> Step:
    policy, turn = loop.strategy.refusal, view.turn
    if policy == "stop":
        return _end(loop, state, view, "error", "stopped:refusal")
    allowed = {"fallback": 1, "retry": REFUSALS_IN_A_ROW}.get(policy, 0)
    if turn.category == "reasoning_extraction" and policy == "fallback":
        allowed = 0
    if state.refusals >= allowed:
        return _end(loop, state, view, "escalated", f"refusal:{turn.category or 'no category'}")
    if _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    state = _replace(state, refusals=state.refusals + 1)
    return state, Reissue("model" if policy == "fallback" else "retry"), None


def _on_unknown(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.unknown == "stop":
        return _end(loop, state, view, "error", f"stopped:{view.turn.native or 'unknown'}")
    verdict = loop.strategy.done_when(view)
    if verdict.met:
        return _done(loop, state, view, verdict)
    return _nudge(loop, state, view, verdict)


# Decisions


def _decide(loop: Loop, state: State, view: View) -> Step:
    strategy, turn = loop.strategy, view.turn
    calls = turn.calls
    decision = not calls or _claims(loop, turn)
    if strategy.limit_checked == "before_done" and _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments), ask=False)
    if not decision and not loop.asks_each_turn:
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    if strategy.text == "first_block" and not calls and not _first_is_text(turn):
        return _end(loop, state, view, "error", "first block is not text", ask=False)
    verdict = strategy.done_when(view)
    if verdict.met:
        return _done(loop, state, view, verdict)
    native = _limit(loop, state, view.instruments)
    if native:
        return state, _ending(loop, state, view, "limit", native, verdict), verdict
    if not decision:
        return state, Send(), verdict
    if strategy.empty == "stop" and not calls and not turn.text.strip():
        return state, _ending(loop, state, view, "error", "stopped:empty", verdict), verdict
    return _nudge(loop, state, view, verdict)


def _nudge(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    strategy, turn = loop.strategy, view.turn
    if _limit(loop, state, view.instruments):
        return (
            state,
            _ending(loop, state, view, "limit", _limit(loop, state, view.instruments), verdict),
            verdict,
        )
    if strategy.loop_guard:
        gaps = (verdict.gaps, "" if verdict.names else verdict.reason)
        if state.guard == gaps:
            kind: EndingKind = "done" if turn.claim == "done" else "escalated"
            return state, _ending(loop, state, view, kind, "loop guard", verdict), verdict
        state = _replace(state, guard=gaps)
    cap, budget = strategy.nudges, strategy.nudge_budget
    if (cap is not None and state.nudges >= cap) or (budget is not None and state.nudged >= budget):
        return state, _ending(loop, state, view, _THEN[strategy.then], "nudges", verdict), verdict
    state = _replace(
        state,
        nudges=0 if cap is None else state.nudges + 1,
        nudged=0 if budget is None else state.nudged + 1,
    )
    if _finish_call(turn) is not None:
        return state, Reject(_rejection(loop, view, verdict)), verdict
    return state, Send(_words(loop, view, verdict)), verdict


def _words(loop: Loop, view: View, verdict: Verdict) -> str:
    """A nudge: every item id that a gap names, else "Continue."."""
    if not verdict.gaps or loop.strategy.nudge_says == "continue":
        return "Continue."
    return (
        f"These items are still open: {view.named(verdict.gaps)}. Continue with them, or say what blocks you."
    )


def _rejection(loop: Loop, view: View, verdict: Verdict) -> str:
    """The answer to a finish call that was not accepted: it names what is unaccounted for."""
    if loop.strategy.nudge_says == "continue":
        return "Not accepted."
    if not verdict.gaps:
        return f"Not accepted: {verdict.reason}."
    return (
        f"{verdict.gaps.bit_count()} items unaccounted for: {view.named(verdict.gaps)}. "
        "Handle them or list them in items_skipped with a reason."
    )


def _finish_call(turn: Turn) -> Call | None:
    for call in turn.calls:
        if call.tool == FINISH_TOOL:
            return call
    return None


def _first_is_text(turn: Turn) -> bool:
    return bool(turn.content) and type(turn.content[0]) is Text


def _more(count: int, cap: int | None) -> int:
    return 0 if cap is None else count + 1


# Endings


def _limit(loop: Loop, state: State, instruments: Instruments) -> str:
    """The native name of the limit that is reached; empty where none is."""
    limits = loop.limits
    if limits.turns is not None and state.turns >= limits.turns:
        return "max_turns"
    if limits.tokens is not None and instruments.tokens >= limits.tokens:
        return "max_tokens"
    if limits.usd is not None and instruments.usd >= limits.usd:
        return "max_usd"
    return "user_gone" if state.leaving == 2 else ""


def _run_out(loop: Loop, state: State, view: View, native: str) -> Step:
    return _end(loop, state, view, _THEN[loop.strategy.then], native)


def _end(loop: Loop, state: State, view: View, kind: EndingKind, native: str, *, ask: bool = True) -> Step:
    """End the run, unless ``done_when``, asked once before, is met."""
    verdict = loop.strategy.done_when(view) if ask else None
    if verdict is not None and verdict.met:
        return _done(loop, state, view, verdict)
    return state, _ending(loop, state, view, kind, native, verdict), verdict


def _done(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    """``done``, or ``partial`` where the harness knows of a skip that the task does not allow."""
    task = loop.task
    told = None
    call = _finish_call(view.turn)
    if call is not None:
        told = read_finish(call.arguments)
    refused = 0
    if told is not None:
        refused |= task.items_of(told.skipped) & ~task.skippable
    if "skipped" in loop.names:
        refused |= view.items("skipped") & ~task.skippable
    kind: EndingKind = "partial" if refused else "done"
    return state, _ending(loop, state, view, kind, "done_when", verdict), verdict


def _ending(
    loop: Loop, state: State, view: View, kind: EndingKind, native: str, verdict: Verdict | None
) -> End:
    """The same report for every ending: what is outstanding, what was skipped, why it ended."""
    task = loop.task
    outstanding: tuple[str, ...] | None = None
    if (verdict is not None and verdict.names) or state.finish_seen:
        items = verdict.gaps if verdict is not None else 0
        named = task.items_of(state.skips)
        items |= named & ~task.skippable if state.excused else named
        outstanding = task.names(items)
    reason = verdict.reason if verdict is not None else native
    return End(Ending(kind, native, Report(outstanding, state.skips, reason)))
