"""The reference loop on recordings of the scripted server: answers from the tape, the world from the script.

The script plays along as a shadow. It keeps the world as it was when the tape was made, says what a turn
claims, and shows at once where a tape is stale: the answer on it is then not what the script says.
"""

from __future__ import annotations

import msgspec

from evalkit.core.prices import cost
from evalkit.core.requests import Delivered, Request, Result
from evalkit.core.tasks import Task
from evalkit.core.turns import Call, ServerCall, Turn, make_turn
from evalkit.models.cassettes import Missed, Playing
from evalkit.models.clients import SdkModel
from evalkit.stage.stage import Stage


class Shadowed:
    """An episode as the loop meets it in replay. It has the ids of the wire; the shadow has its own."""

    def __init__(self, stage: Stage, model: SdkModel, playing: Playing) -> None:
        self.task: Task = stage.task
        self.previous = Delivered()
        self.ran: dict[str, Result] = {}
        self._input_tokens = 0
        self._output_tokens = 0
        self._stage = stage
        self._model = model
        self._playing = playing

    def ask(self, request: Request) -> Turn:
        """The recorded answer. Missed where there is none, or where the script says something else now."""
        answer = self._model.ask(request)
        if self._playing.missed is not None:
            raise self._playing.missed
        said = self._stage.ask(self._shadow_request(request))
        turn = answer.turn
        if _essence(said) != _essence(turn):
            raise Missed(f"stale cassette: the script now says {_short(said)}, recorded is {_short(turn)}")
        if turn.kind in ("failed", "in_progress"):
            self.previous = Delivered(self.previous.turn, request.limit, request.model)
            return turn
        turn = make_turn(
            turn.content,
            turn.stop,
            native=turn.native,
            category=turn.category,
            claim=said.claim,
            told=said.told,
        )
        self.ran = {}
        self.previous = Delivered(turn, request.limit, request.model)
        self._input_tokens += answer.input_tokens
        self._output_tokens += answer.output_tokens
        return turn

    @property
    def input_tokens(self) -> int:
        """Input tokens so far, by the recorded usage, and those of helpers."""
        return self._input_tokens + self._stage.helpers.input_tokens

    @property
    def output_tokens(self) -> int:
        """Output tokens so far, by the recorded usage, and those of helpers."""
        return self._output_tokens + self._stage.helpers.output_tokens

    @property
    def tokens(self) -> int:
        """Input and output tokens so far."""
        return self.input_tokens + self.output_tokens

    @property
    def usd(self) -> float:
        """The same in US dollars, by the assumed prices."""
        return cost(self.input_tokens, self.output_tokens)

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the last turn on the shadow's world."""
        own = self._own_calls().get(call.id, call)
        answered = self._stage.run(own, key)
        result = self.ran[call.id] = Result(call.id, answered.text, answered.error)
        return result

    def _own_calls(self) -> dict[str, Call]:
        """The script's calls by the ids that the wire has for them."""
        mine, theirs = self._stage.previous.turn, self.previous.turn
        if mine is None or theirs is None:
            return {}
        return {wire.id: own for wire, own in zip(theirs.calls, mine.calls, strict=False)}

    def _shadow_request(self, request: Request) -> Request:
        """The same request with the script's own turn and ids."""
        own = {wire: call.id for wire, call in self._own_calls().items()}
        results = tuple(
            Result(own.get(result.id, result.id), result.text, result.error) for result in request.results
        )
        echo = self._stage.previous.turn if request.echo is not None else None
        return msgspec.structs.replace(request, echo=echo, results=results)


def _essence(turn: Turn) -> tuple[object, ...]:
    """What must be the same in script and recording; ids and provider labels are not."""
    calls = tuple((call.tool, call.arguments) for call in turn.calls)
    servers = tuple(block.name for block in turn.content if isinstance(block, ServerCall))
    return turn.kind, calls, turn.text, servers


def _short(turn: Turn) -> str:
    said = turn.text or ", ".join(call.tool for call in turn.calls) or turn.native or "nothing"
    return f"{turn.stop} {said[:60]!r}"
