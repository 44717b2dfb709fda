"""Termination strategies: conditions, policies, presets."""

from evalkit.strategies.strategy import Strategy

__all__ = ["Strategy"]
