"""Child agents: a delegate call within which a script of its own plays."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.channels import finish_call, is_own
from evalkit.core.prices import over_budget
from evalkit.core.requests import Stimulus
from evalkit.core.tasks import Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, count_tokens
from evalkit.scenarios.emissions import DELEGATE_TOOL, Child, freshen
from evalkit.scenarios.player import Player
from evalkit.scenarios.program import PlayerState
from evalkit.stage.tools import NO_ENTRIES, Tools
from evalkit.worlds import World

#: Deliveries after which a child agent that never ends is over.
HELPER_CAP = 100
#: What a child agent's next request is to its model: the same conversation, extended.
_AGAIN = Stimulus("on", False, False, False, False, False, False, "")


class Helping(msgspec.Struct, frozen=True, gc=False):
    """A child agent at work within a call: where its script stands, and what its next request carries."""

    call: str
    child: Child
    state: PlayerState
    carried: int
    moved: Stimulus | None = None
    number: int = 0
    said: str = ""
    refused: bool = False


class ChildAgents(Tools):
    """Calls within which a child agent works."""

    __slots__ = (
        "_children",
        "_helped",
        "_helping",
        "_shown",
        "limits",
        "state",
    )

    def __init__(self, player: Player, world: World, task: Task, trace: Trace | None) -> None:
        super().__init__(player, world, task, trace)
        self.state: PlayerState = player.start
        #: The limits that bind, the harness's own included; a helper stops at them within its call.
        self.limits = task.limits
        #: Items that the conversation shows as done, where the script looks.
        self._shown = 0
        self._children: tuple[Child, ...] = ()
        self._helping: Helping | None = None
        #: What helpers have said, by the arguments of the call.
        self._helped: Mapping[str, str] = NO_ENTRIES

    def _help(self, call: Call) -> tuple[str, bool] | None:
        """Let a child agent work within a delegate call; None where the script has none for it.

        A limit stops it within the call.
        """
        helping = self._helping
        if helping is None or helping.call != call.id:
            child = next((child for child in self._children if child.arguments == call.arguments), None)
            if child is None:
                said = self._helped.get(call.arguments)
                return None if said is None else (said, False)
            self._children = tuple(other for other in self._children if other is not child)
            helping = Helping(
                call.id, child, self.player.child(child, self.state), count_tokens(call.arguments)
            )
        self._helping = None
        while True:
            if over_budget(self.limits, self.tokens, self.input_tokens, self.output_tokens):
                self._helping = helping
                return "The child agent was stopped: the limit is reached.", True
            helping, said = self._help_on(helping)
            if said is not None:
                self._helped = {**self._helped, call.arguments: said}
                return said, False

    def _help_on(self, helping: Helping) -> tuple[Helping, str | None]:
        """One delivery of a child agent, and what it says in the end, where it ends."""
        player, program = self.player, helping.child.program
        state, emitted = player.advance(helping.state, helping.moved, self.task.seed, self._shown, program)
        turn = emitted.turn
        self.state = msgspec.structs.replace(
            self.state, attempted=self.state.attempted | state.attempted, visits=state.visits
        )
        number = helping.number + 1
        over = player.is_played(state, program) or number > HELPER_CAP
        if over:
            return helping, helping.said or "The child agent ended without an answer."
        if turn.is_no_turn:
            return msgspec.structs.replace(helping, state=state, number=number, moved=_AGAIN), None
        if emitted.fresh:
            emitted = freshen(emitted, f"{self._serial + 1}")
            turn = emitted.turn
        carried = helping.carried
        self.input_tokens += carried
        self.output_tokens += turn.tokens
        self.helpers = self.helpers.more(carried, turn.tokens)
        if self.trace is not None:
            self.trace.helped(carried, turn.tokens)
            self.trace.calls_for(self._anew(emitted.actions))
        if turn.kind == "cut_off":
            moved = msgspec.structs.replace(_AGAIN, higher_limit=True, changed=True, shortened=True)
            return msgspec.structs.replace(helping, state=state, number=number, moved=moved), None
        if turn.kind == "refusal":
            if helping.refused:
                return helping, turn.text or "The child agent refused."
            moved = msgspec.structs.replace(_AGAIN, other_model=True, changed=True)
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, refused=True),
                None,
            )
        carried += turn.tokens
        if turn.kind == "pause":
            moved = msgspec.structs.replace(_AGAIN, resent=True)
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, carried=carried),
                None,
            )
        arms, children = self._arms, self._children
        self._arms, self._children = emitted.arms, emitted.children
        for call in turn.runnable:
            if not is_own(call.tool, self.offered):
                text, _ = self._helper_call(call)
                carried += count_tokens(text)
        self._arms, self._children = arms, children
        finished = finish_call(turn, self.offered) is not None
        said = turn.text or helping.said
        if not turn.calls or finished:
            if finished and turn.told is not None and not turn.text:
                said = "Completed: " + (", ".join(turn.told.completed) or "none") + "."
            return helping, said or "The child agent ended without an answer."
        return (
            msgspec.structs.replace(
                helping, state=state, number=number, moved=_AGAIN, carried=carried, said=said, refused=False
            ),
            None,
        )

    def _helper_call(self, call: Call) -> tuple[str, bool]:
        """A call of a child agent's; it may have a child of its own."""
        if call.tool == DELEGATE_TOOL:
            child = next((child for child in self._children if child.arguments == call.arguments), None)
            if child is not None:
                start = self.player.child(child, self.state)
                inner = Helping(call.id, child, start, count_tokens(call.arguments))
                while True:
                    if over_budget(self.limits, self.tokens, self.input_tokens, self.output_tokens):
                        return "The child agent was stopped: the limit is reached.", True
                    inner, said = self._help_on(inner)
                    if said is not None:
                        return said, False
        known = self._recorded(call.tool, call.arguments) if self.careful else None
        return self._scripted(call, call.arguments) if known is None else (known.text, known.error)
