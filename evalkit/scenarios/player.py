"""The scripted model: a state machine over moves, its state explicit, copyable and hashable."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

import msgspec

from evalkit.core.requests import Stimulus
from evalkit.core.tasks import Offered, occurs_whole
from evalkit.scenarios.emissions import Child, Emission, Script, emission
from evalkit.scenarios.moves import (
    AnyMove,
    ApproveMove,
    CompactMove,
    CrashMove,
    DelegateMove,
    EitherMove,
    EmptyMove,
    FinishMove,
    RefuseMove,
    RepeatMove,
    SayMove,
    ThinkMove,
    TurnMove,
    Until,
    WorkMove,
)
from evalkit.scenarios.program import (
    ENDLESS,
    Choose,
    Jump,
    Loop,
    LoopEnd,
    Play,
    PlayerState,
    Program,
    _replace,
    choice,
)
from evalkit.scenarios.scenario import Scenario, walk
from evalkit.worlds import World


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
        #: Whether the model hands work to child agents.
        self.delegates = any(isinstance(move, DelegateMove) for move in every)
        #: Whether it asks more of a stage than turns.
        self.unusual = bool(scenario.events)
        #: Whether what a request shows as done matters: to the model, or for a summary.
        self.reads = any(isinstance(move, WorkMove) and move.work == "unseen" for move in every)
        self.unusual = self.unusual or self.reads
        self.shows = self.reads or any(isinstance(move, CompactMove) for move in every)
        self._items = tuple((item, world.vocabulary[item]) for item in world.spec.items)
        self._loops = 0
        self._choices = 0
        self._chooses: dict[int, Choose] = {}
        self._main = self._program(scenario.moves, "")
        ops = self._main.ops
        #: The loops around each instruction, the outermost first, and where they start.
        self._around = tuple(
            tuple((start, op) for start, op in enumerate(ops) if type(op) is Loop and start < pc < op.end)
            for pc in range(len(ops) + 1)
        )
        last = scenario.moves[-1]
        if isinstance(last, SayMove | ThinkMove | EmptyMove | FinishMove | RefuseMove):
            self._main.tail = len(self._main.ops) - 1
        #: What the model says when its script, or a child agent's, is over.
        self.over = emission(self.script.nothing_further(), "nothing further", "end", {}, offered)
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
                ops.append(Play(move, path, self.script, self._children(move, path)))

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
        times = ENDLESS if move.repeat.times == "forever" else move.repeat.times
        start = len(ops)
        ops.append(None)
        self._compile(move.repeat.do, f"{path}.", ops)
        events = any(type(op) is Play and op.event for op in ops[start + 1 :])
        ops.append(LoopEnd(slot, times, start + 1, times == ENDLESS and events))
        ops[start] = Loop(slot, times, len(ops))

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
                    if type(op) is Play:
                        op.possible = False
            jumps.append(len(ops))
            ops.append(None)
        end = len(ops)
        for jump in jumps:
            ops[jump] = Jump(end)
        chooses = Choose(slot, path, tuple(bounds), tuple(targets), end)
        ops[at] = self._chooses[slot] = chooses

    def samples(self) -> tuple[Emission, ...]:
        """One delivery of each move, for what depends on a turn's shape alone."""
        found = []
        every = self.script.world.bits(self.script.world.spec.items)
        for op in self._main.ops:
            if type(op) is Play:
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
                return kept, self.over
            op = ops[pc]
            if type(op) is Play:
                if begins:
                    if spared and op.happens:
                        steps = op.steps(())
                        spared, step = spare(spared, pc, steps)
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
            if type(op) is Loop:
                loops = _set(loops, op.slot, 0)
                pc += 1
            elif type(op) is LoopEnd:
                idle += 1
                count = loops[op.slot] + 1
                # A whole pass without a turn: go on only where another may have one.
                barren = idle > self._loops and not self._can_play(ops, op.start, pc, attempted, asked, shown)
                # Events answer nothing: for ever they would come within one request.
                barren = barren or (
                    op.eventful and not self._can_answer(ops, op.start, pc, attempted, asked, shown)
                )
                if count < op.times and not barren:
                    if op.times != ENDLESS:
                        loops = _set(loops, op.slot, count)
                    pc = op.start
                else:
                    pc += 1
            elif type(op) is Choose:
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
    def _can_play(ops: list[Any], start: int, end: int, attempted: int, asked: int, shown: int) -> bool:
        """Whether any move between two places has a turn, or is an event, that a choice can come to."""
        return any(
            type(op) is Play and op.possible and op.begin(attempted, asked, shown) is not None
            for op in ops[start:end]
        )

    @staticmethod
    def _can_answer(ops: list[Any], start: int, end: int, attempted: int, asked: int, shown: int) -> bool:
        """Whether any move between two places, events aside, has a turn that a choice can come to."""
        return any(
            type(op) is Play
            and not op.event
            and op.possible
            and op.begin(attempted, asked, shown) is not None
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
            if loop.times == ENDLESS:
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


def spare(
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
