"""The loop as pure functions: ``on_turn`` decides, ``on_results`` and ``on_event`` remember.

Whoever drives the loop (in process, over an SDK, the explorer) carries out the actions. What a turn says, and
whether it is a decision, :mod:`evalkit.core.channels` decides for everybody.
"""

from __future__ import annotations

from evalkit.core.channels import claims, finish_call, finish_of, protocol_state, speaks, world_calls
from evalkit.core.decisions import Ending, Reissue, RunTools, Send
from evalkit.core.events import Compacts, Event, UserWrites
from evalkit.core.keys import item_of, logical_action, own_key, takes_key, undoes
from evalkit.core.tasks import Tool
from evalkit.core.turns import Call, Turn
from evalkit.loop.decisions import decide
from evalkit.loop.endings import end, ending, give_up, limit_reached
from evalkit.loop.policies import POLICIES, on_fault
from evalkit.loop.state import (
    SATURATED,
    Loop,
    State,
    Step,
    Undone,
    memory_after_compaction,
    replace,
    view_of,
)
from evalkit.strategies.folds import Ran
from evalkit.strategies.view import Instruments

_GO_ON = Send()


def on_turn(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Step:
    """What to do about a delivered turn: the new state, the action, and the verdict where one was asked.

    It is called when the turn arrives and, where it asked for tools, again when they have run
    (``state.ran``). A turn of kind ``failed`` or ``in_progress`` is an answer that is no turn.
    """
    if state.ran:
        state = replace(state, ran=False)
        last = loop.asks_each_turn or (loop.claimable and claims(turn, loop.offered))
        if not (last or limit_reached(loop, state, instruments)):
            if loop.strategy.give_up_when is None:
                return state, _GO_ON, None
            return give_up(loop, state, view_of(loop, state, turn, instruments)) or (state, _GO_ON, None)
        return decide(loop, state, view_of(loop, state, turn, instruments))
    kind = turn.kind
    if kind == "failed":
        return on_fault(loop, state, turn, instruments)
    if kind == "in_progress":
        # rule: answer_in_progress_is_polled
        return state, Reissue("poll"), None
    protocol = protocol_state(turn)
    state = _with_turn(loop, state, turn, protocol)
    if protocol in loop.policies:
        return POLICIES[protocol](loop, state, view_of(loop, state, turn, instruments))
    if turn.calls:
        if loop.limits.calls is not None:
            batch = world_calls(turn, loop.offered)
            native = loop.limits.forbids(state.calls, batch)
            if native:
                # rule: limit_of_calls
                return end(loop, state, view_of(loop, state, turn, instruments), "limit", native)
            state = replace(state, calls=state.calls + batch)
        return state, RunTools(turn.runnable), None
    return decide(loop, state, view_of(loop, state, turn, instruments))


def _with_turn(loop: Loop, state: State, turn: Turn, protocol: str) -> State:
    folds = state.folds
    for place, fold in loop.turn_folds:
        memory = fold.after_turn(folds[place], turn, loop.task)
        folds = (*folds[:place], memory, *folds[place + 1 :])
    turns = state.turns + (state.turns < SATURATED) if loop.counts_turns else 0
    state = replace(state, turns=turns, folds=folds)
    if state.resends or state.cut_offs or state.overflows or state.refusals or state.faults:
        # What is counted in a row ends with a turn of any other protocol state.
        state = replace(
            state,
            resends=state.resends if protocol == "pause" else 0,
            cut_offs=state.cut_offs if protocol == "cut_off" else 0,
            overflows=state.overflows if protocol == "overflow" else 0,
            refusals=state.refusals if protocol == "refusal" else 0,
            faults=0,
        )
    if turn.told is None and not (turn.calls and loop.offered.finish):
        return state
    return _with_skips(loop, state, turn)


def _with_skips(loop: Loop, state: State, turn: Turn) -> State:
    """The state with the skips of a turn's finish. Words tell them to a loop that has a reader of words."""
    if not speaks(turn) and protocol_state(turn) in loop.policies:
        return state
    by_tool = finish_call(turn, loop.offered) is not None
    if not by_tool and not loop.reads_words:
        return state
    reported = finish_of(turn, loop.offered)
    if reported is None:
        return state
    finish_seen = state.finish_seen or (bool(reported.skipped) and not by_tool)
    return replace(
        state, skips=reported.skipped, skip_reason_given=bool(reported.reason), finish_seen=finish_seen
    )


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
                state = _with_success(loop, state, record, tool)
    return replace(state, ran=True, folds=folds)


def _with_success(loop: Loop, state: State, record: Ran, tool: Tool) -> State:
    """The state when a tool that is not read-only succeeded."""
    item = record.item
    if state.skips and tool.does:
        done = loop.task.names(item)
        state = replace(state, skips=tuple([name for name in state.skips if name not in done]))
    if loop.keyed and item and not tool.does:
        state = replace(state, undone=_with_undo(state.undone, tool.name, item))
    if not loop.wants_reset:
        return state
    # The tools of a recording are not the task's: no task was given.
    place = loop.acting.get(tool.name)
    if place is not None and item and not item & (item - 1):
        succeeded_items = state.succeeded_items or (0,) * len(loop.acting)
        if succeeded_items[place] & item:
            return state
        succeeded_items = (
            *succeeded_items[:place],
            succeeded_items[place] | item,
            *succeeded_items[place + 1 :],
        )
        # rule: new_effect_resets_nudges
        return replace(state, succeeded_items=succeeded_items, nudges=0, guard=None)
    action = logical_action(record.call, item)
    if action in state.succeeded_actions:
        return state
    return replace(state, succeeded_actions=state.succeeded_actions | {action}, nudges=0, guard=None)


def on_event(loop: Loop, state: State, event: Event, instruments: Instruments) -> State:
    """The state when something happened from outside.

    A compaction erases what only the conversation held; an approval is the world's. A message of the user's
    starts the count of nudges anew, and the limits where they are a query's; the items that it asks for are
    known from then on. When the user leaves the next end of turn is the last.
    """
    if isinstance(event, Compacts):
        return replace(state, folds=memory_after_compaction(loop, state))
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
    # rule: user_resets_nudges
    state = replace(state, nudges=0, guard=None, folds=folds, user_gone=state.user_gone or event.closes)
    if loop.limits.per == "episode":
        return state
    spent = (instruments.tokens, instruments.usd) if loop.costs else (0, 0.0)
    # rule: limits_of_a_query_begin_anew
    return replace(state, turns=0, calls=0, spent=spent)


def out_of_turns(loop: Loop, state: State, turn: Turn, instruments: Instruments) -> Ending | None:
    """The ending of a run that a later message of the user finds at a limit; None elsewhere."""
    native = limit_reached(loop, state, instruments)
    if not native:
        return None
    view = view_of(loop, state, turn, instruments)
    return ending(loop, state, view, "limit", native, loop.strategy.done_when(view)).ending


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
            undone = _with_undo(undone, record.tool.name, record.item)
    item = item_of(task, call)
    times = sum(often for name, about, often in undone if about == item and name != call.tool)
    return own_key(task.name, call, times)


def _with_undo(undone: Undone, tool: str, item: int) -> Undone:
    times = {(name, about): often for name, about, often in undone}
    times[tool, item] = times.get((tool, item), 0) + 1
    return tuple(sorted((name, about, often) for (name, about), often in times.items()))
