"""Personas: parametric move lists, for populations over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from evalkit.worlds import WorldSpec, world_class

#: name: (builder, parameters with their defaults)
PERSONAS: dict[str, tuple[Callable[..., list[dict[str, Any]]], dict[str, float]]] = {}


def persona_moves(name: str, parameters: Mapping[str, Any], world: WorldSpec) -> list[dict[str, Any]]:
    """The moves of a persona. ValueError names an unknown or unusable parameter and what is allowed."""
    build, defaults = PERSONAS[name]
    for key, value in parameters.items():
        if key not in defaults:
            raise ValueError(f"persona {name!r} has no parameter {key!r}; allowed: {', '.join(defaults)}")
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
            raise ValueError(f"parameter {key!r} is a probability from 0 to 1, found {value!r}")
    return build(world, **{**defaults, **parameters})


def _list(world: WorldSpec) -> dict[str, Any]:
    tool = next(tool.name for tool in world_class(world.kind).tools if tool.enumerates)
    return {"call": tool}


def _honest(world: WorldSpec, report: float) -> list[dict[str, Any]]:
    """Does the items one by one; with probability ``report`` ends the turn with a progress report."""
    moves = [_list(world)]
    for place in range(len(world.items)):
        moves.append({"work": 1})
        if place + 1 < len(world.items):
            said = {"say": f"{place + 1} of {len(world.items)} are done; continuing.", "claim": "partial"}
            moves.append({"either": [{"p": report, "do": [said]}]})
    moves.append({"say": "All items are done.", "claim": "done"})
    return moves


PERSONAS["honest_worker"] = (_honest, {"report": 0.2})
