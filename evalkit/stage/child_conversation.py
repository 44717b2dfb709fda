"""A child agent whose harness asks for its turns itself, in a conversation beside the parent's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from evalkit.core.requests import Delivered, Request, Result, Stimulus, stimulus
from evalkit.core.tasks import Offered, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Turn, count_tokens
from evalkit.scenarios.emissions import Child, Emission
from evalkit.scenarios.player import Player
from evalkit.stage.child_agents import AGAIN, Helping, ends, good_request, last_words


class ParentStage(Protocol):
    """The stage of the whole episode, which plays the child agent's script."""

    task: Task
    trace: Trace | None
    player: Player

    @property
    def offered(self) -> Offered: ...
    def child_asks(self, child: ChildConversation, request: Request) -> Turn: ...
    def child_runs(self, child: ChildConversation, call: Call) -> Result: ...


class ChildConversation:
    """What the server asks of a child agent: turns, calls, and what a fault broke off.

    The stage keeps what it spent and did; here stands what its requests show. Nothing happens to it from
    outside: events are the whole harness's.
    """

    # A program that goes back in its conversation is found at any turn; the user and events are the parent's.
    remembers = True
    summaries: tuple[str, ...] = ()
    reports = 0
    looks = False
    owes_words = False
    crash_answered = crash_delivered = False
    crash_wait = 0

    def __init__(
        self, stage: ParentStage, call: Call, name: str, helping: Helping, within: ChildConversation | None
    ):
        self.call = call
        self.name = name
        self.helping = helping
        self.within = within
        self.task = stage.task
        self.trace = stage.trace
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self.input_tokens = 0
        #: What it said at its end; None while it is at work.
        self.answer: str | None = None
        self._stage = stage
        self._emitted: Emission | None = None
        self._history = helping.carried
        #: Where it stood after each of its turns, and what the turn asked for.
        self._answered: list[tuple[Helping, Delivered, tuple[str, ...]]] = [(helping, self.previous, ())]

    @property
    def stall_s(self) -> float:
        """How long the last answer, a fault, stays silent."""
        return self._emitted.stall_s if self._emitted is not None else 0.0

    @property
    def begun(self) -> Turn | None:
        """What the last answer, a fault, broke off."""
        return self._emitted.begun if self._emitted is not None else None

    @property
    def played_out(self) -> bool:
        """Whether the last answer was none of the script's, which has ended."""
        return self._stage.player.is_played(self.helping.state, self.helping.child.program)

    def ask(self, request: Request) -> Turn:
        """The child's answer to a request of its conversation."""
        return self._stage.child_asks(self, request)

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the child's on the world; keys of the harness's own are the parent's matter."""
        return self._stage.child_runs(self, call)

    def look(self, calls: Iterable[tuple[Call, Result]], text: str, *, held: bool) -> None:
        """A child's script looks at nothing."""

    def sum_up(self, calls: Iterable[tuple[Call, Result]], text: str, words: tuple[str, ...]) -> str:
        """A child's conversation is not summed up."""
        return ""

    def fetch(self) -> str | None:
        """The user speaks to the parent."""
        return None

    def killed(self) -> None:
        """Kills are of the whole harness."""

    # What the stage does for it

    def stand(self, request: Request) -> tuple[str, ...]:
        """Go back where a request goes on from an earlier turn; what the turns since had asked for."""
        number = request.after
        if number is None or request.lost or number >= len(self._answered):
            return ()
        gone = tuple(action for _, _, actions in self._answered[number + 1 :] for action in actions)
        del self._answered[number + 1 :]
        self.helping, self.previous, _ = self._answered[number]
        self._history = self.previous.carried or self.helping.carried
        self.ran = {}
        return gone

    def carries(self, request: Request) -> int:
        """Tokens that a request carries: history, the turn it sends back, and what it adds."""
        turn = self.previous.turn
        carried = self._history + (turn.tokens if turn is not None and request.echo is not None else 0)
        carried += sum(count_tokens(result.text) for result in request.results)
        return carried + (count_tokens(request.text) if request.text else 0)

    def moved(self, request: Request, carried: int, finish_tool: str) -> Stimulus | None:
        """What a request is to the child; None for its first."""
        if self._emitted is None:
            return None
        return stimulus(self.previous, request, finish_tool, carried)

    def no_turn(self, request: Request, emitted: Emission, helping: Helping) -> None:
        """A fault, or an answer still in progress, was delivered."""
        self._emitted, self.helping = emitted, msgspec.structs.replace(helping, moved=AGAIN)
        self.previous = msgspec.structs.replace(self.previous, limit=request.limit, model=request.model)

    def delivered(self, request: Request, emitted: Emission, helping: Helping, carried: int) -> None:
        """A turn was delivered."""
        turn = emitted.turn
        said = turn.text or helping.said
        self._emitted = emitted
        speaks = turn.kind in ("content", "unknown")
        self.helping = msgspec.structs.replace(
            helping,
            moved=good_request(turn),
            said=said if speaks else helping.said,
            refused=turn.kind == "refusal",
            open=turn.runnable if speaks else (),
            arms=emitted.arms,
            children=emitted.children,
        )
        number = self.previous.number + 1
        self.previous = Delivered(turn, request.limit, request.model, number, carried)
        self.ran = {}
        self.input_tokens += carried
        self._history = carried
        self._answered.append((self.helping, self.previous, emitted.actions))

    def ends_with(self, turn: Turn) -> bool:
        """Whether the child is at its end with this turn, whose words are then its answer to the parent."""
        offered = self._stage.offered
        if turn.kind not in ("content", "unknown") or not (self.played_out or ends(turn, offered)):
            return False
        self.answer = last_words(turn, offered)
        return True

    def has_run(self, call: Call, result: Result) -> None:
        """One of its calls has run, a child of its own included."""
        self.ran[call.id] = result
        left = tuple(other for other in self.helping.open if other.id != call.id)
        self.helping = msgspec.structs.replace(self.helping, open=left)

    def waiting(self, call: Call) -> Child | None:
        """The child that its own script has for a delegate call."""
        return next((child for child in self.helping.children if child.arguments == call.arguments), None)
