"""The key that goes out with a call, so that whoever gets it twice does it once."""

from __future__ import annotations

from collections.abc import Iterable

from evalkit.core.keys import item_of, own_key, undoes
from evalkit.core.tasks import Task
from evalkit.core.turns import Call
from evalkit.worker.task_records import Effect


def key_of(id: str, task: Task, call: Call, turn: int, place: int, before: Iterable[Effect]) -> str:
    """The idempotency key of a call, from the task and the step, by the rule of :mod:`evalkit.core.keys`.

    The step of a call about an item is the logical action: tool, arguments and item. So a model that goes on
    after a break and does the same again, in another turn, does it under the same key. What undid it on the
    item in between (``before``) begins a new generation: it may be done anew. A call about no item has only
    its turn and place.
    """
    item = item_of(task, call)
    if not item:
        return f"{id}:{turn}/{place}"
    generation = sum(
        effect.item == item
        and effect.status == "confirmed"
        and not (effect.result is not None and effect.result.error)
        and (tool := task.tools.get(effect.tool)) is not None
        and undoes(tool, call.tool)
        for effect in before
    )
    return own_key(id, call, generation)
