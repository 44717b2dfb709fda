"""evalkit measures whether an agent harness knows when its task is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from evalkit.strategies import Strategy, conditions

__all__ = ["Strategy", "__version__", "conditions"]


def __getattr__(name: str) -> Any:
    if name == "Strategy":
        from evalkit.strategies import Strategy

        return Strategy
    if name == "conditions":
        from evalkit.strategies import conditions

        return conditions
    raise AttributeError(f"module 'evalkit' has no attribute {name!r}")
