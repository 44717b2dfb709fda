"""What a condition may look at: the turn, folds of the run, checks; never oracle, script or future."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from evalkit.core.channels import finish_call
from evalkit.core.decisions import Verdict
from evalkit.core.tasks import Task
from evalkit.core.turns import Claim, Finish, Turn, read_finish


class Instruments(Protocol):
    """What a harness can measure while it runs; each costs what it costs, so each runs when it is called."""

    @property
    def tokens(self) -> int:
        """What the run has cost so far, by the turns' own usage."""

    @property
    def usd(self) -> float:
        """The same in US dollars."""

    @property
    def last_turn(self) -> Turn | None:
        """The last model turn that was delivered; an answer that failed is none."""

    def checks(self) -> Verdict:
        """Run the task's acceptance checks."""

    def artifact(self) -> bool:
        """Whether the work left anything: a commit, a diff, a file, a changed row."""

    def replays(self, item: str) -> bool:
        """Whether an item, read again with the world's reading tool, is done."""


class View:
    """One moment of a run, for conditions.

    ``memory`` holds the folds by name; ``turns`` counts the model turns of the run. ``is_content`` is False
    for a turn that was cut off or refused, unless the strategy takes it as content: what it says and calls is
    then no claim, finish, keyword or output. ``turn`` is the turn as it came; ``text``, ``claim`` and
    ``finish`` are what counts of it.
    """

    __slots__ = ("instruments", "is_content", "memory", "task", "turn", "turns")

    def __init__(
        self,
        task: Task,
        turn: Turn,
        memory: dict[str, Hashable],
        instruments: Instruments,
        turns: int = 0,
        is_content: bool = True,
    ) -> None:
        self.task = task
        self.turn = turn
        self.memory = memory
        self.instruments = instruments
        self.turns = turns
        self.is_content = is_content

    @property
    def text(self) -> str:
        """What the turn says."""
        return self.turn.text if self.is_content else ""

    @property
    def claim(self) -> Claim:
        """What an ideal reader reads in it."""
        return self.turn.claim if self.is_content else "none"

    @property
    def finish(self) -> Finish | None:
        """What its call of the finish tool says; None where there is none."""
        call = finish_call(self.turn, self.task.offered) if self.is_content else None
        return None if call is None else read_finish(call.arguments)

    def items(self, fold: str) -> int:
        """The bit set that a fold holds; empty where it is not kept."""
        value = self.memory.get(fold, 0)
        return value if isinstance(value, int) else 0

    def named(self, items: int) -> str:
        """Ids for a reason."""
        return ", ".join(self.task.names(items))
