"""What the calls of a run do: to the world, by the script's own answers, by what a person decides."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from evalkit.containment.folders import NoRoom
from evalkit.core.requests import Result
from evalkit.core.tasks import Offered, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, parse_arguments
from evalkit.scenarios.emissions import Arm
from evalkit.scenarios.moves import ApproveSpec, Reply
from evalkit.scenarios.player import Player
from evalkit.stage.person import asks_in_its_place, decide, gated_item
from evalkit.worlds import Outcome, World, action_of

#: A mapping that nobody has put anything into, for many to share.
NO_ENTRIES: Mapping[Any, Any] = MappingProxyType({})


class ToolFailed(Exception):
    """A tool of a user's world raised."""


def perform(world: World, tool: str, values: Mapping[str, Any] | None, trace: Trace | None) -> Outcome:
    """Run a tool and see its effect; ToolFailed where one of a user's world raises."""
    if values is None:
        return Outcome(f"{tool}: the arguments are not valid JSON", error=True)
    try:
        outcome = world.perform(tool, values)
    except NoRoom:
        # evalkit's own failure, and not the tool's.
        raise
    except Exception as error:
        raise ToolFailed(f"tool {tool} raised {type(error).__name__}: {error}") from error
    if outcome.action is not None and trace is not None:
        trace.had_effect(outcome.action, world.changes)
    return outcome


class Spent(msgspec.Struct, frozen=True, gc=False):
    """What helpers have spent within calls, in turns and tokens."""

    turns: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def more(self, read: int, wrote: int) -> Spent:
        """The same after one more turn."""
        return Spent(self.turns + 1, self.input_tokens + read, self.output_tokens + wrote)


_NOTHING_SPENT = Spent()


class Tools:
    """What calls do, and what the run has used for it."""

    __slots__ = (
        "_arms",
        "_decisions",
        "_forgotten",
        "_late",
        "asks_person",
        "careful",
        "helpers",
        "input_tokens",
        "output_tokens",
        "player",
        "ran",
        "task",
        "trace",
        "turns",
        "world",
    )

    def __init__(self, player: Player, world: World, task: Task, trace: Trace | None) -> None:
        self.player = player
        self.world = world
        self.task = task
        self.trace = trace
        self.turns = 0
        self.input_tokens = 0
        self.output_tokens = 0
        #: What helpers within a call have spent, a part of the tokens above.
        self.helpers = _NOTHING_SPENT
        self.ran: dict[str, Result] = {}
        #: Whether a call whose effect stands, or is still to come, is answered from the record of it.
        self.careful = False
        #: Whether the harness lays gated calls before a person itself; else each decision just comes.
        self.asks_person = False
        self._arms: tuple[Arm, ...] = ()
        #: What a person decides about the gated calls of the last turn.
        self._decisions: ApproveSpec | None = None
        self._late: tuple[tuple[int, str, str], ...] = ()
        #: Calls that the model may make again without asking for more: a history that held them is gone.
        self._forgotten: dict[str, int] = {}

    @property
    def tokens(self) -> int:
        """Tokens so far, in and out."""
        return self.input_tokens + self.output_tokens

    @property
    def offered(self) -> Offered:
        """The channels that the harness offers the model."""
        return self.player.script.offered

    @property
    def _serial(self) -> int:
        """The number of the last turn, those of helpers counted: what makes keys and nonces fresh."""
        return self.turns + self.helpers.turns

    def _scripted(self, call: Call, arguments: str) -> tuple[str, bool]:
        """The answer to a call where the script has one of its own."""
        if self._decisions is not None and not self.asks_person:
            decided = self._decided(self._decisions, call, arguments)
            if isinstance(decided, tuple):
                return decided
            arguments = decided
        arm = None
        for candidate in self._arms:
            if candidate.tool == call.tool and candidate.arguments == call.arguments:
                arm = candidate
        if arm is not None and arm.settles is not None:
            for tool, values in self.world.settle_calls(arm.settles, f"wait-{self._serial}"):
                self.world.call(tool, values)
        return self._replied(call.tool, arguments, arm.reply if arm else None)

    def _decided(self, spec: ApproveSpec, call: Call, arguments: str) -> str | tuple[str, bool]:
        """What a person's decision makes of a gated call: its arguments, or the answer that it is refused."""
        tool, values = self.task.tools.get(call.tool), parse_arguments(arguments)
        item = gated_item(self.world, tool, values)
        if tool is None or values is None or item is None or spec.when == "never":
            # Who asks nobody waits as long as it takes: a decision that comes late is there.
            return arguments
        decided = decide(spec, self.world, tool, item, values)
        if decided is None or decided.kind == "allow":
            return arguments
        if decided.kind == "refuse":
            return f"{item}: refused{': ' + spec.message if spec.message else ''}", True
        asks_in_its_place(self.trace, tool, decided.arguments)
        return json.dumps(decided.arguments)

    def _recorded(self, tool: str, arguments: str) -> Outcome | None:
        """The answer to a call whose effect was had, or was accepted and will be had."""
        coming = [
            action
            for _, late, text in self._late
            if (action := action_of(self.task.tools.get(late), parse_arguments(text))) is not None
        ]
        values = parse_arguments(arguments)
        return None if values is None else self.world.recorded(tool, values, coming)

    def _perform(self, tool: str, arguments: str) -> tuple[str, bool]:
        """What the world does and answers."""
        outcome = perform(self.world, tool, parse_arguments(arguments), self.trace)
        return outcome.text, outcome.error

    def _replied(self, tool: str, arguments: str, reply: Reply | None) -> tuple[str, bool]:
        """What the script has the tool do and answer."""
        values = parse_arguments(arguments)
        if reply is None or values is None:
            return self._perform(tool, arguments)
        effect = reply.effective
        if effect == "applied":
            text, error = self._perform(tool, arguments)
        elif reply.text is None:
            probe = self.world.fork()
            outcome = probe.call(tool, values)
            probe.close()
            text, error = outcome.text, outcome.error
        if effect == "late" and reply.lands != "never":
            self._late = (*self._late, (reply.lands, tool, arguments))
        if reply.text is not None:
            return reply.text, reply.error
        return (f"{tool}: failed", True) if reply.error else (text, error)

    def _land(self) -> None:
        waiting = []
        for requests, tool, arguments in self._late:
            if requests > 1:
                waiting.append((requests - 1, tool, arguments))
            else:
                self._perform(tool, arguments)
        self._late = tuple(waiting)

    @property
    def coming(self) -> tuple[tuple[int, str, str], ...]:
        """The calls that were accepted and have their effect later: with which request, tool, arguments."""
        return self._late

    def begin_with(self, coming: tuple[tuple[int, str, str], ...]) -> None:
        """Begin where these calls were accepted before."""
        self._late = coming

    def settle(self) -> None:
        """Let accepted effects land: the run is over."""
        for _, tool, arguments in self._late:
            self._perform(tool, arguments)
        self._late = ()

    def _anew(self, actions: tuple[str, ...]) -> tuple[str, ...]:
        """The actions asked for, but for those that the model asks for again, a history being gone."""
        forgotten, found = self._forgotten, []
        for action in actions:
            if forgotten.get(action):
                forgotten[action] -= 1
            else:
                found.append(action)
        return tuple(found)

    def _forget(self, actions: tuple[str, ...]) -> None:
        for action in actions:
            self._forgotten[action] = self._forgotten.get(action, 0) + 1
