"""What an exploration remembers beside world and loop, to judge properties by its own book-keeping."""

from __future__ import annotations

from evalkit.core.channels import is_nudge, protocol_state
from evalkit.core.decisions import Action, Reissue, Resend, Send
from evalkit.core.events import Event, UserWrites
from evalkit.core.turns import Turn
from evalkit.loop.state import Loop
from evalkit.search.properties import NUDGES, STRETCHES, stretch_caps
from evalkit.strategies.folds import Ran

#: The kinds of turn that a stretch can be of.
_KINDS = ("", "pause", "cut_off", "overflow", "refusal")


class Watch:
    """Remembers whether a blocker was stated. A memory is a small int; ``size`` is above all of them.

    ``planes`` is the number of item sets at the memory's low end.
    """

    planes = 0
    size = 2

    def after(
        self, memory: int, turn: Turn, blocks: bool, ran: tuple[Ran, ...], action: Action
    ) -> tuple[int, int]:
        """The memory after a continuation, and the bits of the properties that it breaks."""
        return memory | blocks, 0

    def told(self, memory: int, event: Event | None) -> int:
        """The memory when something happened from outside; None is a crash."""
        return memory

    def ends(self, memory: int, blocks: bool) -> bool:
        """Whether a blocker was stated when the run ends."""
        return bool(memory or blocks)

    def expands(self, memory: int, turn: Turn) -> bool:
        """Whether a turn has to be tried here."""
        return True


class NudgeWatch(Watch):
    """Counts nudges since the last new effect, and in all where there is a budget."""

    planes = 1

    def __init__(self, loop: Loop) -> None:
        strategy, task = loop.strategy, loop.task
        self._items = len(task.vocabulary)
        self._offered = loop.offered
        self._cap, self._budget = strategy.nudges, strategy.nudge_budget
        self._counts = (self._cap or 0) + 2
        self._totals = (self._budget or 0) + 2
        self.size = self._counts * self._totals << self._items

    def after(
        self, memory: int, turn: Turn, blocks: bool, ran: tuple[Ran, ...], action: Action
    ) -> tuple[int, int]:
        acted = memory & ((1 << self._items) - 1)
        total, count = divmod(memory >> self._items, self._counts)
        for record in ran:
            tool = record.tool
            if tool is not None and tool.does and not record.result.error and not acted & record.item:
                acted |= record.item
                count = 0
        if is_nudge(turn, action, self._offered):
            count = 0 if self._cap is None else min(count + 1, self._cap + 1)
            total = 0 if self._budget is None else min(total + 1, self._budget + 1)
        over = (self._cap is not None and count > self._cap) or (
            self._budget is not None and total > self._budget
        )
        return (total * self._counts + count) << self._items | acted, NUDGES if over else 0

    def told(self, memory: int, event: Event | None) -> int:
        if not isinstance(event, UserWrites):
            return memory
        acted, total = memory & ((1 << self._items) - 1), (memory >> self._items) // self._counts
        return (total * self._counts) << self._items | acted

    def ends(self, memory: int, blocks: bool) -> bool:
        return blocks


class StretchWatch(Watch):
    """Counts answers in a row to paused, cut-off and refused turns, and to full windows.

    The loop forgets such a count with the first turn of another kind, so the turns that end a stretch are
    tried where it began and not again at each of its turns.
    """

    def __init__(self, loop: Loop) -> None:
        self._caps = stretch_caps(loop)
        self._length = max(self._caps.values(), default=0) + 2
        self.size = len(_KINDS) * self._length

    def after(
        self, memory: int, turn: Turn, blocks: bool, ran: tuple[Ran, ...], action: Action
    ) -> tuple[int, int]:
        kind = protocol_state(turn)
        cap = self._caps.get(kind)
        if cap is None or not is_repeat(turn, action):
            return 0, 0
        before, length = divmod(memory, self._length)
        length = min(length + 1, cap + 1) if _KINDS[before] == kind else 1
        return _KINDS.index(kind) * self._length + length, STRETCHES if length > cap else 0

    def ends(self, memory: int, blocks: bool) -> bool:
        return blocks

    def expands(self, memory: int, turn: Turn) -> bool:
        return memory == 0 or _KINDS[memory // self._length] == protocol_state(turn)


def is_repeat(turn: Turn, action: Action) -> bool:
    """Whether an action asks again after a paused, cut-off or refused turn."""
    return protocol_state(turn) in _KINDS and isinstance(action, Resend | Reissue | Send)
