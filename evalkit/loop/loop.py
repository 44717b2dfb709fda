"""The loop as pure functions: ``on_turn`` decides, ``on_results`` and ``on_event`` remember.

The state is one immutable, hashable value: no messages, reasons, call ids or order of calls in it. Whoever
drives the loop (in process, over an SDK, the explorer) carries out the actions. What a turn says, and whether
it is a decision, :mod:`evalkit.core.channels` decides for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import TypeAlias

import msgspec

from evalkit.core.channels import claims, finish_call, finish_of, protocol_state, speaks, world_calls
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
from evalkit.core.keys import item_of, logical_action, own_key, takes_key, undoes
from evalkit.core.requests import cannot_pass, says_window_full
from evalkit.core.tasks import Limits, Task, Tool
from evalkit.core.turns import Call, Text, Turn
from evalkit.strategies import conditions as c
from evalkit.strategies.folds import Ran, looks_at_looks, looks_at_turns
from evalkit.strategies.strategy import FAULTS_IN_A_ROW, REFUSALS_IN_A_ROW, Strategy
from evalkit.strategies.view import Instruments, View

#: How often each tool that takes work back succeeded on which items.
Undone: TypeAlias = tuple[tuple[str, int, int], ...]
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

    ``turns`` are model turns; ``nudges`` those since the last new effect or message of the user, ``nudged``
    those in all; ``resends``, ``cut_offs``, ``overflows``, ``refusals``, ``faults`` are in a row. ``ran``:
    the calls of the current turn were run. ``acted`` are the logical actions that succeeded and are not about
    one item; ``touched`` are the items on which each tool of :attr:`Loop.acting` succeeded, empty where none
    has. ``guard`` is what the loop guard blocked for last. ``skips`` are the ids that the last finish
    skipped, ``excused``: it gave a reason, ``finish_seen``: a finish made a report. ``folds`` are the
    strategy's memory. ``leaving``: the next end of turn is the last, the user is gone. ``calls`` are the tool
    calls that were run, ``spent`` the tokens and dollars spent when the user last wrote, where a limit counts
    them. ``undone`` says how often each (tool, item) succeeded that takes work back, where it sets keys.
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
    leaving: bool = False
    touched: tuple[int, ...] = ()
    # Kept states are read by place, so what is new comes last.
    overflows: int = 0
    calls: int = 0
    spent: tuple[int, float] = (0, 0.0)
    undone: Undone = ()


def start(strategy: Strategy, task: Task) -> State:
    """The state before the first turn."""
    return State(folds=tuple(fold.start(task) for fold in strategy.folds))


def limits_of(strategy: Strategy, limits: Limits) -> Limits:
    """The limits that bind: the smaller of the strategy's own and the scenario's."""
    return _smaller(strategy.max_turns, strategy.max_tokens, strategy.max_usd, limits)


@lru_cache(maxsize=256)
def _smaller(turns: int | None, tokens: int | None, usd: float | None, limits: Limits) -> Limits:
    def smaller(own: float | None, given: float | None) -> float | None:
        return min(own, given) if own is not None and given is not None else own if given is None else given

    fewer, less = smaller(turns, limits.turns), smaller(tokens, limits.tokens)
    return Limits(
        turns=None if fewer is None else int(fewer),
        tokens=None if less is None else int(less),
        usd=smaller(usd, limits.usd),
        calls=limits.calls,
        per=limits.per,
    )


class Loop:
    """A strategy bound to a task: what ``on_turn`` and ``on_results`` need, worked out once.

    ``counts_turns`` is False where no turn limit binds; the turn count is then no part of the state.
    ``costs``: a limit of tokens or money binds.
    """

    __slots__ = (
        "acting",
        "asks_each_turn",
        "claimable",
        "costs",
        "counts_turns",
        "folds",
        "keyed",
        "limits",
        "look_folds",
        "names",
        "offered",
        "policies",
        "reads_words",
        "strategy",
        "task",
        "turn_folds",
        "validates",
        "wants_reset",
    )

    def __init__(self, strategy: Strategy, task: Task) -> None:
        self.strategy = strategy
        self.offered = task.offered | strategy.offers
        self.task = task if task.offered == self.offered else _replace(task, offered=self.offered)
        self.limits = _smaller(strategy.max_turns, strategy.max_tokens, strategy.max_usd, task.limits)
        self.folds = strategy.folds
        #: The folds whose memory can change with a turn alone, each with its place in ``State.folds``.
        self.turn_folds = tuple([pair for pair in enumerate(self.folds) if looks_at_turns(pair[1])])
        self.look_folds = any(map(looks_at_looks, self.folds))
        self.names = tuple([fold.name for fold in self.folds])
        #: Whether a reader of words is among the conditions, so that a skip told in words is known.
        self.reads_words = "skipped" in self.names
        #: Whether a finish is held against the known items wherever one is taken.
        self.validates = self.offered.finish and _validates(strategy.done_when)
        self.counts_turns = self.limits.turns is not None or strategy.random
        self.costs = self.limits.tokens is not None or self.limits.usd is not None
        self.wants_reset = strategy.nudges is not None or strategy.loop_guard
        self.asks_each_turn = strategy.check == "each_tool_turn"
        #: Whether a turn with calls can claim to be the last.
        self.claimable = self.offered.beside_calls
        #: The tools that are not read-only, each with its place in ``State.touched``.
        self.acting = acting_tools(task)
        #: Whether calls go out under keys of the loop's own.
        self.keyed = strategy.repeats == "own_key" and any(map(takes_key, task.tools.values()))
        #: What comes before the content is looked at, by the kind of turn, a full window by itself.
        self.policies = _policies(
            strategy.pause, strategy.cut_off, strategy.overflow, strategy.refusal, strategy.unknown
        )


_last_bound: Loop | None = None


def bound(strategy: Strategy, task: Task) -> Loop:
    """A strategy bound to a task. Episodes of the same come in a row, so the last is kept."""
    global _last_bound
    last = _last_bound
    if last is None or last.strategy is not strategy or last.task is not task:
        last = _last_bound = Loop(strategy, task)
    return last


@lru_cache(maxsize=256)
def _policies(*chosen: str) -> Mapping[str, Callable[[Loop, State, View], Step]]:
    policies = {
        "pause": _on_pause,
        "cut_off": _on_cut_off,
        "overflow": _on_overflow,
        "refusal": _on_refusal,
        "unknown": _on_unknown,
    }
    pairs = zip(policies.items(), chosen, strict=True)
    return {kind: policy for (kind, policy), choice in pairs if choice != "as_content"}


def _validates(condition: c.Condition) -> bool:
    found = [part for part in c.parts_of(condition) if isinstance(part, c.finish)]
    return bool(found) and all(part.validate for part in found)


def acting_tools(task: Task) -> dict[str, int]:
    """The tools whose success can be a new effect, each with its place in :attr:`State.touched`."""
    names = [name for name, tool in task.tools.items() if not tool.read_only]
    return {name: place for place, name in enumerate(names)}


def on_turn(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """What to do about a delivered turn: the new state, the action, and the verdict where one was asked.

    It is called when the turn arrives and, where it asked for tools, again when they have run
    (``state.ran``). A turn of kind ``failed`` or ``in_progress`` is an answer that is no turn.
    """
    if state.ran:
        state = _replace(state, ran=False)
        last = loop.asks_each_turn or (loop.claimable and claims(turn, loop.offered))
        if not (last or _limit(loop, state, instruments)):
            if loop.strategy.give_up_when is None:
                return state, _GO_ON, None
            return _hopeless(loop, state, _view(loop, state, turn, instruments)) or (state, _GO_ON, None)
        return _decide(loop, state, _view(loop, state, turn, instruments))
    kind = turn.kind
    if kind == "failed":
        return _on_fault(loop, state, turn, instruments)
    if kind == "in_progress":
        return state, Reissue("poll"), None
    protocol = protocol_state(turn)
    state = _counted(loop, state, turn, protocol)
    policy = loop.policies.get(protocol)
    if policy is not None:
        return policy(loop, state, _view(loop, state, turn, instruments))
    if turn.calls:
        if loop.limits.calls is not None:
            batch = world_calls(turn, loop.offered)
            native = loop.limits.forbids(state.calls, batch)
            if native:
                return _end(loop, state, _view(loop, state, turn, instruments), "limit", native)
            state = _replace(state, calls=state.calls + batch)
        return state, RunTools(turn.runnable), None
    return _decide(loop, state, _view(loop, state, turn, instruments))


def on_results(loop: Loop, state: State, ran: tuple[Ran, ...]) -> State:
    """The state when calls of the current turn were run: evidence remembered, nudges reset by new effects."""
    folds = state.folds
    if folds:
        task = loop.task
        folds = tuple(
            [fold.after_results(memory, ran, task) for fold, memory in zip(loop.folds, folds, strict=True)]
        )
    if loop.wants_reset or loop.keyed or state.skips:
        for record in ran:
            tool = record.tool
            if tool is not None and not tool.read_only and not record.result.error:
                state = _succeeded(loop, state, record, tool)
    return _replace(state, ran=True, folds=folds)


def _succeeded(loop: Loop, state: State, record: Ran, tool: Tool) -> State:
    """The state when a tool that is not read-only succeeded."""
    item = record.item
    if state.skips and tool.does:
        done = loop.task.names(item)
        state = _replace(state, skips=tuple([name for name in state.skips if name not in done]))
    if loop.keyed and item and not tool.does:
        state = _replace(state, undone=_once_more(state.undone, tool.name, item))
    if not loop.wants_reset:
        return state
    # The tools of a recording are not the task's: no task was given.
    place = loop.acting.get(tool.name)
    if place is not None and item and not item & (item - 1):
        touched = state.touched or (0,) * len(loop.acting)
        if touched[place] & item:
            return state
        touched = (*touched[:place], touched[place] | item, *touched[place + 1 :])
        return _replace(state, touched=touched, nudges=0, guard=None)
    action = logical_action(record.call, item)
    if action in state.acted:
        return state
    return _replace(state, acted=state.acted | {action}, nudges=0, guard=None)


def on_event(loop: Loop, state: State, event: Event, instruments: Instruments) -> State:
    """The state when something happened from outside.

    A compaction erases what only the conversation held; an approval is the world's. A message of the user's
    starts the count of nudges anew, and the limits where they are a query's; the items that it asks for are
    known from then on. When the user leaves the next end of turn is the last.
    """
    if isinstance(event, Compacts):
        return _replace(state, folds=_compacted(loop, state))
    if not isinstance(event, UserWrites):
        return state
    folds = state.folds
    if event.asks:
        folds = tuple(
            [
                fold.after_asks(memory, event.asks, loop.task) if hasattr(fold, "after_asks") else memory
                for fold, memory in zip(loop.folds, folds, strict=True)
            ]
        )
    state = _replace(state, nudges=0, guard=None, folds=folds, leaving=state.leaving or event.closes)
    if loop.limits.per == "episode":
        return state
    spent = (instruments.tokens, instruments.usd) if loop.costs else (0, 0.0)
    return _replace(state, turns=0, calls=0, spent=spent)


def out_of_turns(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Ending | None:
    """The ending of a run that a later message of the user finds at a limit; None elsewhere."""
    native = _limit(loop, state, instruments)
    if not native:
        return None
    view = _view(loop, state, turn, instruments)
    return _ending(loop, state, view, "limit", native, loop.strategy.done_when(view)).ending


def key_for(loop: Loop, state: State, call: Call, ran: tuple[Ran, ...]) -> str | None:
    """The loop's own key of a call, after these calls of the same turn; None where it sets none.

    A logical action keeps its key until another tool has taken its work back, so a world that knows keys
    makes a repetition once.
    """
    task = loop.task
    tool = task.tools.get(call.tool)
    if not loop.keyed or tool is None or not takes_key(tool):
        return None
    undone = state.undone
    for record in ran:
        if record.tool is not None and undoes(record.tool, call.tool) and not record.result.error:
            undone = _once_more(undone, record.tool.name, record.item)
    item = item_of(task, call)
    times = sum(often for name, about, often in undone if about == item and name != call.tool)
    return own_key(task.name, call, times)


def _once_more(undone: Undone, tool: str, item: int) -> Undone:
    times = {(name, about): often for name, about, often in undone}
    times[tool, item] = times.get((tool, item), 0) + 1
    return tuple(sorted((name, about, often) for (name, about), often in times.items()))


def _compacted(loop: Loop, state: State) -> tuple[Hashable, ...]:
    """The strategy's memory when the conversation was compacted."""
    forget = [getattr(fold, "after_compaction", None) for fold in loop.folds]
    return tuple(
        memory if forgets is None else forgets(memory, loop.task)
        for forgets, memory in zip(forget, state.folds, strict=True)
    )


_replace = msgspec.structs.replace
_GO_ON = Send()


def _view(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> View:
    memory = dict(zip(loop.names, state.folds, strict=True))
    heard = speaks(turn) or protocol_state(turn) not in loop.policies
    return View(loop.task, turn, memory, instruments, state.turns, heard)


def _counted(loop: Loop, state: State, turn: Turn, protocol: str) -> State:
    folds = state.folds
    for place, fold in loop.turn_folds:
        memory = fold.after_turn(folds[place], turn, loop.task)
        folds = (*folds[:place], memory, *folds[place + 1 :])
    turns = state.turns + (state.turns < SATURATED) if loop.counts_turns else 0
    state = _replace(state, turns=turns, folds=folds)
    if state.resends or state.cut_offs or state.overflows or state.refusals or state.faults:
        # What is counted in a row ends with a turn of any other protocol state.
        state = _replace(
            state,
            resends=state.resends if protocol == "pause" else 0,
            cut_offs=state.cut_offs if protocol == "cut_off" else 0,
            overflows=state.overflows if protocol == "overflow" else 0,
            refusals=state.refusals if protocol == "refusal" else 0,
            faults=0,
        )
    if turn.told is None and not (turn.calls and loop.offered.finish):
        return state
    return _told(loop, state, turn)


def _told(loop: Loop, state: State, turn: Turn) -> State:
    """The state with the skips of a turn's finish. Words tell them to a loop that has a reader of words."""
    if not speaks(turn) and protocol_state(turn) in loop.policies:
        return state
    by_tool = finish_call(turn, loop.offered) is not None
    if not by_tool and not loop.reads_words:
        return state
    told = finish_of(turn, loop.offered)
    if told is None:
        return state
    seen = state.finish_seen or (bool(told.skipped) and not by_tool)
    return _replace(state, skips=told.skipped, excused=bool(told.reason), finish_seen=seen)


# Protocol states


def _on_fault(loop: Loop, state: State, failed: Turn, instruments: Instruments) -> Step:
    strategy, native = loop.strategy, f"fault:{failed.native or failed.stop}"
    turn = instruments.last_turn
    view = _view(loop, state, turn, instruments) if turn is not None else None
    if says_window_full(failed.native) and strategy.overflow in ("compact", "raise_limit"):
        step = _with_room(loop, state)
        if step is not None:
            return step
        if view is not None:
            return _run_out(loop, state, view, "overflow")
        return state, End(Ending(_THEN[strategy.then], "overflow", Report(reason=native))), None
    passes = not cannot_pass(failed.native)
    if passes and strategy.faults == "retry" and state.faults < FAULTS_IN_A_ROW:
        return _replace(state, faults=state.faults + 1), Reissue("retry"), None
    if view is not None:
        return _end(loop, state, view, "error", native)
    return state, End(Ending("error", native, Report(reason=native))), None


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


def _on_overflow(loop: Loop, state: State, view: View) -> Step:
    if loop.strategy.overflow == "stop":
        return _end(loop, state, view, "error", f"stopped:{view.turn.stop}")
    if _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    return _with_room(loop, state) or _run_out(loop, state, view, "overflow")


def _with_room(loop: Loop, state: State) -> Step | None:
    """Ask again after a full window, with less history or a larger limit; None where that was of no use."""
    if loop.strategy.overflow == "compact":
        if state.overflows:
            return None
        return _replace(state, overflows=1, folds=_compacted(loop, state)), Reissue("shorten"), None
    cap = loop.strategy.cut_offs
    if cap is not None and state.overflows >= cap:
        return None
    return _replace(state, overflows=_more(state.overflows, cap)), Reissue("limit"), None


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
    state = _reported(loop, state, view)
    state, verdict = _asked(loop, state, view)
    if verdict.met:
        return _done(loop, state, view, verdict)
    native = _limit(loop, state, view.instruments) or ("user_gone" if state.leaving else "")
    if native:
        return state, _ending(loop, state, view, "limit", native, verdict), verdict
    return _nudge(loop, state, view, verdict)


# Decisions


def _asked(loop: Loop, state: State, view: View) -> tuple[State, Verdict]:
    """The verdict of ``done_when``, and the state once it was asked."""
    verdict = loop.strategy.done_when(view)
    if loop.look_folds:
        folds: list[Hashable] = []
        for fold, memory in zip(loop.folds, state.folds, strict=True):
            look = getattr(fold, "after_look", None)
            folds.append(memory if look is None else look(memory, view))
        state = _replace(state, folds=tuple(folds))
    return state, verdict


def _decide(loop: Loop, state: State, view: View) -> Step:
    strategy, turn = loop.strategy, view.turn
    calls = turn.calls
    decision = not calls or claims(turn, loop.offered)
    state = _reported(loop, state, view)
    if strategy.limit_checked == "before_done" and _limit(loop, state, view.instruments):
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments), ask=False)
    if not decision and not loop.asks_each_turn:
        return _end(loop, state, view, "limit", _limit(loop, state, view.instruments))
    if strategy.text == "first_block" and not calls and not _first_is_text(turn):
        return _end(loop, state, view, "error", "first block is not text", ask=False)
    state, verdict = _asked(loop, state, view)
    if verdict.met:
        return _done(loop, state, view, verdict)
    native = _limit(loop, state, view.instruments) or ("user_gone" if decision and state.leaving else "")
    if native:
        return state, _ending(loop, state, view, "limit", native, verdict), verdict
    if not decision:
        # Asked each turn: it is not done, and may be hopeless.
        if strategy.give_up_when is not None and strategy.give_up_when(view).met:
            return state, _ending(loop, state, view, _THEN[strategy.then], "give_up_when", verdict), verdict
        return state, Send(), verdict
    if strategy.empty == "stop" and not calls and not turn.text.strip():
        return state, _ending(loop, state, view, "error", "stopped:empty", verdict), verdict
    return _nudge(loop, state, view, verdict)


def _reported(loop: Loop, state: State, view: View) -> State:
    """The state with a finish call taken down as a report; one without known items to hold it to is none."""
    if state.finish_seen or view.finish is None or (loop.validates and not view.items("known")):
        return state
    return _replace(state, finish_seen=True)


def _hopeless(loop: Loop, state: State, view: View) -> Step | None:
    """The end of a run that the strategy gives up; None where it does not."""
    condition = loop.strategy.give_up_when
    if condition is None or not condition(view).met:
        return None
    return _run_out(loop, state, view, "give_up_when")


def _nudge(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    strategy, turn = loop.strategy, view.turn
    if strategy.give_up_when is not None and strategy.give_up_when(view).met:
        return state, _ending(loop, state, view, _THEN[strategy.then], "give_up_when", verdict), verdict
    if strategy.loop_guard:
        gaps = (verdict.gaps, "" if verdict.names else verdict.reason)
        if state.guard == gaps:
            kind: EndingKind = "done" if view.claim == "done" else "escalated"
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
    if finish_call(turn, loop.offered) is not None:
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


def _first_is_text(turn: Turn) -> bool:
    return bool(turn.content) and type(turn.content[0]) is Text


def _more(count: int, cap: int | None) -> int:
    return 0 if cap is None else count + 1


# Endings


def _limit(loop: Loop, state: State, instruments: Instruments) -> str:
    """The native name of the limit that is reached; empty where none is."""
    if not loop.costs:
        return loop.limits.reached(state.turns, 0, 0.0)
    tokens, usd = state.spent
    return loop.limits.reached(state.turns, instruments.tokens - tokens, instruments.usd - usd)


def _run_out(loop: Loop, state: State, view: View, native: str) -> Step:
    return _end(loop, state, view, _THEN[loop.strategy.then], native)


def _end(loop: Loop, state: State, view: View, kind: EndingKind, native: str, *, ask: bool = True) -> Step:
    """End the run, unless ``done_when``, asked once before, is met."""
    verdict = None
    if ask:
        state, verdict = _asked(loop, state, view)
    if verdict is not None and verdict.met:
        return _done(loop, state, view, verdict)
    return state, _ending(loop, state, view, kind, native, verdict), verdict


def _done(loop: Loop, state: State, view: View, verdict: Verdict) -> Step:
    """``done``, or ``partial`` where the harness knows of a skip that the task does not allow."""
    task = loop.task
    told = view.finish
    refused = 0
    if told is not None:
        refused |= task.items_of(told.skipped) & ~task.skippable
    if loop.reads_words:
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
