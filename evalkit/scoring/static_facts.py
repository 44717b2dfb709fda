"""What can be said of a scenario by its text alone, before anything is played."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Tool, occurs_whole
from evalkit.scenarios.moves import CallMove, FinishMove, RawMove, SayMove
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.strategies.wording import OWN_WORDS
from evalkit.worlds import world_class

_OWN: dict[str, tuple[str, ...]] = {
    FINISH_TOOL: ("items_completed", "items_skipped", "reason_skipped"),
    CHECKLIST_TOOL: ("done",),
}


def contradictions(scenario: Scenario) -> Iterator[str]:
    """Declarations that overlap and cannot both hold."""
    world = scenario.world
    items = set(world.items)
    for item in world.items:
        if any(occurs_whole(item, words) for words in OWN_WORDS):
            yield f"world.items: {item!r} occurs in the words of a preset; nudges would name it by chance"
    for item in world.forbidden:
        if item in items and item not in world.skippable:
            yield (
                f"world.forbidden: {item!r} is an item that may neither be done nor skipped; "
                "name it in world.skippable, or take it from items or forbidden"
            )
    for move in walk(scenario.moves):
        told = move.finish if isinstance(move, SayMove | FinishMove) else None
        completed = told.completed if told is not None else None
        both = (
            set(completed) & set(told.skipped) if told is not None and isinstance(completed, tuple) else set()
        )
        for item in sorted(both):
            yield f"finish: {item!r} is reported completed and skipped at once"
    for outcome in scenario.accept or ():
        if outcome.endswith("/spoiled"):
            yield f"accept: {outcome}: a spoiled run is never correct"


def remarks(scenario: Scenario) -> Iterator[str]:
    """What need not be a mistake, and often is one."""
    tools = {tool.name: tool for tool in world_class(scenario.world.kind).tools}
    if scenario.task.items == "listed" and not _lists(scenario, tools):
        yield "the model never lists the items, so a harness knows none; list them or use items: given"
    for tool, arguments in dict.fromkeys((name, tuple(sorted(values))) for name, values in _calls(scenario)):
        allowed = _OWN.get(tool) or (tools[tool].arguments if tool in tools else None)
        if allowed is None:
            yield f"call: no tool of the world is named {tool!r}; known: {', '.join(tools)}"
            continue
        unknown = [name for name in arguments if name not in allowed]
        if unknown:
            takes = ", ".join(allowed) or "none"
            yield f"call: {tool} has no argument {', '.join(map(repr, unknown))}; it takes: {takes}"


def _calls(scenario: Scenario) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls that are written out, with their arguments."""
    for move in walk(scenario.moves):
        if isinstance(move, CallMove):
            yield move.call, move.with_
        elif isinstance(move, RawMove):
            for block in move.raw.content:
                if "call" in block:
                    yield block["call"], block.get("with", {})


def _lists(scenario: Scenario, tools: Mapping[str, Tool]) -> bool:
    return any(tool in tools and tools[tool].enumerates for tool, _ in _calls(scenario))
