"""What a move names must exist, and a move may not contradict itself."""

from __future__ import annotations

from typing import Any

from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL
from evalkit.scenarios.moves import (
    ApproveMove,
    CallMove,
    CompactMove,
    CrashMove,
    FinishMove,
    FinishSpec,
    Move,
    RawMove,
    Reply,
    SayMove,
    TruncateMove,
    UserMove,
    WaitMove,
)
from evalkit.scenarios.yaml_source import Path, Source, field_name
from evalkit.worlds import WorldSpec, world_class

MAX_LABEL = 100


def kind_of(value: Any) -> str:
    names = {dict: "a mapping", list: "a list", str: "text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")


def check_known(source: Source, path: Path, item: str, known: tuple[str, ...]) -> None:
    if item not in known:
        raise source.error(path, f"unknown item {item!r}; known: {', '.join(known[:12])}")


def check_move(source: Source, path: Path, move: Move, world: WorldSpec) -> None:
    """Every item and tool that a move names must exist."""
    known = tuple(dict.fromkeys((*world.items, *world.forbidden)))
    for field in ("work", "undo", "tick"):
        value = getattr(move, field, None)
        if isinstance(value, tuple):
            for place, item in enumerate(value):
                check_known(source, (*path, field, place), item, known)
    _check_event(source, path, move, world, known)
    reply = getattr(move, "reply", None)
    if isinstance(reply, Reply) and reply.lands != 2 and reply.effect != "late":
        raise source.error((*path, "reply", "lands"), "only a late effect lands; add effect: late")
    if isinstance(move, WaitMove):
        check_known(source, (*path, "wait", "item"), move.wait.item, known)
    if isinstance(move, TruncateMove) and not isinstance(move.truncate, str):
        check_known(source, (*path, "truncate", "work"), move.truncate.work, known)
    if isinstance(move, SayMove | FinishMove) and isinstance(move.finish, FinishSpec):
        completed = move.finish.completed
        for field, names in (
            ("completed", completed if isinstance(completed, tuple) else ()),
            ("skipped", move.finish.skipped),
        ):
            for place, item in enumerate(names):
                check_known(source, (*path, "finish", field, place), item, known)
    if isinstance(move, CallMove):
        tools = [tool.name for tool in world_class(world.kind).tools]
        if move.call not in (*tools, FINISH_TOOL, CHECKLIST_TOOL):
            allowed = ", ".join((*tools, FINISH_TOOL, CHECKLIST_TOOL))
            raise source.error((*path, "call"), f"unknown tool {move.call!r}; known: {allowed}")
    if isinstance(move, RawMove):
        _check_raw(source, (*path, "raw", "content"), move, known)
    faults = getattr(move, "fault", None)
    if faults is not None:
        kinds = [name for name in ("status", "cut", "body", "stall_s") if getattr(faults, name) is not None]
        if len(kinds) != 1:
            raise source.error((*path, "fault"), "expected exactly one of status, cut, body, stall_s")
        if faults.window is not None and faults.status not in (400, 413):
            raise source.error((*path, "fault", "window"), "only a status of 400 or 413 says it is full")


def _check_event(source: Source, path: Path, move: Move, world: WorldSpec, known: tuple[str, ...]) -> None:
    """What an event names must exist, and may not contradict itself."""
    if isinstance(move, UserMove):
        for place, item in enumerate(move.user.asks):
            check_known(source, (*path, "user", "asks", place), item, world.items)
    if isinstance(move, CompactMove):
        for place, item in enumerate(move.spec.forgets):
            check_known(source, (*path, "compact", "forgets", place), item, known)
        if move.spec.forgets and move.spec.summary != "faithful":
            raise source.error((*path, "compact", "forgets"), "only a faithful summary leaves ids out")
    if isinstance(move, CrashMove) and move.spec.before and move.spec.at != "tool":
        raise source.error((*path, "crash", "before"), f"goes with at: tool, found {move.spec.at!r}")
    if not isinstance(move, ApproveMove):
        return
    if isinstance(move.approve, tuple):
        for place, item in enumerate(move.approve):
            check_known(source, (*path, "approve", place), item, known)
        return
    spec, here = move.spec, (*path, "approve")
    for field in ("allow", "refuse", "order"):
        named = getattr(spec, field)
        for place, item in enumerate(named if isinstance(named, tuple) else ()):
            check_known(source, (*here, field, place), item, known)
    for old, new in spec.change.items():
        check_known(source, (*here, "change", old), old, known)
        check_known(source, (*here, "change", old), new, known)
    refused = set(spec.refuse)
    for field, named in (
        ("allow", spec.allow if isinstance(spec.allow, tuple) else ()),
        ("change", spec.change),
    ):
        both = [item for item in named if item in refused]
        if both:
            raise source.error((*here, field), f"{both[0]!r} is refused too; a call has one decision")


_RAW_BLOCKS = {
    "text": {"text", "phase"},
    "thinking": {"thinking"},
    "call": {"call", "with"},
    "work": {"work"},
    "server_call": {"server_call", "result"},
}


def _check_raw(source: Source, path: Path, move: RawMove, known: tuple[str, ...]) -> None:
    raw = move.raw
    if isinstance(raw.stop, str) and len(raw.stop) > MAX_LABEL:
        raise source.error((*path[:-1], "stop"), f"a label has at most {MAX_LABEL} characters")
    category = raw.extra.get("category")
    if category is not None and not isinstance(category, str):
        raise source.error((*path[:-1], "extra", "category"), f"expected text, found {kind_of(category)}")
    for place, block in enumerate(move.raw.content):
        here = (*path, place)
        kind = next((kind for kind in _RAW_BLOCKS if kind in block), None)
        if kind is None:
            raise source.error(
                here, f"unknown block {field_name(tuple(block))!r}; allowed: {', '.join(_RAW_BLOCKS)}"
            )
        for key in block:
            if key not in _RAW_BLOCKS[kind]:
                raise source.error(
                    (*here, key), f"unknown field; allowed: {', '.join(sorted(_RAW_BLOCKS[kind]))}"
                )
        if not isinstance(block[kind], str):
            raise source.error((*here, kind), f"expected text, found {kind_of(block[kind])}")
        if kind == "work":
            check_known(source, (*here, kind), block["work"], known)
        if kind == "call" and not isinstance(block.get("with", {}), dict):
            raise source.error((*here, "with"), f"expected a mapping, found {kind_of(block['with'])}")
