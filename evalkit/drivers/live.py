"""The reference loop with a live model: turns over an SDK, tools on the world here, everything observed."""

from __future__ import annotations

import copy
from collections.abc import Hashable

from evalkit.core.channels import skip_told, speaks
from evalkit.core.keys import with_key
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Offered, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Call, Claim, Turn, make_turn, parse_arguments
from evalkit.models.cassettes import Playing
from evalkit.models.clients import SdkModel
from evalkit.models.ledger import Purse
from evalkit.stage.stage import NeverEnds
from evalkit.stage.tools import perform
from evalkit.strategies.claim_reader import read_claim, read_skips
from evalkit.worlds import World, action_of


class LiveStage:
    """One live episode. What a turn claims and skips is read by :mod:`evalkit.strategies.claim_reader`.

    ``cap`` is the number of model turns after which a further request raises NeverEnds. What is asked is paid
    from the ``purse``; a recording that is replayed needs none.
    """

    def __init__(
        self,
        model: SdkModel,
        world: World,
        task: Task,
        offered: Offered,
        purse: Purse | None,
        *,
        cap: int,
        playing: Playing | None = None,
        observed: bool = True,
    ) -> None:
        self.model = model
        self.world = world
        self.task = task
        self.offered = offered
        self.purse = purse
        self.cap = cap
        self.playing = playing
        self.trace: Trace | None = Trace(offered, task.limits) if observed else None
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self.turns = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.faulted = False
        #: Whether a call whose effect stands is answered from the record of it.
        self.careful = False

    @property
    def tokens(self) -> int:
        """Input and output tokens so far, by the provider's own count."""
        return self.input_tokens + self.output_tokens

    def ask(self, request: Request) -> Turn:
        """The model's answer. LimitReached before a call that could go over the spending limit."""
        if self.trace is not None:
            self.trace.requests += 1
            self.trace.asked_anew(request)
            self.trace.resolved(*self.world.standing(), request, self.ran)
        if self.turns >= self.cap:
            raise NeverEnds
        answer = self.model.ask(request)
        if self.purse is not None:
            if self.purse.refused is not None:
                raise self.purse.refused
            self.purse.settle(answer)
        if self.playing is not None and self.playing.missed is not None:
            raise self.playing.missed
        turn = answer.turn
        self.faulted = turn.kind == "failed"
        if turn.is_no_turn:
            if self.trace is not None:
                self.trace.no_turn(turn, "a live answer that is no turn")
            self.previous = Delivered(self.previous.turn, request.limit, request.model)
            return turn
        turn = make_turn(
            turn.content,
            turn.stop,
            native=turn.native,
            category=turn.category,
            claim=self._claim(turn),
            told=read_skips(turn.text, self.task.vocabulary),
        )
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self.turns += 1
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens
        skipped = skip_told(turn, self.offered)
        if skipped:
            self.world.skip(self.task.items_of(skipped))
        if self.trace is not None:
            self._observe(turn, answer.input_tokens + answer.output_tokens, answer.output_tokens)
        return turn

    def _observe(self, turn: Turn, tokens: int, output: int) -> None:
        assert self.trace is not None
        self.trace.delivered(turn, tokens, f"live turn (claim {turn.claim})", output)
        if not speaks(turn):
            return
        for call in turn.calls:
            action = action_of(self.task.tools.get(call.tool), parse_arguments(call.arguments))
            if action is not None:
                self.trace.called[action] = self.trace.called.get(action, 0) + 1

    @staticmethod
    def _claim(turn: Turn) -> Claim:
        return read_claim(turn.text).claim if turn.kind in ("content", "unknown") else "none"

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the last turn on the world; ``key`` takes the place of the model's."""
        if self.trace is not None:
            self.trace.runs(self.previous.turn, call)
        values = parse_arguments(call.arguments if key is None else with_key(call.arguments, key))
        walls = self.world.walls
        known = self.world.recorded(call.tool, values) if self.careful and values is not None else None
        outcome = known or perform(self.world, call.tool, values, self.trace)
        if self.world.walls > walls and self.trace is not None:
            self.trace.met_wall()
        result = self.ran[call.id] = Result(call.id, outcome.text, outcome.error)
        return result

    def settle(self) -> None:
        """Nothing is pending: tools act when they are called."""

    def place(self) -> tuple[int, ...]:
        """Nobody knows how far a live model has come."""
        return ()

    def key(self) -> Hashable:
        """No two moments of a live run are the same."""
        return self.turns, self.faulted

    def fork(self) -> LiveStage:
        """A copy of conversation and world, for asking what could still happen. It is not observed."""
        twin = copy.copy(self)
        twin.model = self.model.copied()
        twin.world = self.world.fork()
        twin.ran = dict(self.ran)
        twin.trace = None
        return twin
