"""The to-do list that a recording's own tool keeps: its items, those ticked, the one being worked on.

Known shapes: a tool that writes the whole list (``todos``, ``plan``, ``task_list``, …, each entry with a text
and a status), as Claude Code's TodoWrite, Codex's update_plan, LangChain's write_todos and OpenHands's
task_tracker have it; and Claude Code's TaskCreate and TaskUpdate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from evalkit.core.requests import Result
from evalkit.core.turns import Call, parse_arguments
from evalkit.transcripts.recording import Recording, bare_name
from evalkit.wire.answers import listed, mapped

_LISTS = ("todos", "plan", "task_list", "tasks", "todo_list", "items", "checklist", "steps")
_NAMES = frozenset(_LISTS)
_TEXTS = ("content", "step", "title", "description", "text", "task", "name", "subject")
_TICKED = frozenset(("completed", "complete", "done", "finished"))
_WORKING = frozenset(("in_progress", "in-progress", "doing", "active", "started"))
#: An item that is dropped leaves the list: it need no longer be done.
_DROPPED = frozenset(("deleted", "cancelled", "canceled", "skipped", "removed"))


class Write(msgspec.Struct, frozen=True):
    """The list as a call left it: the items on it, the ticked ones, and the one that is worked on."""

    items: tuple[str, ...]
    ticked: tuple[str, ...]
    working: str | None


class Checklist:
    """Follows a list over a recording. An item that is opened again is a new item: its old tick is void."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._status: dict[str, str] = {}
        self._order: list[str] = []
        self._created = 0

    def read(self, call: Call, result: Result | None) -> Write | None:
        """What a call wrote; None where it is no call of a to-do tool."""
        arguments = parse_arguments(call.arguments)
        if arguments is None or (result is not None and result.error):
            return None
        name = bare_name(call.tool)
        if name == "taskcreate":
            self._created += 1
            key = str(self._created)
            self._set(key, str(arguments.get("subject") or arguments.get("description")), "pending")
        elif name == "taskupdate" and "taskId" in arguments:
            key = str(arguments["taskId"])
            text = str(arguments.get("subject") or self._texts.get(key, key))
            self._set(key, text, str(arguments.get("status") or self._status.get(key, "pending")))
        else:
            entries = _entries(arguments)
            if entries is None:
                return None
            self._order = []
            for key, text, status in entries:
                self._set(key, text, status)
        return self._now()

    @property
    def texts(self) -> dict[str, str]:
        """The text of every item there was, by its id."""
        return {name: self._texts[key] for key, name in self._names.items()}

    def _set(self, key: str, text: str, status: str) -> None:
        status = status.strip().lower()
        reopened = self._status.get(key) in _TICKED and status not in _TICKED | _DROPPED
        if key not in self._names or reopened:
            self._names[key] = f"todo-{len(self._names) + 1}{'-again' * reopened}"
        self._texts[key] = text
        self._status[key] = status
        if key not in self._order:
            self._order.append(key)

    def _now(self) -> Write:
        kept = [key for key in self._order if self._status[key] not in _DROPPED]
        working = [self._names[key] for key in kept if self._status[key] in _WORKING]
        return Write(
            tuple(self._names[key] for key in kept),
            tuple(self._names[key] for key in kept if self._status[key] in _TICKED),
            working[0] if len(working) == 1 else None,
        )


def _entries(arguments: Mapping[str, Any]) -> list[tuple[str, str, str]] | None:
    """Key, text and status of each entry, where the arguments hold a list of such; else None."""
    if _NAMES.isdisjoint(arguments):
        return None
    for name in _LISTS:
        raw = listed(arguments.get(name))
        if not raw or not all(isinstance(entry, dict) for entry in raw):
            continue
        if not all("status" in entry for entry in raw):
            continue
        entries = []
        for entry in raw:
            text = next((str(entry[key]) for key in _TEXTS if entry.get(key)), "")
            entries.append((str(mapped(entry).get("id") or text), text, str(entry["status"])))
        return entries
    return None


def has_checklist(recording: Recording) -> bool:
    """Whether any call of a recording is one of a to-do tool."""
    checklist = Checklist()
    return any(checklist.read(call, None) is not None for step in recording.steps for call in step.turn.calls)
