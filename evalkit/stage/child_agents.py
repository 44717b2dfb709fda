"""Child agents: a delegate call within which a script of its own plays."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from evalkit.core.channels import finish_call, is_own
from evalkit.core.prices import over_budget
from evalkit.core.requests import Stimulus
from evalkit.core.tasks import Offered, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, count_tokens
from evalkit.scenarios.emissions import DELEGATE_TOOL, Arm, Child, Emission, freshen
from evalkit.scenarios.player import Player
from evalkit.scenarios.program import PlayerState
from evalkit.stage.tools import NO_ENTRIES, Tools
from evalkit.worlds import World

#: Deliveries after which a child agent that never ends is over.
HELPER_CAP = 100
#: What is answered for a child agent that a limit stops, and for one that said nothing.
STOPPED = "The child agent was stopped: the limit is reached."
NO_ANSWER = "The child agent ended without an answer."
#: What a child agent's next request is to its model: the same conversation, extended.
AGAIN = Stimulus("on", False, False, False, False, False, False, "")


class Helping(msgspec.Struct, frozen=True, gc=False):
    """A child agent at work within a call: where its script stands, and what its next request carries.

    ``open`` are the calls of its last turn that its harness has not run, ``arms`` and ``children`` what the
    script has them do; none where the child plays within the call, for there they are run with the turn.
    """

    call: str
    child: Child
    state: PlayerState
    carried: int
    moved: Stimulus | None = None
    number: int = 0
    said: str = ""
    refused: bool = False
    open: tuple[Call, ...] = ()
    arms: tuple[Arm, ...] = ()
    children: tuple[Child, ...] = ()


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
        #: Those at work; more than one only where a harness asks for their turns itself.
        self._helping: tuple[Helping, ...] = ()
        #: What helpers have said, by the arguments of the call.
        self._helped: Mapping[str, str] = NO_ENTRIES

    def _help(self, call: Call) -> tuple[str, bool] | None:
        """Let a child agent work within a delegate call; None where the script has none for it.

        A limit stops it within the call.
        """
        helping = next((helping for helping in self._helping if helping.call == call.id), None)
        if helping is None:
            child = self._child_for(call)
            if child is None:
                said = self._helped.get(call.arguments)
                return None if said is None else (said, False)
            helping = self._beginning(call, child)
        others = self._helping = tuple(other for other in self._helping if other is not helping)
        helping, said = self._work(helping)
        if said is None:
            self._helping = (*others, helping)
            return STOPPED, True
        self._helped = {**self._helped, call.arguments: said}
        return said, False

    def _work(self, helping: Helping) -> tuple[Helping, str | None]:
        """Let a child agent work to its end, and what it says there; None where a limit stops it."""
        while not over_budget(self.limits, self.tokens, self.input_tokens, self.output_tokens):
            helping, said = self._help_on(helping)
            if said is not None:
                return helping, said
        return helping, None

    def _child_for(self, call: Call) -> Child | None:
        """The child agent that the script has for a delegate call, taken off those that wait."""
        child = next((child for child in self._children if child.arguments == call.arguments), None)
        self._children = tuple(other for other in self._children if other is not child)
        return child

    def _beginning(self, call: Call, child: Child) -> Helping:
        return Helping(call.id, child, self.player.child(child, self.state), count_tokens(call.arguments))

    def _emit(self, helping: Helping, moved: Stimulus | None) -> tuple[PlayerState, Emission]:
        """What the script of a child agent delivers next."""
        state, emitted = self.player.advance(
            helping.state, moved, self.task.seed, self._shown, helping.child.program
        )
        self.state = msgspec.structs.replace(
            self.state, attempted=self.state.attempted | state.attempted, visits=state.visits
        )
        return state, freshen(emitted, f"{self._serial + 1}") if emitted.fresh else emitted

    def _over(self, helping: Helping, state: PlayerState) -> bool:
        """Whether a child agent has nothing more to say at this delivery."""
        return self.player.is_played(state, helping.child.program) or helping.number >= HELPER_CAP

    def _spend(self, carried: int, emitted: Emission) -> None:
        """A turn of a child agent was delivered: its tokens are the run's."""
        wrote = emitted.turn.tokens
        self.input_tokens += carried
        self.output_tokens += wrote
        self.helpers = self.helpers.more(carried, wrote)
        if self.trace is not None:
            self.trace.helped(carried, wrote)
            self.trace.calls_for(self._anew(emitted.actions))

    def _help_on(self, helping: Helping) -> tuple[Helping, str | None]:
        """One delivery of a child agent, and what it says in the end, where it ends."""
        if helping.open:
            helping = self._run_open(helping)
        state, emitted = self._emit(helping, helping.moved)
        turn = emitted.turn
        if self._over(helping, state):
            return helping, helping.said or NO_ANSWER
        number = helping.number + 1
        if turn.is_no_turn:
            return msgspec.structs.replace(helping, state=state, number=number, moved=AGAIN), None
        carried = helping.carried
        self._spend(carried, emitted)
        moved = good_request(turn)
        if turn.kind == "cut_off":
            return msgspec.structs.replace(helping, state=state, number=number, moved=moved), None
        if turn.kind == "refusal":
            if helping.refused:
                return helping, turn.text or "The child agent refused."
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, refused=True),
                None,
            )
        carried += turn.tokens
        if turn.kind == "pause":
            return (
                msgspec.structs.replace(helping, state=state, number=number, moved=moved, carried=carried),
                None,
            )
        helping = msgspec.structs.replace(
            helping, open=turn.runnable, arms=emitted.arms, children=emitted.children, carried=carried
        )
        helping = self._run_open(helping)
        said = turn.text or helping.said
        if ends(turn, self.offered):
            return helping, last_words(turn, self.offered) or helping.said or NO_ANSWER
        return (
            msgspec.structs.replace(
                helping, state=state, number=number, moved=moved, said=said, refused=False
            ),
            None,
        )

    def _run_open(self, helping: Helping) -> Helping:
        """The calls of a child agent's last turn are run, the harness's own tools aside."""
        carried = helping.carried
        for call in helping.open:
            if not is_own(call.tool, self.offered):
                carried += count_tokens(self._call_of(helping, call)[0])
        return msgspec.structs.replace(helping, open=(), carried=carried)

    def _call_of(self, helping: Helping, call: Call) -> tuple[str, bool]:
        """What a call of a child agent's last turn does and is answered."""
        arms, waiting = self._arms, self._children
        self._arms, self._children = helping.arms, helping.children
        answer = self._helper_call(call)
        self._arms, self._children = arms, waiting
        return answer

    def _helper_call(self, call: Call) -> tuple[str, bool]:
        """A call of a child agent's; it may have a child of its own."""
        if call.tool == DELEGATE_TOOL:
            child = self._child_for(call)
            if child is not None:
                _, said = self._work(self._beginning(call, child))
                return (STOPPED, True) if said is None else (said, False)
        known = self._recorded(call.tool, call.arguments) if self.careful else None
        return self._scripted(call, call.arguments) if known is None else (known.text, known.error)


def good_request(turn: Turn) -> Stimulus:
    """What the next request is to a child agent's model where all goes well."""
    if turn.kind == "cut_off":
        return msgspec.structs.replace(AGAIN, higher_limit=True, changed=True, shortened=True)
    if turn.kind == "refusal":
        return msgspec.structs.replace(AGAIN, other_model=True, changed=True)
    return msgspec.structs.replace(AGAIN, resent=True) if turn.kind == "pause" else AGAIN


def ends(turn: Turn, offered: Offered) -> bool:
    """Whether a child agent ends with this turn, of content: nothing is called in it, or the finish tool."""
    return not turn.calls or finish_call(turn, offered) is not None


def last_words(turn: Turn, offered: Offered) -> str:
    """What a child agent says with the turn that it ends with; empty where that is nothing."""
    if not turn.text and turn.told is not None and finish_call(turn, offered) is not None:
        return "Completed: " + (", ".join(turn.told.completed) or "none") + "."
    return turn.text
