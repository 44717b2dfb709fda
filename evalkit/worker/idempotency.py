"""The key that goes out with a call, so that whoever gets it twice does it once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from evalkit.core.tasks import Task
from evalkit.core.turns import Call, parse_arguments
from evalkit.worker.records import Effect

#: The argument in which a model would put a key of its own; the worker's takes its place.
KEY_ARGUMENT = "key"


def item_of(task: Task, call: Call) -> int:
    """The item that a call is about, by its arguments alone; no item where they name none."""
    tool = task.tools.get(call.tool)
    if tool is None or (tool.item is None and task.evidence is None):
        return 0
    return task.items_of_call(tool, parse_arguments(call.arguments) or {}, "", False)


def key_of(id: str, task: Task, call: Call, turn: int, place: int, before: Iterable[Effect]) -> str:
    """The idempotency key of a call, from the task and the step.

    The step of a call about an item is the logical action: tool, arguments and item. So a model that goes on
    after a break and does the same again, in another turn, does it under the same key. An effect of another
    tool on the item in between (``before``) begins a new generation: what was undone may be done anew. A call
    about no item has only its turn and place.
    """
    item = item_of(task, call)
    if not item:
        return f"{id}:{turn}/{place}"
    values = parse_arguments(call.arguments) or {}
    said = json.dumps({name: value for name, value in values.items() if name != KEY_ARGUMENT}, sort_keys=True)
    generation = sum(
        effect.item == item
        and effect.tool != call.tool
        and effect.status == "confirmed"
        and not (effect.result is not None and effect.result.error)
        and not _reads(task, effect.tool)
        for effect in before
    )
    digest = hashlib.blake2b(f"{call.tool}\n{said}\n{generation}".encode(), digest_size=8).hexdigest()
    return f"{id}:{call.tool}:{digest}"


def _reads(task: Task, name: str) -> bool:
    tool = task.tools.get(name)
    return tool is not None and tool.read_only
