"""A scenario: a task, a world, a scripted model and what counts as passing."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from evalkit.core.tasks import NO_CHANNELS, Checks, Limits, Offered, Task
from evalkit.scenarios.moves import (
    EVENTS,
    AnyMove,
    ApproveMove,
    CrashMove,
    DelegateMove,
    EitherMove,
    RepeatMove,
    TurnMove,
    verb_of,
)
from evalkit.worlds import World, WorldSpec

#: The event of a kill that more than one process resumes at once.
SEVERAL = "several that resume at once"


class TaskSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the harness is asked to do."""

    prompt: str
    done_when: str
    checks: Checks = "full"
    items: Literal["listed", "given"] = "listed"
    output: dict[str, Any] | None = None


class Expect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A contract that the check holds: a preset that has to fail the scenario, one that has to pass it."""

    fails: str | None = None
    passes: str | None = None


class Scenario(msgspec.Struct, frozen=True):
    """One scenario, validated. ``digest`` is of the document it came from."""

    name: str
    family: str
    summary: str
    source: str
    task: TaskSpec
    limits: Limits
    world: WorldSpec
    moves: tuple[AnyMove, ...]
    accept: tuple[str, ...] | None = None
    twin: str | None = None
    expect: Expect | None = None
    #: Whether the script begins again for a harness that has forgotten the conversation.
    restarts: bool | None = None
    persona: str | None = None
    digest: str = ""
    place: str = ""

    @property
    def stream(self) -> str:
        """What seeds this scenario's choices: its name, of twins the alphabetically first."""
        return min(self.name, self.twin) if self.twin else self.name

    @property
    def random(self) -> bool:
        """Whether a seed can change anything."""
        return any(isinstance(move, EitherMove) for move in walk(self.moves))

    @property
    def starts_over(self) -> bool:
        """``restarts``, by default where a repetition of the work does harm."""
        if self.restarts is not None:
            return self.restarts
        return self.world.once or self.world.kind == "ledger"

    @property
    def events(self) -> tuple[str, ...]:
        """The events it needs a harness to have a notion of; those that wait for a person say so."""
        every = walk(self.moves)
        found = {verb_of(move) for move in every}
        waits = any(isinstance(move, CrashMove) and move.spec.at == "waiting" for move in every)
        several = any(isinstance(move, CrashMove) and move.spec.resumers > 1 for move in every)
        after = any(isinstance(move, ApproveMove) and move.spec.restarts for move in every)
        return (
            *(verb for verb in EVENTS if verb in found),
            *(("crash while an approval is open",) if waits else ()),
            *((SEVERAL,) if several else ()),
            *(("approve after a restart",) if after else ()),
        )


def children(move: AnyMove) -> tuple[tuple[AnyMove, ...], ...]:
    """The lists of moves within a move."""
    if isinstance(move, RepeatMove):
        return (move.repeat.do,)
    if isinstance(move, EitherMove):
        return tuple(option.do for option in move.either)
    if isinstance(move, TurnMove):
        return (move.turn,)
    if isinstance(move, DelegateMove):
        return (move.delegate.do,)
    return ()


def walk(moves: tuple[AnyMove, ...]) -> list[AnyMove]:
    """All moves, outer before inner."""
    found: list[AnyMove] = []
    for move in moves:
        found.append(move)
        for inner in children(move):
            found.extend(walk(inner))
    return found


def make_task(scenario: Scenario, world: World, seed: int = 0, offered: Offered = NO_CHANNELS) -> Task:
    """What a harness that offers these channels is told of a scenario."""
    return Task(
        name=scenario.name,
        prompt=scenario.task.prompt,
        done_when=scenario.task.done_when,
        checks=scenario.task.checks,
        given=scenario.task.items == "given",
        vocabulary={name: world.vocabulary[name] for name in world.spec.items},
        skippable=world.skippable,
        tools={tool.name: tool for tool in world.tools},
        limits=scenario.limits,
        output=scenario.task.output,
        stream=scenario.stream,
        seed=seed,
        evidence=world.evidence,
        items=world.all,
        offered=offered,
    )
