"""What became of a tool's answer on its way to the model."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.keys import KEY_ARGUMENT
from evalkit.core.turns import Call, parse_arguments

Carried: TypeAlias = Literal["same", "altered", "reworded"]


def carried(said: str, shown: str, others: Iterable[str]) -> Carried:
    """How an answer that a tool said reached the model, which was shown ``shown`` in its place.

    ``altered``: it is blank, or it is what one of the ``others`` said, the answers to other calls.
    ``reworded``: it was shortened, wrapped or told in other words. White space around it does not count.
    """
    said, shown = said.strip(), shown.strip()
    if said == shown:
        return "same"
    if not shown:
        return "altered"
    if said and (said in shown or shown in said):
        return "reworded"
    apart = (other.strip() for other in others)
    return "altered" if any(other and other in shown for other in apart) else "reworded"


def without_key(call: Call) -> str:
    """A call as what it is to do: its tool and arguments, an idempotency key left out."""
    keyed = KEY_ARGUMENT in call.arguments
    return f"{call.tool} {_without_key(call.arguments) if keyed else call.arguments}"


@lru_cache(maxsize=4096)
def _without_key(arguments: str) -> str:
    values = parse_arguments(arguments)
    if values is None:
        return arguments
    kept = {name: value for name, value in values.items() if name != KEY_ARGUMENT}
    return msgspec.json.encode(kept).decode()
