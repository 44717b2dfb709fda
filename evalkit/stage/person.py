"""What a person decides about a gated call, whether the decision just comes or is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from evalkit.core.tasks import Tool
from evalkit.core.trace import Trace
from evalkit.scenarios.moves import ApproveSpec
from evalkit.worlds import World, action_of

Kind: TypeAlias = Literal["allow", "refuse", "change"]


class Decided(msgspec.Struct, frozen=True):
    """A decision, and the arguments to run the call with."""

    kind: Kind
    arguments: dict[str, Any]


def gated_item(world: World, tool: Tool | None, values: Mapping[str, Any] | None) -> str | None:
    """The item of a call that needs a person's leave; None where it needs none."""
    name = values.get(tool.item or "") if tool is not None and values is not None else None
    if tool is None or tool.read_only or not isinstance(name, str):
        return None
    return name if world.vocabulary.get(name, 0) & world.gated else None


def decide(
    spec: ApproveSpec, world: World, tool: Tool, item: str, values: Mapping[str, Any]
) -> Decided | None:
    """What the script's person decides; the world knows at once what is approved.

    None where it names no such call.
    """
    if item in spec.refuse:
        return Decided("refuse", dict(values))
    runs = spec.change.get(item, item)
    if item not in spec.change and spec.allow != "all" and item not in spec.allow:
        return None
    world.approve(world.bits((runs,)))
    if runs == item:
        return Decided("allow", dict(values))
    return Decided("change", {**values, str(tool.item): runs})


def asks_in_its_place(trace: Trace | None, tool: Tool | None, values: Mapping[str, Any] | None) -> None:
    """A changed call is one that the person asks for in the model's place."""
    action = action_of(tool, values)
    if trace is not None and action is not None:
        trace.called[action] = trace.called.get(action, 0) + 1
