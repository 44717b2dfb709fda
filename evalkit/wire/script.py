"""What the server asks of the scripted side of an episode."""

from __future__ import annotations

from typing import Any, Protocol

from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Task
from evalkit.core.traces import Trace
from evalkit.core.turns import Call, Turn, parse_arguments
from evalkit.wire.answers import encode_json


class Script(Protocol):
    """The scripted side of an episode, as :class:`evalkit.models.scripted.Stage` is."""

    task: Task
    previous: Delivered
    ran: dict[str, Result]
    trace: Trace | None
    input_tokens: int
    stall_s: float

    def ask(self, request: Request) -> Turn:
        """The answer to a request."""

    def run(self, call: Call) -> Result:
        """Run a call on the world."""


def call_for(script: Script, tool: str, arguments: dict[str, Any]) -> Call:
    """The call that a harness makes when it runs a tool: one of the last turn, if one fits."""
    turn = script.previous.turn
    calls = turn.calls if turn is not None else ()
    fitting = [call for call in calls if call.tool == tool and parse_arguments(call.arguments) == arguments]
    waiting = [call for call in fitting if call.id not in script.ran]
    if fitting:
        return (waiting or fitting)[0]
    return Call("", tool, encode_json(arguments).decode())
