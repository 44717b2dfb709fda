"""Logical actions, and the idempotency keys that go out with them: whoever gets a key twice acts once."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache

from evalkit.core.tasks import Task, Tool
from evalkit.core.turns import Call, parse_arguments

#: The argument in which a model would put a key of its own; a harness's takes its place.
KEY_ARGUMENT = "key"


def takes_key(tool: Tool) -> bool:
    """Whether a tool makes a repetition once by its key."""
    return KEY_ARGUMENT in tool.arguments


def item_of(task: Task, call: Call) -> int:
    """The item that a call is about, by its arguments alone; no item where they name none."""
    tool = task.tools.get(call.tool)
    if tool is None or (tool.item is None and task.evidence is None):
        return 0
    return task.items_of_call(tool, parse_arguments(call.arguments) or {}, "", False)


def logical_action(call: Call, item: int) -> str:
    """The name of what a call does: tool and items, or where it names none tool and arguments but the key."""
    return f"{call.tool} {item}" if item else _spelled(call.tool, call.arguments)


@lru_cache(maxsize=8192)
def _spelled(tool: str, arguments: str) -> str:
    return f"{tool} {said_but_key(arguments)}"


@lru_cache(maxsize=8192)
def said_but_key(arguments: str) -> str:
    """A call's arguments without the key, written in one way; broken ones as they are."""
    values = parse_arguments(arguments)
    if values is None:
        return arguments
    return json.dumps({name: value for name, value in values.items() if name != KEY_ARGUMENT}, sort_keys=True)


def undoes(tool: Tool, done_by: str) -> bool:
    """Whether success of a tool on an item may have taken back what another did to it."""
    return tool.name != done_by and not tool.read_only and not tool.does


def own_key(scope: str, call: Call, generation: int) -> str:
    """The key of a logical action in its n-th generation; something that undoes it begins the next.

    ``scope`` keeps two tasks apart.
    """
    said = f"{call.tool}\n{said_but_key(call.arguments)}\n{generation}"
    digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{scope}:{call.tool}:{digest}"


def with_key(arguments: str, key: str) -> str:
    """A call's arguments with another key; broken ones stay as they are."""
    values = parse_arguments(arguments)
    return arguments if values is None else json.dumps({**values, KEY_ARGUMENT: key})
