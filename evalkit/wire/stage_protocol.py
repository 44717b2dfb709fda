"""What the server asks of the scripted side of an episode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from evalkit.core.keys import KEY_ARGUMENT, takes_key
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.wire.answers import encode_json


class Script(Protocol):
    """The scripted side of an episode, as :class:`evalkit.stage.stage.Stage` is."""

    task: Task
    previous: Delivered
    ran: dict[str, Result]
    trace: Trace | None
    input_tokens: int
    remembers: bool
    summaries: tuple[str, ...]
    crash_wait: int
    crash_delivered: bool

    @property
    def reports(self) -> int:
        """The input tokens that an answer reports at least."""

    @property
    def looks(self) -> bool:
        """Whether what a request shows as done matters."""

    def look(self, calls: Iterable[tuple[Call, Result]], text: str, *, held: bool) -> None:
        """What the next request holds as a whole: calls with their results, and words."""

    def sum_up(self, calls: Iterable[tuple[Call, Result]], text: str, words: tuple[str, ...]) -> str:
        """The summary that a program asks for with such a request; ``words`` are the user's in it."""

    @property
    def stall_s(self) -> float:
        """How long the last answer, a fault, stays silent."""

    @property
    def begun(self) -> Turn | None:
        """What the last answer, a fault, broke off."""

    @property
    def crash_answered(self) -> bool:
        """Whether the harness is to be killed now that the calls of the last turn are answered."""

    @property
    def played_out(self) -> bool:
        """Whether the last answer was none of the script's, which has ended."""

    @property
    def owes_words(self) -> bool:
        """Whether the answer is to be held until the user's words were fetched."""

    def fetch(self) -> str | None:
        """The words that the user says now to a harness at work; None where there are none."""

    def killed(self) -> None:
        """The harness was killed at the moment that was due."""

    def ask(self, request: Request) -> Turn:
        """The answer to a request."""

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call on the world; ``key`` takes the place of the model's."""


class Parent(Script, Protocol):
    """The scripted side of a whole episode, whose model may hand work to child agents."""

    @property
    def delegates(self) -> bool:
        """Whether it does, and so is to be offered the tool."""

    def child(self, call: Call, within: Any = None) -> Child | None:
        """The script of the child agent of a delegate call, which may be that of a child (``within``)."""


class Child(Script, Protocol):
    """The scripted side of a child agent's conversation."""

    name: str
    call: Call


def call_for(script: Script, tool: str, arguments: dict[str, Any]) -> tuple[Call, str | None]:
    """The call that a harness makes when it runs a tool: one of the last turn, if one fits.

    One that has another key than the model's is the model's call under a key of the harness's own.
    """
    fitting, key = _fitting(script, tool, arguments)
    if not fitting:
        return Call("", tool, encode_json(arguments).decode()), None
    return _waiting(script, fitting), key


def makes(script: Script, tool: str, arguments: dict[str, Any]) -> bool:
    """Whether a call of the last turn, that waits for its answer, is what a harness runs."""
    return any(call.id not in script.ran for call in _fitting(script, tool, arguments)[0])


def _fitting(script: Script, tool: str, arguments: dict[str, Any]) -> tuple[list[Call], str | None]:
    """The calls of the last turn that a harness may mean, and its own key where it put one in."""
    turn = script.previous.turn
    calls = [call for call in (turn.calls if turn is not None else ()) if call.tool == tool]
    exact = [call for call in calls if parse_arguments(call.arguments) == arguments]
    known = script.task.tools.get(tool)
    key = arguments.get(KEY_ARGUMENT)
    if not exact and known is not None and takes_key(known) and isinstance(key, str):
        return [c for c in calls if _but_key(parse_arguments(c.arguments)) == _but_key(arguments)], key
    return exact, None


def _waiting(script: Script, fitting: list[Call]) -> Call:
    """The first of these calls that has no answer yet, else the first."""
    return next((call for call in fitting if call.id not in script.ran), fitting[0])


def _but_key(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (values or {}).items() if name != KEY_ARGUMENT}
