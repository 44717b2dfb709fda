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
from evalkit.scenarios.emissions import Child, Emission, Part, Scope, Script, emission, labelled, merge
from evalkit.scenarios.moves import (
    EVENTS,
    AnyMove,
    ApproveMove,
    BackgroundMove,
    CompactMove,
    CrashMove,
    DelegateMove,
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
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.worlds import World

_replace = msgspec.structs.replace
_ENDLESS = 1 << 60
_EVENT_MOVES = tuple(EVENTS.values())
#: Emissions that a move keeps; with choices there can be one for each set of items.
_MOST_BUILT = 4_096


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


class Program:
    """Moves made ready to be played: those of the model, or of a child agent."""

    def __init__(self) -> None:
        self.ops: list[Any] = []
        #: The move that is repeated when all are played.
        self.tail: int | None = None


class _Play:
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
        #: Whether it can be reached at all: not within an option of probability 0.
        self.possible = True
        #: Deliveries, where the items do not say.
        self._steps = self._fixed_steps(move)
        self.endless = self._steps == _ENDLESS
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
            return _ENDLESS if move.wait.polls == "forever" else move.wait.polls
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


def _has_turn(move: AnyMove, scope: Scope, script: Script) -> bool:
    """Whether a part of a turn adds anything to it."""
    if isinstance(move, WorkMove):
        return bool(script.work_items(move, scope))
    if isinstance(move, UndoMove):
        return bool(script.chosen(move.undo, scope, of_attempted=True))
    if isinstance(move, TickMove):
        return script.offered.checklist and bool(script.chosen(move.tick, scope, of_attempted=False))
    return not isinstance(move, CrashMove)


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


class Player:
    """A compiled script for one set of offered channels. It holds no state of an episode."""

    def __init__(
        self, scenario: Scenario, world: World, offered: Offered, output: Mapping[str, Any] | None
    ) -> None:
        self.script = Script(world, offered, output)
        self.stream = scenario.stream
        self.random = scenario.random
        #: Whether the script begins again for a harness that has forgotten all.
        self.starts_over = scenario.starts_over
        self.may_start_over = scenario.restarts is not False
        every = walk(scenario.moves)
        #: Whether anything happens to its harness from outside, crashes aside.
        self.eventful = bool(set(scenario.events) - {"crash"})
        #: The moments of its crashes.
        self.crashes = frozenset(move.spec.at for move in every if isinstance(move, CrashMove))
        #: Whether a person decides about its calls.
        self.approves = any(isinstance(move, ApproveMove) for move in every)
        #: Whether it asks more of a stage than turns.
        self.unusual = bool(scenario.events)
        #: Whether what a request shows as done matters: to the model, or for a summary.
        self.reads = any(isinstance(move, WorkMove) and move.work == "unseen" for move in every)
        self.unusual = self.unusual or self.reads
        self.shows = self.reads or any(isinstance(move, CompactMove) for move in every)
        self._items = tuple((item, world.vocabulary[item]) for item in world.spec.items)
        self._loops = 0
        self._choices = 0
        self._chooses: dict[int, _Choose] = {}
        self._main = self._program(scenario.moves, "")
        ops = self._main.ops
        #: The loops around each instruction, the outermost first, and where they start.
        self._around = tuple(
            tuple((start, op) for start, op in enumerate(ops) if type(op) is _Loop and start < pc < op.end)
            for pc in range(len(ops) + 1)
        )
        last = scenario.moves[-1]
        if isinstance(last, SayMove | ThinkMove | EmptyMove | FinishMove | RefuseMove):
            self._main.tail = len(self._main.ops) - 1
        self._over = emission(self.script.nothing_further(), "nothing further", "end", {}, offered)
        self.start = PlayerState(loops=(0,) * self._loops, visits=(0,) * self._choices, asked=world.all)

    def _program(self, moves: tuple[AnyMove, ...], prefix: str) -> Program:
        program = Program()
        self._compile(moves, prefix, program.ops)
        return program

    def _compile(self, moves: tuple[AnyMove, ...], prefix: str, ops: list[Any]) -> None:
        for place, move in enumerate(moves):
            path = f"{prefix}{place}"
            if isinstance(move, RepeatMove):
                self._compile_repeat(move, path, ops)
            elif isinstance(move, EitherMove):
                self._compile_either(move, path, ops)
            else:
                ops.append(_Play(move, path, self.script, self._children(move, path)))

    def _children(self, move: AnyMove, path: str) -> tuple[Program, ...]:
        """What the child agents of a move play."""
        if isinstance(move, DelegateMove):
            return (self._program(move.delegate.do, f"{path}."),)
        if not isinstance(move, TurnMove):
            return ()
        return tuple(
            self._program(inner.delegate.do, f"{path}.{place}.")
            for place, inner in enumerate(move.turn)
            if isinstance(inner, DelegateMove)
        )

    def _compile_repeat(self, move: RepeatMove, path: str, ops: list[Any]) -> None:
        slot, self._loops = self._loops, self._loops + 1
        times = _ENDLESS if move.repeat.times == "forever" else move.repeat.times
        start = len(ops)
        ops.append(None)
        self._compile(move.repeat.do, f"{path}.", ops)
        ops.append(_LoopEnd(slot, times, start + 1))
        ops[start] = _Loop(slot, times, len(ops))

    def _compile_either(self, move: EitherMove, path: str, ops: list[Any]) -> None:
        slot, self._choices = self._choices, self._choices + 1
        at = len(ops)
        ops.append(None)
        bounds, targets, jumps = [], [], []
        total = 0.0
        for place, option in enumerate(move.either):
            total += option.p
            bounds.append(total)
            targets.append(len(ops))
            self._compile(option.do, f"{path}.{place}.", ops)
            if not option.p:
                for op in ops[targets[-1] :]:
                    if type(op) is _Play:
                        op.possible = False
            jumps.append(len(ops))
            ops.append(None)
        end = len(ops)
        for jump in jumps:
            ops[jump] = _Jump(end)
        chooses = _Choose(slot, path, tuple(bounds), tuple(targets), end)
        ops[at] = self._chooses[slot] = chooses

    def samples(self) -> tuple[Emission, ...]:
        """One delivery of each move, for what depends on a turn's shape alone."""
        found = []
        every = self.script.world.bits(self.script.world.spec.items)
        for op in self._main.ops:
            if type(op) is _Play:
                for attempted in (0, every):
                    targets = op.begin(attempted, every)
                    if targets is not None:
                        emitted = op.emit(0, targets, attempted, every)
                        if not emitted.event:
                            found.append(emitted)
                        break
        return tuple(found)

    # Playing

    def advance(
        self,
        state: PlayerState,
        stimulus: Stimulus | None,
        seed: int,
        shown: int = 0,
        program: Program | None = None,
    ) -> tuple[PlayerState, Emission]:
        """What a request makes of the script: its next state and what it delivers.

        ``stimulus`` is None for the first request, ``shown`` are the items that the request shows as done,
        ``program`` is a child agent's. An emission's attempts are in the new state.
        """
        program = program or self._main
        ops = program.ops
        pc, step, targets = state.pc, state.step, state.targets
        attempted, named, asked, begun = state.attempted, state.named, state.asked, state.begun
        if step and not state.waits and (stimulus is None or not stimulus.text):
            # Within a move nothing but its next step can come.
            op = ops[pc]
            emitted = op.emit(step, targets, begun if op.composed else attempted, asked)
            waits = step + 1 >= op.steps(targets)
            step = step if waits or op.endless else step + 1
            return _replace(state, step=step, attempted=attempted | emitted.attempts, waits=waits), emitted
        loops, visits, spared = state.loops, state.visits, state.spared
        if stimulus is not None and stimulus.text and not named:
            named = self._names(stimulus.text, attempted, asked)
        begins = not state.waits and step == 0
        if state.waits:
            op = ops[pc]
            step = 0
            if op.until == "any" or self._passes(op.until, stimulus, named):
                pc = pc if pc == program.tail else pc + 1
                targets, named, begun, begins = (), False, 0, True
        idle = 0
        while True:
            if pc >= len(ops):
                kept = PlayerState(len(ops), 0, (), attempted, False, False, loops, visits, asked, 0, spared)
                return kept, self._over
            op = ops[pc]
            if type(op) is _Play:
                if begins:
                    if spared and op.happens:
                        steps = op.steps(())
                        spared, step = _spare(spared, pc, steps)
                        if step == steps:
                            pc, step = pc + 1, 0
                            continue
                    fixed = op.begin(attempted, asked, shown)
                    if fixed is None:
                        pc += 1
                        continue
                    targets = fixed
                    begun = attempted if op.composed else 0
                break
            if type(op) is _Loop:
                loops = _set(loops, op.slot, 0)
                pc += 1
            elif type(op) is _LoopEnd:
                idle += 1
                count = loops[op.slot] + 1
                # A whole pass without a turn: go on only where another may have one.
                barren = idle > self._loops and not self._can_play(ops, op.start, pc, attempted, asked)
                if count < op.times and not barren:
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
        emitted = op.emit(step, targets, begun if op.composed else attempted, asked)
        attempted |= emitted.attempts
        waits = step + 1 >= op.steps(targets)
        if not waits and not op.endless:
            step += 1
        return (
            PlayerState(pc, step, targets, attempted, waits, named, loops, visits, asked, begun, spared),
            emitted,
        )

    @staticmethod
    def _can_play(ops: list[Any], start: int, end: int, attempted: int, asked: int) -> bool:
        """Whether any move between two places has a turn, or is an event, that a choice can come to."""
        return any(
            type(op) is _Play and op.possible and op.begin(attempted, asked) is not None
            for op in ops[start:end]
        )

    def child(self, child: Child, parent: PlayerState) -> PlayerState:
        """Where a child agent begins; its choices go on from those of the parent's script."""
        return PlayerState(
            attempted=child.scope.attempted,
            loops=(0,) * self._loops,
            visits=parent.visits,
            asked=parent.asked,
        )

    def is_played(self, state: PlayerState, program: Program) -> bool:
        """Whether a child agent has nothing left to do."""
        return state.pc >= len(program.ops)

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
        pc, ops = state.pc, self._main.ops
        return pc < len(ops) and ops[pc].until != "any"

    def upcoming(self, state: PlayerState, seed: int, shown: int = 0) -> tuple[PlayerState, Emission] | None:
        """What comes after the move that is played; None within a move."""
        if state.waits:
            state = msgspec.structs.replace(
                state,
                pc=state.pc if state.pc == self._main.tail else state.pc + 1,
                step=0,
                targets=(),
                waits=False,
                named=False,
                begun=0,
            )
        elif state.step:
            return None
        return self.advance(state, None, seed, shown)

    def is_over(self, state: PlayerState, stimulus: Stimulus) -> bool:
        """Whether a request gets past the move that is played."""
        ops = self._main.ops
        if not state.waits or state.pc >= len(ops):
            return True
        named = state.named or self._names(stimulus.text, state.attempted, state.asked)
        until: Until = ops[state.pc].until
        return until == "any" or self._passes(until, stimulus, named)

    def has_ended(self, state: PlayerState) -> bool:
        """Whether the script has nothing more to say, and the answer was not its own."""
        return state.pc >= len(self._main.ops)

    def happens_at(self, state: PlayerState) -> bool:
        """Whether what a state stands at is a fault or an event."""
        ops = self._main.ops
        return state.pc < len(ops) and ops[state.pc].happens

    def _names(self, text: str, attempted: int, asked: int) -> bool:
        every = attempted & asked == asked
        return any(
            (every or not attempted & bit) and occurs_whole(item, text)
            for item, bit in self._items
            if asked & bit
        )

    def _passes(self, until: Until, stimulus: Stimulus | None, named: bool) -> bool:
        if stimulus is None:
            return False
        match until:
            case "changed":
                return stimulus.changed
            case "shortened":
                return stimulus.shortened
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


def _spare(
    spared: tuple[tuple[int, int], ...], pc: int, steps: int
) -> tuple[tuple[tuple[int, int], ...], int]:
    """What is left to pass over, and the step at which a fault or event of so many steps begins."""
    met = dict(spared)
    count = met.pop(pc, 0)
    if count > steps:
        met[pc] = count - steps
    return tuple(met.items()), min(count, steps)


def _set(values: tuple[int, ...], slot: int, value: int) -> tuple[int, ...]:
    return (*values[:slot], value, *values[slot + 1 :])
