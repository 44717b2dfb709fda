"""A run told by its habits alone: stretches of tool turns with the end of turn after each, and the truth.

Recordings are read as lives, populations are fitted to them and draw new ones; a drawn life becomes a
scenario or is written as a recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias, get_args

import msgspec

#: What an end of turn claims, and ``""`` where the run ended in a tool turn.
Kind: TypeAlias = Literal["none", "partial", "blocked", "done", ""]
KINDS: tuple[str, ...] = get_args(Kind)[:4]
#: How far a run is: nothing has changed, after few ends of turn, some, or many; something has; or it has
#: claimed to be done.
Stage: TypeAlias = Literal["opening", "middle", "late", "changed", "claimed"]
STAGES: tuple[Stage, ...] = get_args(Stage)
#: How a run ended: at an end of turn, by a tool of the agent's, or without an end of its own.
Exit: TypeAlias = Literal["done", "escalated", "broken off"]
#: What was true at the end, and of a false done why; ``""`` where nobody says.
Truth: TypeAlias = Literal["right", "undone", "wrong act", "both", "words", "unknown", ""]
#: Why a done was false, where that is known.
CAUSES: tuple[str, ...] = get_args(Truth)[1:5]


class Act(msgspec.Struct, frozen=True):
    """A tool turn: whether it may have changed the world, was flagged as failed, repeats an earlier one."""

    changes: bool = False
    failed: bool = False
    again: bool = False


class Part(msgspec.Struct, frozen=True):
    """Tool turns, and the end of turn after them; ``asked``: the run's user wrote next."""

    acts: tuple[Act, ...]
    end: Kind = ""
    asked: bool = False


class Life(msgspec.Struct, frozen=True):
    """One run; ``task`` is its cluster."""

    task: str
    parts: tuple[Part, ...]
    exit: Exit
    truth: Truth = ""
    model: str = ""

    @property
    def turns(self) -> int:
        """How many model turns it has."""
        return sum(len(part.acts) + bool(part.end) for part in self.parts)

    @property
    def changed(self) -> bool:
        """Whether anything in it may have changed the world."""
        return any(takes_effect(act) for part in self.parts for act in part.acts)


def takes_effect(act: Act) -> bool:
    """Whether a tool turn changed something: one that may, and was not flagged as failed."""
    return act.changes and not act.failed


class Walk:
    """The stage of a life as it goes on; ``spans`` are the ends of turn from which it is middle, and late."""

    def __init__(self, spans: tuple[int, int]) -> None:
        self.spans = spans
        self.ends = 0
        self.changed = self.claimed = False

    @property
    def stage(self) -> Stage:
        """The stage now."""
        if self.claimed or self.changed:
            return "claimed" if self.claimed else "changed"
        middle, late = self.spans
        return "opening" if self.ends < middle else "middle" if self.ends < late else "late"

    def act(self, act: Act) -> None:
        """A tool turn was made."""
        self.changed |= takes_effect(act)

    def end(self, kind: str) -> None:
        """The turn was ended."""
        self.ends += 1
        self.claimed |= kind == "done"


def spans_of(lives: Sequence[Life]) -> tuple[int, int]:
    """From how many ends of turn on runs are called middle and late: where a tenth, and half, have ended."""
    lengths = sorted(sum(bool(part.end) for part in life.parts) for life in lives)
    middle = lengths[len(lengths) // 10] if lengths else 0
    return middle, max(middle, lengths[len(lengths) // 2] if lengths else 0)


def staged(life: Life, spans: tuple[int, int]) -> Iterator[tuple[Part, Stage, Stage]]:
    """Each part with the stage in which it begins, and the one in which its turn ends."""
    walk = Walk(spans)
    for part in life.parts:
        first = walk.stage
        for act in part.acts:
            walk.act(act)
        yield part, first, walk.stage
        walk.end(part.end)
