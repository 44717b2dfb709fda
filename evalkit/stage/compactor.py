"""Compactions of a program that has to make them itself: what makes it compact, and whether it did.

A scripted model compacts nothing. It reports many tokens, says that its window is full, or waits until the
program finds its own conversation too long. That it landed shows in a later request that carries less.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

import msgspec

from evalkit.core.requests import FULL_WINDOW
from evalkit.core.turns import make_turn
from evalkit.scenarios.moves import CompactMove, CompactSpec
from evalkit.scenarios.scenario import Scenario, walk

Kind: TypeAlias = Literal["usage", "length", "error", "endpoint"]

#: What a program is answered that reacts to a full window.
WINDOW_FULL = make_turn((), "failed", native=f"http_400{FULL_WINDOW}")
_SPELLED = re.compile(r"(?P<kind>usage|length):(?P<number>[1-9][0-9]*)|(?P<plain>error|endpoint)")


class Means(msgspec.Struct, frozen=True):
    """By what a program comes to compact.

    ``usage``: an answer's reported input tokens are ``number``. ``length``: its conversation holds ``number``
    messages. ``error``: a request is refused because the window is full. ``endpoint``: it asks the provider's
    endpoint for compaction when it finds it right.
    """

    kind: Kind
    number: int = 0

    @property
    def own(self) -> bool:
        """Whether the program itself knows when: nothing that it is answered makes it."""
        return self.kind in ("length", "endpoint")


def means(text: str) -> Means:
    """What a manifest names: ``usage:N``, ``length:N``, ``error``, ``endpoint``, else ValueError."""
    found = _SPELLED.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r}; expected usage:N, length:N, error or endpoint")
    kind: Kind = found["kind"] or found["plain"]  # type: ignore[assignment]
    return Means(kind, int(found["number"] or 0))


def compactions(scenario: Scenario) -> Iterator[CompactSpec]:
    """The compactions that a scenario's moves write out, in their order; a loop's once."""
    for move in walk(scenario.moves):
        if isinstance(move, CompactMove):
            for _ in range(move.spec.times):
                yield move.spec


class Compactor:
    """The compactions of one episode.

    One is *due* from the moment at which the script comes to it, or is seen to come to it next, until a
    request shows that it landed. A program that knows itself when to compact may be ahead of the script.
    """

    def __init__(self, means: Means, script: Iterable[CompactSpec]) -> None:
        self.means = means
        self.landed = 0
        self._script = tuple(script)
        #: What has come, or comes next, and has not landed.
        self.due: list[CompactSpec] = []
        self._foreseen = 0
        self._ahead = 0

    @property
    def reports(self) -> int:
        """The input tokens that an answer reports at least."""
        return self.means.number if self.means.kind == "usage" and self.due else 0

    @property
    def spec(self) -> CompactSpec:
        """What the model says when it is asked for a summary now."""
        if self.due:
            return self.due[0]
        if self.means.own and self.landed < len(self._script):
            return self._script[self.landed]
        return CompactSpec()

    @property
    def exercised(self) -> bool:
        """Whether the program compacted, each time that the script came to it."""
        return self.landed > 0 and not self.due

    def foresee(self, specs: Iterable[CompactSpec]) -> None:
        """The script comes to these with the next request, whatever it says."""
        self.look_away()
        if self.means.kind == "error":
            return
        for spec in list(specs)[self._ahead :]:
            self.due.append(spec)
            self._foreseen += 1

    def look_away(self) -> None:
        """What was foreseen does not come next after all: the script stands elsewhere."""
        if self._foreseen:
            del self.due[-self._foreseen :]
            self._foreseen = 0

    def meet(self, spec: CompactSpec) -> bool:
        """The script has come to one. Whether the request is refused for it."""
        if self._foreseen:
            self._foreseen -= 1
        elif self._ahead:
            self._ahead -= 1
        else:
            self.due.append(spec)
        return self.refuses

    @property
    def refuses(self) -> bool:
        """Whether a request is refused until it carries less."""
        return self.means.kind == "error" and bool(self.due)

    def land(self) -> bool:
        """A request carries less than the conversation; whether that is a compaction of the script's."""
        if self.due:
            del self.due[0]
        elif self.means.own:
            self._ahead += 1
        else:
            return False
        self.landed += 1
        return True
