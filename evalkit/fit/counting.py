"""What lives show, counted by task: how often a thing happened of how often it could have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from evalkit.scenarios.life import CAUSES, KINDS, Life, spans_of, staged

#: Of whom a parameter speaks.
AGENT, OTHER, TOOLS, WORK = "agent", "other side", "tools", "work"
#: Stands for all stages or all kinds together.
ALL = "all"


class Counted(msgspec.Struct):
    """One parameter: of whom it is, and (count, base) by task."""

    of: str
    tasks: dict[str, list[int]] = {}

    def add(self, task: str, happened: bool) -> None:
        """One occasion."""
        cell = self.tasks.setdefault(task, [0, 0])
        cell[0] += happened
        cell[1] += 1

    @property
    def clusters(self) -> list[tuple[int, int]]:
        """(count, base) of each task that had an occasion."""
        return [(count, base) for count, base in self.tasks.values()]


class Counts:
    """All parameters of lives by name, and how many tool turns stood before each end, by stage.

    ``spans`` are the ends of turn from which a stage is called middle, and late; by default the lives' own.
    """

    def __init__(self, lives: Iterable[Life], spans: tuple[int, int] | None = None) -> None:
        self.rates: dict[str, Counted] = {}
        self.lengths: dict[str, Counter[int]] = {}
        self.lives: list[Life] = list(lives)
        self.spans = spans or spans_of(self.lives)
        for life in self.lives:
            self._habits(life)
            self._acts(life)
            self._truth(life)

    def _add(self, of: str, name: str, task: str, happened: bool) -> None:
        self.rates.setdefault(name, Counted(of)).add(task, happened)

    def _habits(self, life: Life) -> None:
        """Exits by tools, kinds of end, who answers an end, and after which the run stops."""
        task, last = life.task, len(life.parts) - 1
        for place, (part, first, stage) in enumerate(staged(life, self.spans)):
            final = place == last
            self.lengths.setdefault(first, Counter())[len(part.acts)] += 1
            # A run that ended at an end of turn did not leave by a tool there, nor in any stretch before.
            for name in (first, ALL):
                self._add(AGENT, f"hands over.{name}", task, not part.end and life.exit == "escalated")
                self._add(OTHER, f"breaks off.{name}", task, not part.end and life.exit == "broken off")
            if not part.end:
                continue
            for kind in KINDS:
                for name in (stage, ALL):
                    self._add(AGENT, f"ends.{name}.{kind}", task, part.end == kind)
            # Only a run that ended at an end of turn has one in its last part.
            for name in (f"{stage}.{part.end}", f"{ALL}.{part.end}", f"{ALL}.{ALL}"):
                self._add(OTHER, f"stops.{name}", task, final)
            if not final:
                self._add(OTHER, "answers", task, part.asked)

    def _acts(self, life: Life) -> None:
        """What tool turns do, and what follows a failed one."""
        task, failed = life.task, False
        for part, first, _ in staged(life, self.spans):
            for act in part.acts:
                self._add(AGENT, f"changes.{first}", task, act.changes)
                self._add(AGENT, f"changes.{ALL}", task, act.changes)
                self._add(TOOLS, "fails", task, act.failed)
                self._add(AGENT, "repeats after a failure" if failed else "repeats", task, act.again)
                if failed:
                    self._add(AGENT, "ends the turn after a failure", task, False)
                failed = act.failed
            if part.end and failed:
                self._add(AGENT, "ends the turn after a failure", task, True)
                failed = False

    def _truth(self, life: Life) -> None:
        """Whether a done was false, by whether anything had changed; why; whether a hand-over was right."""
        task, truth = life.task, life.truth
        if not truth:
            return
        if life.exit != "done":
            name = "right hand-overs" if life.exit == "escalated" else "right where it broke off"
            self._add(WORK, name, task, truth == "right")
            return
        changed = "changed" if life.changed else "unchanged"
        for name in (changed, ALL):
            self._add(WORK, f"false.{name}", task, truth != "right")
        if truth in CAUSES:
            for cause in CAUSES:
                for name in (changed, ALL):
                    self._add(WORK, f"cause.{name}.{cause}", task, truth == cause)
