"""A person's answer: the task goes on where it stood, its state intact, with a new allowance."""

from __future__ import annotations

import msgspec

from evalkit.core.channels import OWN_TOOLS, speaks
from evalkit.core.decisions import Send
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Task
from evalkit.core.turns import Call, Turn
from evalkit.drivers.in_process import RECORDED, answers
from evalkit.loop.state import State
from evalkit.strategies.wording import CONTINUE
from evalkit.worker.store.desk import WAITING
from evalkit.worker.store.protocol import Store
from evalkit.worker.task_records import Effect, Progress, Record, TaskError


class _Past:
    """The last turn of a record with the results that were recorded for it."""

    task: Task

    def __init__(self, turn: Turn, effects: list[Effect], number: int) -> None:
        self.previous = Delivered(turn)
        self.ran: dict[str, Result] = {}
        found = {effect.place: effect.result for effect in effects if effect.turn == number}
        for place, call in enumerate(turn.calls):
            result = found.get(place)
            if result is None and call.tool in OWN_TOOLS and speaks(turn):
                result = Result(call.id, RECORDED)
            if result is not None:
                self.ran[call.id] = result

    def ask(self, request: Request) -> Turn:
        raise NotImplementedError("a record answers no request")

    def run(self, call: Call, key: str | None = None) -> Result:
        raise NotImplementedError("a record runs no call")


def reopen(store: Store, id: str, word: str | None, now: float) -> None:
    """Queue a task again that waits for a person. ``word`` is what the person tells the model.

    The nudges, turns and tokens that limits count begin anew; all else is as it was. TaskError where it does
    not wait, or an effect is still in doubt.
    """
    record = store.get(id)
    if record.status not in WAITING or record.lease is not None:
        raise TaskError(f"task {id!r} is {record.status} and waits for no person")
    elsewhere = record.order.settings.get("resume")
    if elsewhere is not None:
        raise TaskError(f"task {id!r} is a session outside of the queue; go on with: {elsewhere}")
    effects = store.effects(record.seq)
    doubtful = [effect.step for effect in effects if effect.status == "uncertain"]
    if doubtful:
        raise TaskError(
            f"task {id!r}: step {doubtful[0]} is in doubt; say whether it happened with:"
            f" evalkit task evidence {id} --settle {doubtful[0]} --as done|not-done"
        )
    progress = store.progress(id)
    granted = _granted(progress.state)
    if progress.resume == "answer":
        asked, number = _answer(store, record, effects, word or CONTINUE)
        progress, word = Progress(granted, asked, number), None
    else:
        progress = msgspec.structs.replace(progress, state=granted)
    store.reopen(id, progress, word, record.lease_number, now)


def _granted(state: State | None) -> State | None:
    """A state with its allowances unspent."""
    if state is None:
        return None
    return msgspec.structs.replace(
        state,
        turns=0,
        nudges=0,
        nudges_total=0,
        resends=0,
        cut_offs=0,
        overflows=0,
        refusals=0,
        faults=0,
        calls=0,
        ran=False,
        guard=None,
    )


def _answer(store: Store, record: Record, effects: list[Effect], word: str) -> tuple[Request, int]:
    """The request that answers the last turn with a person's words."""
    last = store.transcript(record.seq)[-1]
    past = _Past(last.turn, effects, last.number)
    action = Send(word)
    return Request(last.turn, answers(last.turn, past), action.text, last.request.limit), last.number
