"""Moves compiled into instructions: what each delivers, step by step, and what it depends on."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Any

import msgspec

from evalkit.core.events import Approves, Compacts, Event, UserWrites
from evalkit.core.requests import cannot_pass
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL
from evalkit.core.turns import Block, Call, make_turn
from evalkit.scenarios.emissions import Emission, Part, Scope, Script, emission, labelled, merge
from evalkit.scenarios.moves import (
    EVENTS,
    AnyMove,
    ApproveMove,
    BackgroundMove,
    CompactMove,
    CrashMove,
    DelegateMove,
    EmptyMove,
    FaultMove,
    Move,
    RefuseMove,
    ThinkMove,
    TickMove,
    TurnMove,
    UndoMove,
    Until,
    UserMove,
    WaitMove,
    WorkMove,
    verb_of,
)
from evalkit.worlds import World


class PlayerState(msgspec.Struct, frozen=True, gc=False):
    """Where the script stands.

    ``pc`` is the instruction, ``step`` the turn within its move, ``targets`` the items fixed when the move
    began, ``attempted`` all items attempted. ``waits`` says that the move is played and its ``until`` open;
    ``named`` that the user named a fitting item since it began. ``asked`` are the items asked for so far,
    ``begun`` those that were attempted when a ``turn`` or ``delegate`` began, ``spared`` faults and events
    that were met once and are passed over, with how often.
    """

    pc: int = 0
    step: int = 0
    targets: tuple[str, ...] = ()
    attempted: int = 0
    waits: bool = False
    named: bool = False
    loops: tuple[int, ...] = ()
    visits: tuple[int, ...] = ()
    asked: int = 0
    begun: int = 0
    spared: tuple[tuple[int, int], ...] = ()


ENDLESS = 1 << 60
_replace = msgspec.structs.replace


@lru_cache(maxsize=16_384)
def choice(stream: str, seed: int, path: str, visit: int) -> float:
    """The number in [0, 1) that decides a choice: blake2b of its place, so strategies stay paired."""
    text = f"{stream}\n{seed}\n{path}\n{visit}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64


class Loop(msgspec.Struct, frozen=True):
    slot: int
    times: int
    end: int


class LoopEnd(msgspec.Struct, frozen=True):
    """``eventful``: it goes on for ever, and something in it happens without an answer."""

    slot: int
    times: int
    start: int
    eventful: bool


class Choose(msgspec.Struct, frozen=True):
    slot: int
    path: str
    bounds: tuple[float, ...]
    targets: tuple[int, ...]
    end: int


class Jump(msgspec.Struct, frozen=True):
    target: int


class Program:
    """Moves made ready to be played: those of the model, or of a child agent."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        #: The move that is repeated when all are played.
        self.tail: int | None = None


class Play:
    """A move that delivers; emissions are built once for each state of the script they depend on."""

    def __init__(self, move: AnyMove, path: str, script: Script, programs: tuple[Program, ...]) -> None:
        self.move = move
        self.path = path
        self.script = script
        self.programs = programs
        self.label = _label(move)
        self.until: Until = move.passes
        self._built: dict[Any, Emission] = {}
        self._depends = _depends(move)
        #: Moves whose items are fixed when they begin.
        self.targeted = isinstance(move, WorkMove | UndoMove | TickMove)
        #: Moves of several parts: what was attempted when they began fixes the items of all.
        self.composed = isinstance(move, TurnMove | DelegateMove)
        #: What happens once, whoever asks again: it is no decision of the model's.
        self.happens = isinstance(move, (FaultMove, *_EVENT_MOVES))
        #: Whether it is an event, which answers no request.
        self.event = isinstance(move, _EVENT_MOVES)
        #: Whether it can be reached at all: not within an option of probability 0.
        self.possible = True
        #: Deliveries, where the items do not say.
        self._steps = self._fixed_steps(move)
        self.endless = self._steps == ENDLESS
        self._in_turn = isinstance(move, WorkMove) and not move.parallel

    def begin(self, attempted: int, asked: int, shown: int = 0) -> tuple[str, ...] | None:
        """The items fixed at the start; None where the move has no turn."""
        if not (self.targeted or self.composed):
            return ()
        move = self.move
        script = self.script
        scope = Scope(attempted, asked)
        if isinstance(move, WorkMove):
            return script.work_items(move, scope, shown) or None
        if isinstance(move, UndoMove):
            return script.chosen(move.undo, scope, of_attempted=True) or None
        if isinstance(move, TickMove):
            items = script.chosen(move.tick, scope, of_attempted=False)
            return (items or None) if script.offered.checklist else None
        if isinstance(move, TurnMove):
            return () if any(_has_turn(inner, scope, script) for inner in move.turn) else None
        return ()

    @staticmethod
    def _fixed_steps(move: Move) -> int:
        if isinstance(move, WaitMove):
            return ENDLESS if move.wait.polls == "forever" else move.wait.polls
        if isinstance(move, FaultMove):
            # One that cannot pass comes as long as its ``until`` is open.
            return 1 if cannot_pass(move.fault.label) else move.fault.times
        if isinstance(move, BackgroundMove):
            return move.background.polls
        if isinstance(move, CompactMove):
            return move.spec.times
        return 1

    def steps(self, targets: tuple[str, ...]) -> int:
        """How many deliveries the move makes."""
        return len(targets) if self._in_turn else self._steps

    def emit(self, step: int, targets: tuple[str, ...], attempted: int, asked: int) -> Emission:
        """The delivery of a step."""
        key: Any
        if self._in_turn:
            key = targets[step]
        elif self.targeted:
            key = targets
        elif self._steps > 1:
            key = step + 1 == self._steps
        else:
            key = (attempted, asked) if self._depends else None
        built = self._built.get(key)
        if built is None:
            if len(self._built) >= _MOST_BUILT:
                self._built.clear()
            built = self._built[key] = self._build(step, targets, Scope(attempted, asked))
        return built

    def _build(self, step: int, targets: tuple[str, ...], scope: Scope) -> Emission:
        move = self.move
        script = self.script
        if isinstance(move, FaultMove):
            turn = make_turn((), "failed", native=move.fault.label)
            cut = move.fault.cut
            begun = script.begun(cut, scope) if cut in ("in_call", "after_call") else None
            stall_s = move.fault.stall_s or 0.0
            return Emission(turn, self.label, self.path, stall_s=stall_s, begun=begun)
        if isinstance(move, BackgroundMove):
            pending = make_turn((), "in_progress", native="in_progress")
            return Emission(pending, self.label, self.path)
        if isinstance(move, _EVENT_MOVES):
            happens, about = _event(move, script.world)
            return Emission(_NO_TURN, self.label, self.path, event=self.label, happens=happens, about=about)
        crash_after = None
        if isinstance(move, WorkMove):
            items = targets if move.parallel else (targets[step],)
            part = script.work(items, ticks=move.ticks, reply=move.reply)
        elif isinstance(move, WaitMove):
            part = script.read(move.wait.item, settles=step + 1 == self._steps)
        elif isinstance(move, TurnMove):
            parts: list[Part] = []
            programs = iter(self.programs)
            for inner in move.turn:
                if isinstance(inner, CrashMove):
                    crash_after = sum(map(_runs_in_world, (block for part in parts for block in part.blocks)))
                    crash_after -= inner.spec.before
                    continue
                if isinstance(inner, WorkMove):
                    items = script.work_items(inner, scope)
                    inner_part = script.work(items, ticks=inner.ticks, reply=inner.reply)
                elif isinstance(inner, DelegateMove):
                    inner_part = script.delegate(inner, scope, next(programs))
                else:
                    inner_part = script.part(inner, scope)
                if inner.stop is not msgspec.UNSET:
                    inner_part = labelled(inner_part, inner.stop)
                scope = Scope(scope.attempted | inner_part.attempts, scope.asked)
                parts.append(inner_part)
            part = merge(tuple(parts))
        elif isinstance(move, DelegateMove):
            part = script.delegate(move, scope, self.programs[0])
        else:
            part = script.part(move, scope)
        if move.stop is not msgspec.UNSET:
            part = labelled(part, move.stop)
        made = emission(part, self.label, self.path, script.tools, script.offered)
        return made if crash_after is None else msgspec.structs.replace(made, crash_after=max(0, crash_after))


#: Emissions that a move keeps; with choices there can be one for each set of items.
_MOST_BUILT = 4_096


def _has_turn(move: AnyMove, scope: Scope, script: Script) -> bool:
    """Whether a part of a turn adds anything to it."""
    if isinstance(move, WorkMove):
        return bool(script.work_items(move, scope))
    if isinstance(move, UndoMove):
        return bool(script.chosen(move.undo, scope, of_attempted=True))
    if isinstance(move, TickMove):
        return script.offered.checklist and bool(script.chosen(move.tick, scope, of_attempted=False))
    return not isinstance(move, CrashMove)


_EVENT_MOVES = tuple(EVENTS.values())


_NO_TURN = make_turn((), "failed", native="event")


def _event(move: Move, world: World) -> tuple[Event | None, Any]:
    """What an event is to a harness, and what its move says; it takes no note of a crash."""
    match move:
        case UserMove():
            return UserWrites(move.user.text, move.user.closes, world.bits(move.user.asks)), move.user
        case CompactMove():
            return Compacts(), move.spec
        case CrashMove():
            return None, move.spec
        case ApproveMove():
            spec = move.spec
            allowed = world.gated if spec.allow == "all" else world.bits(spec.allow)
            changed = tuple(sorted(spec.change.items()))
            return Approves(allowed, world.bits(spec.refuse), changed, spec.message), spec
    return None, None


def _runs_in_world(block: Block) -> bool:
    """Whether a block is a call that the world answers, not the harness itself."""
    return isinstance(block, Call) and block.tool not in (FINISH_TOOL, CHECKLIST_TOOL)


def _depends(move: Move) -> bool:
    """Whether what a move delivers depends on what was attempted before."""
    return not isinstance(move, ThinkMove | EmptyMove | RefuseMove | FaultMove | BackgroundMove)


def _label(move: AnyMove) -> str:
    verb = verb_of(move)
    claim = getattr(move, "claim", None)
    if claim and claim != "none":
        return f"{verb} (claim {claim})"
    if isinstance(move, TurnMove):
        return "turn (" + ", ".join(_label(inner) for inner in move.turn) + ")"
    return verb
