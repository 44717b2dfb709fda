"""The conversations of child agents whose harness asks for their turns itself, told apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

from evalkit.core.requests import Result
from evalkit.core.tasks import occurs_whole
from evalkit.core.turns import Call, parse_arguments
from evalkit.scenarios.emissions import DELEGATE_TOOL
from evalkit.wire.conversation import Memory, prompt_of
from evalkit.wire.incoming import Incoming
from evalkit.wire.stage_protocol import Child, Parent, Script, makes


class Conversation(Protocol):
    """A child agent's conversation on the wire; ``mark`` stands in each id of its answers."""

    script: Script
    memory: Memory
    turns: int
    mark: str


Episode = TypeVar("Episode", bound=Conversation)


class ChildConversations(Generic[Episode]):
    """Those of one episode, by the call that each works in and the number of the turn that made it.

    ``begin`` makes a conversation of a child agent's script and a mark.
    """

    def __init__(self, parent: Script, begin: Callable[[Child, str], Episode]) -> None:
        self._parent = parent
        self._begin = begin
        self._by_call: dict[tuple[str, int], Episode] = {}

    def find(self, incoming: Incoming, words: str | None) -> Episode | None:
        """The conversation that a request is of; a new one where its ``words`` begin that."""
        for child in self._by_call.values():
            if _goes_on(incoming, child.mark):
                return child
        if words is None:
            return None
        same = [c for c in self._by_call.values() if c.memory.prompt == prompt_of(incoming.pieces)]
        begins = all(piece.role != "assistant" for piece in incoming.pieces)
        # Several may begin with the same words; a child that has no turn yet is asked again behind a fault.
        known = [child for child in same if not (begins and child.turns)]
        return known[-1] if known else self._called(words)

    def _called(self, words: str) -> Episode | None:
        """The conversation of the child agent of a delegate call; of several the one that is named."""
        parents: list[tuple[Script, Any]] = [(self._parent, None)]
        parents += [(child.script, child.script) for child in self._by_call.values()]
        calls = [
            (call, within, (call.id, script.previous.number), call.id in script.ran)
            for script, within in parents
            for call in (script.previous.turn.calls if script.previous.turn is not None else ())
            if call.tool == DELEGATE_TOOL
        ]
        calls = [each for each in calls if _names(each[0], words)] or calls
        for call, within, place, ran in calls:
            script = None
            if not ran and place not in self._by_call:
                script = cast(Parent, self._parent).child(call, within)
            if script is not None:
                child = self._by_call[place] = self._begin(script, f"_child{len(self._by_call) + 1}")
                return child
        return next((self._by_call[place] for _, _, place, _ in calls if place in self._by_call), None)

    def script_of(self, tool: str, arguments: dict[str, Any]) -> Script:
        """Whose call a harness runs: the parent's, or that of a child agent which waits for it."""
        if not self._by_call:
            return self._parent
        scripts = (self._parent, *(child.script for child in self._by_call.values()))
        return next((script for script in scripts if makes(script, tool, arguments)), self._parent)


def _goes_on(incoming: Incoming, mark: str) -> bool:
    """Whether a request goes on from an answer with this mark, by an id of it."""
    ids = [incoming.continues] if incoming.continues is not None else []
    ids += [p.block.id for p in incoming.pieces if isinstance(p.block, Call | Result)]
    return any(f"{mark}_" in name for name in ids)


def _names(call: Call, words: str) -> bool:
    """Whether a child agent's first words hold the name that its delegate call gives it."""
    name = (parse_arguments(call.arguments) or {}).get("name")
    return isinstance(name, str) and occurs_whole(name, words)
