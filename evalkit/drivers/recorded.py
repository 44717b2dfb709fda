"""The reference loop on recordings of the scripted server: answers from the tape, the world from the script.

The script plays along as a shadow. It keeps the world as it was when the tape was made, says what a turn
claims, and shows at once where a tape is stale: the answer on it is then not what the script says.
"""

from __future__ import annotations

from evalkit.core.requests import Request, Result
from evalkit.core.turns import Call, ServerCall, Turn
from evalkit.drivers.sdk_episode import SdkEpisode
from evalkit.models.cassettes import Missed, Playing
from evalkit.models.clients import SdkModel
from evalkit.stage.stage import Stage


class Shadowed(SdkEpisode):
    """An episode in replay, its world and what its turns claim by the shadow."""

    def __init__(self, stage: Stage, model: SdkModel, playing: Playing) -> None:
        super().__init__(stage, model)
        self._playing = playing

    def ask(self, request: Request) -> Turn:
        """The recorded answer. Missed where there is none, or where the script says something else now."""
        answer = self._model.ask(request)
        if self._playing.missed is not None:
            raise self._playing.missed
        said = self._stage.ask(self._scripted_request(request))
        if _essence(said) != _essence(answer.turn):
            raise Missed(
                f"stale cassette: the script now says {_short(said)}, recorded is {_short(answer.turn)}"
            )
        return self._take(answer, request, lambda: (said.claim, said.told))

    def run(self, call: Call, key: str | None = None) -> Result:
        """Run a call of the last turn on the shadow's world."""
        answered = self._stage.run(self._scripted_calls().get(call.id, call), key)
        result = self.ran[call.id] = Result(call.id, answered.text, answered.error)
        return result


def _essence(turn: Turn) -> tuple[object, ...]:
    """What must be the same in script and recording; ids and provider labels are not."""
    calls = tuple((call.tool, call.arguments) for call in turn.calls)
    servers = tuple(block.name for block in turn.content if isinstance(block, ServerCall))
    return turn.kind, calls, turn.text, servers


def _short(turn: Turn) -> str:
    said = turn.text or ", ".join(call.tool for call in turn.calls) or turn.native or "nothing"
    return f"{turn.stop} {said[:60]!r}"
