"""Worlds: the state that tools act on, and the truth about it."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module

from evalkit.core.names import among
from evalkit.worlds.base import Outcome, World, WorldError, WorldSpec, action_of

__all__ = [
    "Outcome",
    "World",
    "WorldError",
    "WorldSpec",
    "action_of",
    "make_world",
    "world_class",
    "world_kinds",
]

_SHIPPED = {
    "items": "evalkit.worlds.items:ItemsWorld",
    "ledger": "evalkit.worlds.ledger:LedgerWorld",
    "inbox": "evalkit.worlds.inbox:InboxWorld",
    "repo": "evalkit.worlds.repo:RepoWorld",
    "files": "evalkit.worlds.files:FilesWorld",
}


@lru_cache(maxsize=1)
def _plugins() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {point.name: point.value for point in entry_points(group="evalkit.worlds")}


def world_kinds() -> tuple[str, ...]:
    """The kinds of world there are: the shipped ones and those of the entry point ``evalkit.worlds``."""
    return (*_SHIPPED, *(name for name in _plugins() if name not in _SHIPPED))


@lru_cache(maxsize=64)
def world_class(kind: str) -> type[World]:
    """The class of a kind of world; WorldError names the kinds there are."""
    place = _SHIPPED.get(kind) or _plugins().get(kind)
    if place is None:
        raise WorldError(f"unknown world {kind!r}{among(kind, world_kinds())}")
    module, _, name = place.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise WorldError(f"world {kind!r} cannot be loaded from {place}: {error}") from error
    if not (isinstance(found, type) and issubclass(found, World)):
        raise WorldError(f"world {kind!r} at {place} is not a subclass of evalkit.worlds.World")
    return found


def make_world(spec: WorldSpec) -> World:
    """A new world in its first state."""
    return world_class(spec.kind)(spec)
