"""What a task is worked on with: its model, tools and checks. They are outside of the worker."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from evalkit.core.decisions import Ending, Verdict
from evalkit.core.events import Event
from evalkit.core.requests import Request, Result
from evalkit.core.tasks import Task
from evalkit.core.turns import Call, Turn
from evalkit.worker.task_records import Care, Exchange, Order, TaskError


class Unavailable(Exception):
    """A model or tool cannot be reached now; the worker gives the task back and tries again later."""


class Answer(msgspec.Struct, frozen=True):
    """A turn and its cost in tokens. One of kind ``failed`` or ``in_progress`` is none and costs nothing."""

    turn: Turn
    input_tokens: int = 0
    output_tokens: int = 0


class Model(Protocol):
    """Where a task's turns come from."""

    def ask(self, transcript: Sequence[Exchange], request: Request) -> Answer:
        """The answer to a request, after the turns that are kept.

        A worker that died before it kept an answer asks again with the same transcript and an equal request.
        """


class Workplace(ABC):
    """Where one task is worked on. A kit makes one from a task's order."""

    #: What the loop is told: tools, items, limits.
    task: Task
    model: Model

    @abstractmethod
    def run(self, call: Call, key: str | None) -> Result:
        """Run a call. ``key`` is the worker's idempotency key, for tools whose care is ``keyed``.

        What a tool refuses is a result with ``error``. Raise :class:`Unavailable` where it cannot be reached.
        """

    def care(self, call: Call) -> Care:
        """How a repetition of this call is kept from doing harm; without knowledge, ``uncertain``."""
        tool = self.task.tools.get(call.tool)
        return "free" if tool is not None and tool.read_only else "uncertain"

    def look_up(self, call: Call) -> Result | None:
        """The result of a call of care ``looked_up`` if it happened, None if it did not."""
        raise NotImplementedError(f"{type(self).__name__} cannot look up {call.tool}")

    def check(self, name: str) -> Verdict:
        """Run an acceptance check of the task by its name."""
        raise TaskError(f"{type(self).__name__} knows no check {name!r}")

    def artifact(self) -> bool:
        """Whether the work left anything behind."""
        return False

    def replays(self, item: str) -> bool:
        """Whether an item, read again, is done."""
        return False

    def spent_in_calls(self) -> tuple[int, int]:
        """Input and output tokens that helpers within calls have spent since the last answer.

        They are part of the next one.
        """
        return 0, 0

    @property
    def eventful(self) -> bool:
        """Whether anything may happen from outside while the task is worked on."""
        return False

    def happens(self, request: Request) -> tuple[Event, ...]:
        """What happens before a request is made."""
        return ()

    def after(self, ending: Ending, request: Request) -> tuple[Event, ...]:
        """What happens after an ending, where a user then writes."""
        return ()

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Give back what it holds."""


#: Makes the workplace of a task. ``home`` is a folder for what it keeps.
Kit: TypeAlias = Callable[[Order, Path], Workplace]

SCENARIO = "scenario"


def find_kit(name: str) -> Kit:
    """A kit by name: ``scenario``, an entry point of ``evalkit.kits``, or ``module:name``. TaskError else."""
    if name == SCENARIO:
        return _loaded(name, "evalkit.worker.scripted_workplace", "scenario_kit")
    from importlib.metadata import entry_points

    points = {point.name: point for point in entry_points(group="evalkit.kits")}
    if name in points:
        module, _, attribute = points[name].value.partition(":")
        return _loaded(name, module, attribute)
    module, colon, attribute = name.partition(":")
    if not colon:
        known = ", ".join((SCENARIO, *points))
        raise TaskError(f"unknown kit {name!r}; known: {known}, or module:name")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    return _loaded(name, module, attribute)


def _loaded(name: str, module: str, attribute: str) -> Kit:
    try:
        found: Any = getattr(import_module(module), attribute)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise TaskError(f"kit {name!r} cannot be loaded: {said}") from error
    if not callable(found):
        raise TaskError(f"kit {name!r} is not callable: found {type(found).__name__}")
    return found  # type: ignore[no-any-return]
