"""The checklist of a task as its record shows it, read from what the loop remembers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalkit.core.tasks import Task
from evalkit.worker.task_records import Item


def checklist_of(task: Task, memory: Mapping[str, Any], before: tuple[Item, ...]) -> tuple[Item, ...]:
    """The known items and how they stand, from the loop's folds by name.

    Items are done when the model ticked them, where it keeps the list, else when a success is on record.
    A strategy that remembers no items leaves the checklist as it was.
    """
    if "known" not in memory:
        return before
    done = memory.get("ticked", memory.get("succeeded", memory.get("shown", 0)))
    skipped = memory.get("skipped", 0)
    return tuple(
        Item(name, bool(done & bit), bool(skipped & bit))
        for name, bit in task.vocabulary.items()
        if memory["known"] & bit
    )
