"""The scripted model: a state machine over moves, its state explicit, copyable and hashable."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from evalkit.core.events import Approves, Compacts, Event, UserWrites
from evalkit.core.requests import Stimulus, cannot_pass
from evalkit.core.tasks import CHECKLIST_TOOL, FINISH_TOOL, Offered, occurs_whole
from evalkit.core.turns import Block, Call, make_turn
from evalkit.scenarios.emissions import Emission, Part, Script, emission, labelled, merge
from evalkit.scenarios.moves import (
    EVENTS,
    AnyMove,
    ApproveMove,
    BackgroundMove,
    CompactMove,
    CrashMove,
    EitherMove,
    EmptyMove,
    FaultMove,
    FinishMove,
    Move,
    RefuseMove,
    RepeatMove,
    SayMove,
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
from evalkit.scenarios.scenario import Scenario
from evalkit.worlds import World

_ENDLESS = 1 << 60
#: Emissions that a move keeps; with choices there can be one for each set of items.
_MOST_BUILT = 4_096


class PlayerState(msgspec.Struct, frozen=True, gc=False):
    """Where the script stands.

    ``pc`` is the instruction, ``step`` the turn within its move, ``targets`` the items fixed when the move
    began, ``attempted`` all items attempted. ``waits`` says that the move is played and its ``until`` open;
    ``named`` that the user named a fitting item since it began.
    """

    pc: int = 0
    step: int = 0
    targets: tuple[str, ...] = ()
    attempted: int = 0
    waits: bool = False
    named: bool = False
    loops: tuple[int, ...] = ()
    visits: tuple[int, ...] = ()


@lru_cache(maxsize=16_384)
def choice(stream: str, seed: int, path: str, visit: int) -> float:
    """The number in [0, 1) that decides a choice: blake2b of its place, so strategies stay paired."""
    text = f"{stream}\n{seed}\n{path}\n{visit}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64


class _Loop(msgspec.Struct, frozen=True):
    slot: int
    times: int
    end: int


class _LoopEnd(msgspec.Struct, frozen=True):
    slot: int
    times: int
    start: int


class _Choose(msgspec.Struct, frozen=True):
    slot: int
    path: str
    bounds: tuple[float, ...]
    targets: tuple[int, ...]
    end: int


class _Jump(msgspec.Struct, frozen=True):
    target: int


class _Play:
    """A move that delivers; emissions are built once for each state of the script they depend on."""

    def __init__(self, move: AnyMove, path: str, script: Script) -> None:
        self.move = move
        self.path = path
        self.script = script
        self.label = _label(move)
        self.until: Until = move.passes
        self._built: dict[Any, Emission] = {}
        self._depends = _depends(move)
        #: Moves whose items are fixed when they begin.
        self.targeted = isinstance(move, WorkMove | UndoMove | TickMove)
        #: Deliveries, where the items do not say.
        self._steps = self._fixed_steps(move)
        self.endless = self._steps == _ENDLESS
        self._in_turn = isinstance(move, WorkMove) and not move.parallel

    def begin(self, attempted: int) -> tuple[str, ...] | None:
        """The items fixed at the start; None where the move has no turn."""
        move = self.move
        script = self.script
        if isinstance(move, WorkMove):
            return script.work_items(move, attempted) or None
        if isinstance(move, UndoMove):
            return script.chosen(move.undo, attempted, of_attempted=True) or None
        if isinstance(move, TickMove):
            items = script.chosen(move.tick, attempted, of_attempted=False)
            return (items or None) if script.offered.checklist else None
        return ()

    @staticmethod
    def _fixed_steps(move: Move) -> int:
        if isinstance(move, WaitMove):
            return _ENDLESS if move.wait.polls == "forever" else move.wait.polls
        if isinstance(move, FaultMove):
            # One that cannot pass comes as long as its ``until`` is open.
            return 1 if cannot_pass(move.fault.label) else move.fault.times
        if isinstance(move, BackgroundMove):
            return move.background.polls
        return 1

    def steps(self, targets: tuple[str, ...]) -> int:
        """How many deliveries the move makes."""
        return len(targets) if self._in_turn else self._steps

    def emit(self, step: int, targets: tuple[str, ...], attempted: int) -> Emission:
        """The delivery of a step."""
        key: Any
        if self._in_turn:
            key = targets[step]
        elif self.targeted:
            key = targets
        elif self._steps > 1:
            key = step + 1 == self._steps
        else:
            key = attempted if self._depends else None
        built = self._built.get(key)
        if built is None:
            if len(self._built) >= _MOST_BUILT:
                self._built.clear()
            built = self._built[key] = self._build(step, targets, attempted)
        return built

    def _build(self, step: int, targets: tuple[str, ...], attempted: int) -> Emission:
        move = self.move
        script = self.script
        if isinstance(move, FaultMove):
            turn = make_turn((), "failed", native=move.fault.label)
            return Emission(turn, self.label, self.path, stall_s=move.fault.stall_s or 0.0)
        if isinstance(move, BackgroundMove):
            return Emission(make_turn((), "in_progress", native="in_progress"), self.label, self.path)
        if isinstance(move, _EVENT_MOVES):
            at_end = isinstance(move, UserMove) and move.user.when == "ended"
            happens = _event(move, script.world)
            return Emission(_NO_TURN, self.label, self.path, event=self.label, happens=happens, at_end=at_end)
        crash_after = None
        if isinstance(move, WorkMove):
            items = targets if move.parallel else (targets[step],)
            part = script.work(items, ticks=move.ticks, reply=move.reply)
        elif isinstance(move, WaitMove):
            part = script.read(move.wait.item, settles=step + 1 == self._steps)
        elif isinstance(move, TurnMove):
            parts: list[Part] = []
            for inner in move.turn:
                if isinstance(inner, CrashMove):
                    crash_after = sum(map(_runs_in_world, (block for part in parts for block in part.blocks)))
                    continue
                if isinstance(inner, WorkMove):
                    items = script.work_items(inner, attempted)
                    inner_part = script.work(items, ticks=inner.ticks, reply=inner.reply)
                else:
                    inner_part = script.part(inner, attempted)
                if inner.stop is not msgspec.UNSET:
                    inner_part = labelled(inner_part, inner.stop)
                attempted |= inner_part.attempts
                parts.append(inner_part)
            part = merge(tuple(parts))
        else:
            part = script.part(move, attempted)
        if move.stop is not msgspec.UNSET:
            part = labelled(part, move.stop)
        made = emission(part, self.label, self.path, script.tools)
        return made if crash_after is None else msgspec.structs.replace(made, crash_after=crash_after)


_EVENT_MOVES = tuple(EVENTS.values())
_NO_TURN = make_turn((), "failed", native="event")


def _event(move: Move, world: World) -> Event | None:
    """What an event is to a harness; a crash is nothing that it could take note of."""
    match move:
        case UserMove():
            return UserWrites(move.user.text, move.user.closes, world.bits(move.user.asks))
        case CompactMove():
            return Compacts()
        case ApproveMove():
            spec = move.spec
            allowed = world.gated if spec.allow == "all" else world.bits(spec.allow)
            changed = tuple(sorted(spec.change.items()))
            return Approves(allowed, world.bits(spec.refuse), changed, spec.message)
    return None


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


class Player:
    """A compiled script for one set of offered channels. It holds no state of an episode."""

    def __init__(
        self, scenario: Scenario, world: World, offered: Offered, output: Mapping[str, Any] | None
    ) -> None:
        self.script = Script(world, offered, output)
        self.stream = scenario.stream
        self.random = scenario.random
        #: Whether anything happens to its harness from outside, crashes aside.
        self.eventful = bool(set(scenario.events) - {"crash"})
        self._items = tuple((item, world.vocabulary[item]) for item in world.spec.items)
        self._all = world.all
        self._ops: list[Any] = []
        self._loops = 0
        self._choices = 0
        self._chooses: dict[int, _Choose] = {}
        self._compile(scenario.moves, "")
        #: The loops around each instruction, the outermost first, and where they start.
        self._around = tuple(
            tuple(
                (start, op) for start, op in enumerate(self._ops) if type(op) is _Loop and start < pc < op.end
            )
            for pc in range(len(self._ops) + 1)
        )
        last = scenario.moves[-1]
        self._tail: int | None = None
        if isinstance(last, SayMove | ThinkMove | EmptyMove | FinishMove | RefuseMove):
            self._tail = len(self._ops) - 1
        self._over = emission(self.script.nothing_further(), "nothing further", "end", {})
        self.start = PlayerState(loops=(0,) * self._loops, visits=(0,) * self._choices)

    def _compile(self, moves: tuple[AnyMove, ...], prefix: str) -> None:
        for place, move in enumerate(moves):
            path = f"{prefix}{place}"
            if isinstance(move, RepeatMove):
                self._compile_repeat(move, path)
            elif isinstance(move, EitherMove):
                self._compile_either(move, path)
            else:
                self._ops.append(_Play(move, path, self.script))

    def _compile_repeat(self, move: RepeatMove, path: str) -> None:
        slot, self._loops = self._loops, self._loops + 1
        times = _ENDLESS if move.repeat.times == "forever" else move.repeat.times
        start = len(self._ops)
        self._ops.append(None)
        self._compile(move.repeat.do, f"{path}.")
        self._ops.append(_LoopEnd(slot, times, start + 1))
        self._ops[start] = _Loop(slot, times, len(self._ops))

    def _compile_either(self, move: EitherMove, path: str) -> None:
        slot, self._choices = self._choices, self._choices + 1
        at = len(self._ops)
        self._ops.append(None)
        bounds, targets, jumps = [], [], []
        total = 0.0
        for place, option in enumerate(move.either):
            total += option.p
            bounds.append(total)
            targets.append(len(self._ops))
            self._compile(option.do, f"{path}.{place}.")
            jumps.append(len(self._ops))
            self._ops.append(None)
        end = len(self._ops)
        for jump in jumps:
            self._ops[jump] = _Jump(end)
        chooses = _Choose(slot, path, tuple(bounds), tuple(targets), end)
        self._ops[at] = self._chooses[slot] = chooses

    def samples(self) -> tuple[Emission, ...]:
        """One delivery of each move, for what depends on a turn's shape alone."""
        found = []
        for op in self._ops:
            if type(op) is _Play:
                for attempted in (0, self._all):
                    targets = op.begin(attempted)
                    if targets is not None:
                        emitted = op.emit(0, targets, attempted)
                        if not emitted.event:
                            found.append(emitted)
                        break
        return tuple(found)

    # Playing

    def advance(
        self, state: PlayerState, stimulus: Stimulus | None, seed: int
    ) -> tuple[PlayerState, Emission]:
        """What a request makes of the script: its next state and what it delivers.

        ``stimulus`` is None for the first request. An emission's attempts are in the new state.
        """
        pc, step, targets = state.pc, state.step, state.targets
        attempted, named = state.attempted, state.named
        loops, visits = state.loops, state.visits
        if stimulus is not None and stimulus.text and not named:
            named = self._names(stimulus.text, attempted)
        begins = not state.waits and step == 0
        if state.waits:
            op = self._ops[pc]
            step = 0
            if op.until == "any" or self._passes(op.until, stimulus, named):
                pc = self._next(pc)
                targets, named, begins = (), False, True
        idle = 0
        ops = self._ops
        while True:
            if pc >= len(ops):
                kept = PlayerState(len(ops), 0, (), attempted, False, False, loops, visits)
                return kept, self._over
            op = ops[pc]
            if type(op) is _Play:
                if begins:
                    begun = op.begin(attempted)
                    if begun is None:
                        pc += 1
                        continue
                    targets = begun
                break
            if type(op) is _Loop:
                loops = _set(loops, op.slot, 0)
                pc += 1
            elif type(op) is _LoopEnd:
                idle += 1
                count = loops[op.slot] + 1
                if count < op.times and idle <= len(ops):
                    if op.times != _ENDLESS:
                        loops = _set(loops, op.slot, count)
                    pc = op.start
                else:
                    pc += 1
            elif type(op) is _Choose:
                visit = visits[op.slot]
                option = self.option(op.slot, visit, seed)
                visits = _set(visits, op.slot, visit + 1)
                pc = op.targets[option] if option < len(op.targets) else op.end
            else:
                pc = op.target
        emitted = op.emit(step, targets, attempted)
        attempted |= emitted.attempts
        waits = step + 1 >= op.steps(targets)
        if not waits and not op.endless:
            step += 1
        return PlayerState(pc, step, targets, attempted, waits, named, loops, visits), emitted

    def option(self, slot: int, visit: int, seed: int) -> int:
        """Which option a seed takes at a visit of a choice; one past the last where it takes none."""
        op = self._chooses[slot]
        return bisect_right(op.bounds, choice(self.stream, seed, op.path, visit))

    def place(self, state: PlayerState) -> tuple[int, ...]:
        """How far the script has come: greater is nearer to its end.

        The next turn of a move and the next round of a finite repeat are greater. A move played again is the
        same place, and all within a ``repeat: forever`` is no place at all.
        """
        found: list[int] = []
        for start, loop in self._around[state.pc]:
            if loop.times == _ENDLESS:
                return ()
            found += (start, state.loops[loop.slot])
        return (*found, state.pc, state.step + state.waits)

    def listens(self, state: PlayerState) -> bool:
        """Whether what the next request says can make a difference."""
        pc = state.pc
        return pc < len(self._ops) and self._ops[pc].until != "any"

    def upcoming(self, state: PlayerState, seed: int) -> tuple[PlayerState, Emission] | None:
        """What comes after the move that is played; None within a move."""
        if state.waits:
            state = PlayerState(
                self._next(state.pc), 0, (), state.attempted, False, False, state.loops, state.visits
            )
        elif state.step:
            return None
        return self.advance(state, None, seed)

    def is_over(self, state: PlayerState, stimulus: Stimulus) -> bool:
        """Whether a request gets past the move that is played."""
        if not state.waits or state.pc >= len(self._ops):
            return True
        named = state.named or self._names(stimulus.text, state.attempted)
        until: Until = self._ops[state.pc].until
        return until == "any" or self._passes(until, stimulus, named)

    def _next(self, pc: int) -> int:
        return pc if pc == self._tail else pc + 1

    def _names(self, text: str, attempted: int) -> bool:
        every = attempted & self._all == self._all
        return any((every or not attempted & bit) and occurs_whole(item, text) for item, bit in self._items)

    def _passes(self, until: Until, stimulus: Stimulus | None, named: bool) -> bool:
        if stimulus is None:
            return False
        match until:
            case "changed":
                return stimulus.changed
            case "named":
                return named
            case "higher_limit":
                return stimulus.higher_limit
            case "other_model":
                return stimulus.other_model
            case "resent":
                return stimulus.resent
            case "rejected":
                return stimulus.rejected if self.script.offered.finish else named
        return until == "any"


def _set(values: tuple[int, ...], slot: int, value: int) -> tuple[int, ...]:
    return (*values[:slot], value, *values[slot + 1 :])
