"""evalkit measures whether an agent harness knows when its task is over.

``run``, ``load`` and ``judge`` do what the commands do and give values; ``Strategy`` and ``conditions`` make
strategies. Each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evalkit.api import Run, judge, load, run
    from evalkit.strategies import Strategy, conditions

__all__ = ["Run", "Strategy", "__version__", "conditions", "judge", "load", "run"]

_HOMES = {
    "Run": "evalkit.api",
    "judge": "evalkit.api",
    "load": "evalkit.api",
    "run": "evalkit.api",
    "Strategy": "evalkit.strategies",
    "conditions": "evalkit.strategies.conditions",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
    found = import_module(home)
    return found if home.endswith(f".{name}") else getattr(found, name)


def __dir__() -> list[str]:
    return sorted(__all__)
