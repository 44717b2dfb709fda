"""What became of a tool's answer on its way to the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

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
