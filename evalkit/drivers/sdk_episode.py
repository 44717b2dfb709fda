"""An episode whose turns come from a provider's SDK while its script stands behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import msgspec

from evalkit.core.prices import cost
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Task
from evalkit.core.turns import Call, Claim, Finish, Turn, make_turn
from evalkit.drivers.in_process import Meter, StageInstruments
from evalkit.models.clients import SdkModel
from evalkit.stage.stage import Stage
from evalkit.wire.answers import Answer

#: What the script says that a turn claims and tells, which no API carries.
Aside: TypeAlias = tuple[Claim, Finish | None]


class SdkEpisode:
    """What the loop meets: turns with the ids of the wire, where the script has its own.

    ``tokens`` and the money are by the answers' own usage, and what helpers spent: they work within a tool
    of the harness's own, which sees it.
    """

    def __init__(self, stage: Stage, model: SdkModel) -> None:
        self.task: Task = stage.task
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self._input_tokens = 0
        self._output_tokens = 0
        self._stage = stage
        self._model = model

    def _take(self, answer: Answer, request: Request, aside: Callable[[], Aside]) -> Turn:
        """An answer as the loop's next turn, with what the script says aside; an answer that is no turn."""
        turn = answer.turn
        if turn.is_no_turn:
            self.previous = Delivered(self.previous.turn, request.limit, request.model)
            return turn
        claim, told = aside()
        turn = make_turn(
            turn.content, turn.stop, native=turn.native, category=turn.category, claim=claim, told=told
        )
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self._input_tokens += answer.input_tokens
        self._output_tokens += answer.output_tokens
        return turn

    def _scripted_calls(self) -> dict[str, Call]:
        """The script's calls of the last turn, by the ids that the wire has for them."""
        own, wire = self._stage.previous.turn, self.previous.turn
        if own is None or wire is None:
            return {}
        return {there.id: here for there, here in zip(wire.calls, own.calls, strict=True)}

    def _scripted_request(self, request: Request) -> Request:
        """A request with the script's own turn and ids."""
        own = {wire: call.id for wire, call in self._scripted_calls().items()}
        results = tuple(
            Result(own.get(result.id, result.id), result.text, result.error) for result in request.results
        )
        echo = self._stage.previous.turn if request.echo is not None else None
        return msgspec.structs.replace(request, echo=echo, results=results)

    @property
    def input_tokens(self) -> int:
        """Input tokens so far, by the answers' usage, and those of helpers."""
        return self._input_tokens + self._stage.helpers.input_tokens

    @property
    def output_tokens(self) -> int:
        """Output tokens so far, by the answers' usage, and those of helpers."""
        return self._output_tokens + self._stage.helpers.output_tokens

    @property
    def tokens(self) -> int:
        """Input and output tokens so far."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float:
        """The same in US dollars, by the assumed prices."""
        return cost(self.input_tokens, self.output_tokens)


class SdkInstruments(StageInstruments):
    """What the loop measures over an SDK: usage and last turn by the answers, checks on the world."""

    def __init__(self, episode: SdkEpisode, meter: Meter) -> None:
        super().__init__(meter)
        self._episode = episode

    @property
    def tokens(self) -> int:
        return self._episode.tokens

    @property
    def usd(self) -> float:
        return self._episode.usd

    @property
    def last_turn(self) -> Turn | None:
        return self._episode.previous.turn
