"""The gate as a Stop hook: another driver of the same loop, whose turns come one process at a time.

A coding agent calls it with JSON on standard input when it is about to stop. The hook blocks the stop with
the open items, or lets it through. It remembers a session in the same store as the worker its tasks, so a
session handed over to a person leaves the same artifact.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from evalkit.core.decisions import End, Ending, Send, Verdict
from evalkit.core.requests import Request
from evalkit.core.tasks import Limits, Task
from evalkit.core.turns import Text, Turn, make_turn
from evalkit.loop.state import Loop, State, start
from evalkit.loop.transitions import on_turn
from evalkit.strategies import conditions as c
from evalkit.strategies.strategy import Strategy
from evalkit.worker.escalation import hand_over
from evalkit.worker.open_items import Checked, acted_since
from evalkit.worker.store.protocol import Store
from evalkit.worker.task_records import Completion, Evidence, Exchange, Held, Item, Order, Progress, TaskError
from evalkit.worker.telemetry import end_event, stop_event

#: Blocks in a row without progress after which a session is handed over.
CAP = 3
TYPE = "stop_hook"
_LEASE = 600.0


class Stop(msgspec.Struct, frozen=True):
    """What the hook is told, in the words of Claude Code's hook input; unknown fields are left alone.

    ``stop_hook_active`` says that the agent goes on already because a Stop hook blocked it.
    """

    session_id: str
    hook_event_name: str = "Stop"
    stop_hook_active: bool = False
    transcript_path: str = ""
    cwd: str = ""
    last_assistant_message: str | None = None


class Answer(msgspec.Struct, frozen=True):
    """What the hook says: ``block`` with the reason for the model, or a note for the user, or nothing."""

    block: str | None = None
    note: str | None = None

    def output(self) -> dict[str, Any]:
        """The hook's output as JSON values; empty lets the stop through in silence."""
        if self.block is not None:
            return {"decision": "block", "reason": self.block}
        return {"systemMessage": self.note} if self.note else {}


class _Gate:
    """The instruments of the loop: the session's checklist and checks, as they stand now."""

    tokens = 0
    usd = 0.0
    last_turn: Turn | None = None

    def __init__(self, task: Task, items: Sequence[Item]) -> None:
        self._task = task
        self._gaps = task.items_of(tuple(line.item for line in items if not line.done))

    def checks(self) -> Verdict:
        if self._gaps:
            names = ", ".join(self._task.names(self._gaps))
            return Verdict(False, f"still open: {names}", self._gaps, True)
        return Verdict(True, "every item is done and every check passes", 0, True)

    def artifact(self) -> bool:
        return False

    def replays(self, item: str) -> bool:
        return False


def read_stop(raw: bytes) -> Stop:
    """The hook's input. TaskError where it is not what a Stop hook is given."""
    try:
        return msgspec.json.decode(raw, type=Stop)
    except (msgspec.DecodeError, RecursionError) as error:
        raise TaskError(f"the hook's input is not that of a Stop hook: {error}") from None


def judge_stop(
    store: Store,
    home: Path,
    stop: Stop,
    checklist: Sequence[Item],
    checks: Sequence[Checked],
    now: float,
    cap: int = CAP,
) -> Answer:
    """Whether the session may stop; what was decided is on its record when this returns.

    Blocked: while items are open or checks fail. Let through: when none is; when the agent goes on only
    because of a block (``stop_hook_active``), called no tool since and leaves the same items open; and after
    ``cap`` blocks without an item done. The last two hand the session over to a person.
    """
    if stop.hook_event_name != "Stop":
        return Answer()
    held = _held(store, stop, checks, now)
    found = (*checklist, *(Item(f"check: {check.command}", check.passed) for check in checks))
    items = _in_order(held.record.checklist, found)
    task = _task(items)
    strategy = Strategy(done_when=c.acceptance(), name=TYPE, nudges=cap, loop_guard=True, max_turns=None)
    loop = Loop(strategy, task)
    state = _state(strategy, task, held, stop, items)
    turn = make_turn((Text(stop.last_assistant_message or ""),), "end_turn")
    number = held.record.turns + 1
    asked = held.progress.request
    exchange = Exchange(number, asked, turn, at=now)
    store.keep_turn(held.lease, exchange, held.progress.echo, "awaiting_verification")
    gate = _Gate(task, items)
    state, action, verdict = on_turn(loop, state, turn, gate)
    stopped = stop_event(turn, task.offered, action, verdict, now)
    events = [stopped] if stopped is not None else []
    evidence = [
        Evidence(f"check {check.command}", TYPE, {"passed": check.passed, "detail": check.detail}, now)
        for check in checks
    ]
    if isinstance(action, Send):
        words = _reason(action.text or "", checks)
        progress = Progress(state, Request(turn, (), words), number, "answer")
        store.keep_progress(held.lease, progress, items, events, True, now, parked=True)
        return Answer(block=words)
    assert isinstance(action, End), "an end of turn is answered or ends the run"
    ending = action.ending
    progress = Progress(state, asked, held.progress.echo, "answer")
    events.append(end_event(ending, turn.stop, now))
    if ending.kind == "done":
        proof = {
            "condition": verdict.reason if verdict is not None else "",
            "checklist": [i.item for i in items],
        }
        completion = Completion(f"{held.record.id}:final", TYPE, proof, now)
        store.close(held.lease, ending, "done", progress, items, evidence, events, completion, now)
        return Answer()
    store.close(held.lease, ending, "escalated", progress, items, evidence, events, None, now)
    path = hand_over(store, held.record.id, home)
    return Answer(note=f"evalkit: handed over with {_count(ending)} open: {path}")


def _held(store: Store, stop: Stop, checks: Sequence[Checked], now: float) -> Held:
    """The session's record under a lease; a session that was done and goes on gets a new one."""
    number = 1
    while True:
        id = stop.session_id if number == 1 else f"{stop.session_id}.{number}"
        try:
            kept = store.get(id)
        except TaskError:
            store.add((_order(id, stop, checks),), now, parked=True)
            kept = store.get(id)
        if kept.status != "done":
            return store.hold(id, f"hook:{os.getpid()}", now, _LEASE)
        number += 1


def _order(id: str, stop: Stop, checks: Sequence[Checked]) -> Order:
    return Order(
        id=id,
        prompt=f"Session {stop.session_id} in {stop.cwd or os.getcwd()}",
        done_when="Every item is done and every check passes.",
        type=TYPE,
        kit=TYPE,
        strategy=TYPE,
        checks=tuple(check.command for check in checks),
        limits=Limits(),
        settings={"transcript": stop.transcript_path, "resume": f"claude --resume {stop.session_id}"},
    )


def _in_order(before: Sequence[Item], found: Sequence[Item]) -> tuple[Item, ...]:
    """The items in the order in which they were first seen, so that each keeps its place; gone ones are left
    out at the end of the list only, as done."""
    now = {line.item: line for line in found}
    known = [now.get(line.item, Item(line.item, True)) for line in before]
    fresh = [line for line in now.values() if line.item not in {old.item for old in before}]
    return (*known, *fresh)


def _task(items: Sequence[Item]) -> Task:
    return Task(
        name=TYPE,
        prompt="",
        done_when="",
        checks="full",
        given=True,
        vocabulary={line.item: 1 << place for place, line in enumerate(items)},
        skippable=0,
        tools={},
        limits=Limits(),
    )


def _state(strategy: Strategy, task: Task, held: Held, stop: Stop, items: Sequence[Item]) -> State:
    """The loop's state: begun anew where no hook blocked before, its allowance anew where items were done.

    As in any run the loop guard counts a stop only if nothing was done since the block.
    """
    state = held.progress.state
    if state is None or not stop.stop_hook_active:
        return start(strategy, task)
    blocked_for = state.guard[0] if state.guard is not None else 0
    gaps = task.items_of(tuple(line.item for line in items if not line.done))
    if blocked_for & ~gaps:
        return msgspec.structs.replace(state, nudges=0, guard=None)
    words = held.progress.request.text
    if words and stop.transcript_path and acted_since(Path(stop.transcript_path), words):
        return msgspec.structs.replace(state, guard=None)
    return state


def _reason(words: str, checks: Sequence[Checked]) -> str:
    failed = [f"{check.command}: {check.detail}" for check in checks if not check.passed]
    return "\n".join([words, *failed])


def _count(ending: Ending) -> str:
    outstanding = ending.report.outstanding or ()
    return f"{len(outstanding)} item{'s' if len(outstanding) != 1 else ''}"
