"""Orders for tasks, checked before they are queued."""

from __future__ import annotations

import re
import secrets

import msgspec

from evalkit.strategies.registry import StrategyError, find_strategy
from evalkit.worker.task_records import Order, TaskError
from evalkit.worker.workplace import find_kit

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def new_id() -> str:
    """A fresh id for a task."""
    return secrets.token_hex(5)


def checked(order: Order) -> Order:
    """An order as it may be queued. TaskError names what cannot be: id, words, items, strategy, kit."""
    if not _ID.fullmatch(order.id):
        raise TaskError(
            f"task id {order.id!r}: allowed are up to 100 letters, digits, '_', '.', '-', not '_.-' first"
        )
    if not order.prompt.strip():
        raise TaskError(f"task {order.id!r}: the prompt is empty")
    twice = sorted({item for item in order.items if order.items.count(item) > 1})
    if twice:
        raise TaskError(f"task {order.id!r}: item {twice[0]!r} is named twice")
    for name in ("turns", "tokens", "usd"):
        value = getattr(order.limits, name)
        if value is not None and value <= 0:
            raise TaskError(f"task {order.id!r}: limit {name} must be above 0, got {value!r}")
    try:
        find_strategy(order.strategy)
    except StrategyError as error:
        raise TaskError(str(error)) from None
    find_kit(order.kit)
    return order


def with_closure(order: Order, closure: str | None) -> Order:
    """The order closed by ``worker`` or ``person``; None: by the worker where there are acceptance checks.

    Without a check, closing rests on what the model says of itself, so a person has the last word.
    """
    chosen = closure or ("worker" if order.checks else "person")
    return msgspec.structs.replace(order, closure=chosen)
