"""One step of an exploration: a turn put to the real loop functions, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from operator import attrgetter
from typing import Any

import msgspec

from evalkit.core.channels import is_decision
from evalkit.core.decisions import Action, End, RunTools, Send, Verdict
from evalkit.core.turns import Call, Turn
from evalkit.drivers.in_process import StrategyFailed
from evalkit.loop import transitions as reference
from evalkit.loop.state import Loop, State
from evalkit.loop.transitions import on_event
from evalkit.search.proofs.environment import Environment, Reading
from evalkit.search.proofs.purity import Noticed, watched
from evalkit.search.proofs.symmetry import ACTED, COUNTERS, REPORTED, LoopStates, reads_turn
from evalkit.search.proofs.witnesses import turn_and_action
from evalkit.search.properties import CUT_OFF, DUPLICATE, ENDLESS, RULES, Needs, stretch_caps
from evalkit.strategies.condition import Condition
from evalkit.strategies.folds import Ran
from evalkit.strategies.view import Instruments, View
from evalkit.worker.encoding import dump_state, load_state

#: What has to be kept of the loop's state for each group of properties, beyond folds and loop guard.
KEEPS: dict[Needs, frozenset[str]] = {
    "safety": frozenset(),
    "reports": REPORTED,
    "nudges": ACTED | {"nudges", "nudges_total"},
    "stretches": frozenset({"resends", "cut_offs", "overflows", "refusals"}),
}
EVERYTHING = COUNTERS | REPORTED | ACTED

_replace = msgspec.structs.replace
_GO_ON = Send()
#: So many remembered steps and verdicts are kept; then they are forgotten and worked out again.
KEPT = 500_000


class Rules(msgspec.Struct, frozen=True):
    """The two functions of a loop; the reference loop's own, or changed ones."""

    on_turn: Callable[[Loop, State, Turn, Instruments], tuple[State, Action, Verdict | None]] = (
        reference.on_turn
    )
    on_results: Callable[[Loop, State, tuple[Ran, ...]], State] = reference.on_results


REFERENCE = Rules()


class MoveEffects(dict[int, int]):
    """A move with these of its calls run: what it makes of each world, worked out when it is asked.

    ``broken`` are the properties that running the calls breaks. ``varies`` says that the answers to them
    depend on the world; ``ran`` are the answers in the first world.
    """

    def __init__(self, environment: Environment, place: int, calls: tuple[Call, ...]) -> None:
        super().__init__()
        self._environment, self._place, self.calls = environment, place, calls
        first, last = environment.play(place, 0, calls), environment.play(place, environment.all, calls)
        self.ran = first.ran
        self.varies = first.ran != last.ran
        self.broken = CUT_OFF * first.cut_off | DUPLICATE * (first.surplus or last.surplus)
        self._rules: dict[Action, int] = {}

    def __missing__(self, world: int) -> int:
        after = self[world] = self._environment.play(self._place, world, self.calls).world
        return after

    def answers(self, world: int) -> tuple[Ran, ...]:
        """The calls that were run in a world."""
        return self._environment.play(self._place, world, self.calls).ran if self.varies else self.ran

    def rules(self, action: Action) -> int:
        """The bit of broken request rules where the request that carries out an action breaks one."""
        known = self._rules.get(action)
        if known is None:
            known = RULES * self._environment.breaks_rules(self._place, action, self.calls)
            self._rules[action] = known
        return known


class Unchanged(dict[int, int]):
    """What something from outside makes of each world: nothing."""

    def __missing__(self, world: int) -> int:
        return world


_UNCHANGED = Unchanged()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a move leads to from a state of the loop.

    ``fires`` names the limit or cap that was let fire. ``ending`` is the kind of the ending, None where the
    run goes on. ``loop`` is the loop's state then, -1 where it is not kept: an ending that nothing follows.
    ``reported`` are the items that an ending's report names, None without a report. ``broken`` are the
    properties that the step itself breaks, ``worlds`` what becomes of the world.
    """

    fires: str
    action: Action
    loop: int
    ending: str | None
    reported: int | None
    broken: int
    ran: tuple[Ran, ...]
    worlds: MoveEffects | Unchanged


class _Remembered(Condition):
    """A finite condition that is asked once for each thing it can read, however many moves lead there."""

    def __init__(self, inner: Condition) -> None:
        self.part = inner
        self.offers, self.folds = inner.offers, inner.folds
        self.random, self.finite = inner.random, inner.finite
        self._turn = reads_turn(inner)
        #: A verdict, or where the instruments were read the verdict in each world.
        self._verdicts: dict[Hashable, Verdict | dict[int, Verdict]] = {}
        self._kept = 0

    def __call__(self, view: View) -> Verdict:
        reading: Any = view.instruments
        key: Hashable = tuple(view.memory.values())
        if self._turn:
            key = (key, id(view.turn))  # the turns of a environment live as long as it does
        known = self._verdicts.get(key)
        if type(known) is dict:
            reading.read = True
            verdict = known.get(reading.world)
            if verdict is not None:
                return verdict
        elif known is not None:
            return known  # type: ignore[return-value]
        before, reading.read = reading.read, False
        verdict = self.part(view)
        self._kept += 1
        if self._kept > KEPT:
            self._verdicts.clear()
            self._kept = 1
        if reading.read:
            worlds = self._verdicts.setdefault(key, {})
            assert type(worlds) is dict
            worlds[reading.world] = verdict
        else:
            self._verdicts[key] = verdict
        reading.read = reading.read or before
        return verdict


class _Plan(msgspec.Struct, frozen=True, gc=False):
    """A move from a loop state: its calls, the state once they ran, and outcomes that no world changes.

    ``state`` is None where the answers depend on the world; ``limited`` is that state at the limit of turns.
    ``free`` are the outcomes short of the limit, where no world changes those.
    """

    played: MoveEffects
    calls: bool
    state: State | None
    limited: State | None = None
    free: tuple[Outcome, ...] | None = None
    outcomes: tuple[Outcome, ...] | None = None


class Stepper:
    """Steps of one environment under one loop, kept where they do not depend on the world.

    ``keep`` are fields of the loop's state beyond folds and guard. Counters that are not kept start at zero
    in every step, and where a step moves one the step is taken again with the counter at its cap; the limit
    is tried everywhere unless ``turns`` is kept. ``seeds`` stand for all that a seeded error may do.
    ``noticed`` takes down what conditions and folds of one's own read.
    """

    def __init__(
        self,
        environment: Environment,
        rules: Rules = REFERENCE,
        keep: frozenset[str] = frozenset(),
        seeds: tuple[int, ...] = (0,),
        noticed: Noticed | None = None,
    ) -> None:
        strategy, task = environment.strategy, environment.task
        if noticed is not None:
            strategy = watched(strategy, noticed)
        if strategy.loop_guard:
            keep |= ACTED
        self.environment = environment
        self.keep = keep
        self._on_turn, self._on_results = rules.on_turn, rules.on_results
        if strategy.done_when.finite and not strategy.random:
            strategy = strategy.but(done_when=_Remembered(strategy.done_when))
        self._loops = [Loop(strategy, msgspec.structs.replace(task, seed=seed)) for seed in seeds]
        self.loop = self._loops[0]
        self.states = LoopStates(strategy, task, keep)
        self._reading = Reading(environment)
        self._caps = self._caps_of()
        names = [name for name, _ in self._caps]
        self._counters: Callable[[State], Any] = attrgetter(*names) if names else lambda state: None
        # What a report names is worked out only where what it names is kept.
        self._reports = bool(keep & REPORTED)
        self._limits = self.loop.limits
        # Where turns are counted exactly their limit comes by itself; tokens and money never are.
        self._sets_turns = self._limits.turns is not None and "turns" not in keep
        costs = self._limits.tokens is not None or self._limits.usd is not None
        self._tries_limit = self._sets_turns or costs
        self._moves = len(environment.moves)
        self._events = environment.events
        self._happens = [move.happens for move in environment.moves]
        #: Whether a run that has ended may go on, and what may happen then.
        self.after_end = tuple(place for place, kind in enumerate(self._happens) if kind == "ended")
        self._leaves = environment.leaves >= 0
        #: What the loop made of turns, in words.
        self.told: set[str] = set()
        self._plans: dict[int, _Plan] = {}
        self._played: dict[tuple[int, tuple[Call, ...]], MoveEffects] = {}

    def _caps_of(self) -> tuple[tuple[str, int], ...]:
        """Counters that are not kept, with their caps."""
        strategy = self.loop.strategy
        caps = stretch_caps(self.loop)
        counters = {
            "nudges": strategy.nudges,
            "nudges_total": strategy.nudge_budget,
            "resends": caps.get("pause"),
            "cut_offs": caps.get("cut_off"),
            "overflows": caps.get("overflow"),
            "refusals": caps.get("refusal"),
        }
        return tuple((name, cap) for name, cap in counters.items() if cap and name not in self.keep)

    def outcomes(self, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        """All that a move can lead to from a loop state in a world; StrategyFailed if a condition raises."""
        try:
            if self._happens[place]:
                return self._from_outside(number, place)
            plan = self._plans.get(number * self._moves + place)
            if plan is not None:
                return plan.outcomes or self._taken(self.loop, plan, number, place, world)
            return self._first_outcomes(number, place, world)
        except Exception as error:
            move = self.environment.moves[place].name
            raise StrategyFailed(f"when the model {move}: {type(error).__name__}: {error}") from error

    def _first_outcomes(self, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        """The same where no plan is kept; with several seeds none ever is."""
        if len(self._loops) > 1:
            return tuple(
                outcome
                for loop in self._loops
                for outcome in self._taken(
                    loop, self._planned(loop, number, place, world), number, place, world
                )
            )
        if len(self._plans) > KEPT:
            self._plans.clear()
        reading = self._reading
        reading.read = False
        plan = self._planned(self.loop, number, place, world)
        if plan.state is None:
            found = self._taken(self.loop, plan, number, place, world)
        else:
            found = free = self._short_of_limit(self.loop, plan, plan.state, number, place, world)
            kept = None if reading.read else free
            if self._tries_limit and plan.limited is not None:
                found = (*free, self._at_limit(self.loop, plan.limited, place, plan, world))
            plan = _replace(plan, free=kept, outcomes=None if reading.read else found)
        self._plans[number * self._moves + place] = plan
        return found

    def _from_outside(self, number: int, place: int) -> tuple[Outcome, ...]:
        """What something from outside leads to; nothing where it cannot happen or changes nothing."""
        state, event, over = self.states.states[number], self._events[place], number in self.states.over
        if over != (self._happens[place] == "ended") or self._happens[place] == "leaves":
            return ()
        if over and "turns" in self.keep and self._limits.reached(state.turns, 0, 0.0):
            return ()
        if event is None:
            new = load_state(dump_state(state))
        else:
            new = on_event(self.loop, state, event, self._reading)
        return (Outcome("", _GO_ON, self.states.number(new), None, None, 0, (), _UNCHANGED),)

    # Taking a step

    def _play(self, place: int, calls: tuple[Call, ...]) -> MoveEffects:
        key = (place, calls)
        played = self._played.get(key)
        if played is None:
            played = self._played[key] = MoveEffects(self.environment, place, calls)
        return played

    def _planned(self, loop: Loop, number: int, place: int, world: int) -> _Plan:
        """The part of a step that needs no world, if it asks for tools."""
        turn, reading = self.environment.turns[place], self._reading
        played = self._play(place, ())
        reading.world, reading.last_turn = played[world], turn
        state = self.states.states[number]
        reached, action, _ = self._on_turn(loop, state, turn, reading)
        if type(action) is not RunTools:
            return _Plan(played, False, state, self._limited(state, counted=False))
        played = self._play(place, action.calls)
        if played.varies:
            return _Plan(played, True, None)
        state = self._on_results(loop, reached, played.ran)
        return _Plan(played, True, state, self._limited(state, counted=True))

    def _limited(self, state: State, *, counted: bool) -> State:
        """A state in which a turn is the last one; once tools have run the turn is counted already."""
        if not self._sets_turns or self._limits.turns is None:
            return state
        return _replace(state, turns=self._limits.turns if counted else self._limits.turns - 1)

    def _taken(self, loop: Loop, plan: _Plan, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        state, limited = plan.state, plan.limited
        if state is None or limited is None:
            state = self._after_tools(loop, self.states.states[number], place, plan.played, world)
            limited = self._limited(state, counted=True)
        free = plan.free
        if free is None:
            free = self._short_of_limit(loop, plan, state, number, place, world)
        if not self._tries_limit:
            return free
        return (*free, self._at_limit(loop, limited, place, plan, world))

    def _short_of_limit(
        self, loop: Loop, plan: _Plan, state: State, number: int, place: int, world: int
    ) -> tuple[Outcome, ...]:
        """What a move leads to while no limit of turns, tokens or money is reached."""
        if self._sets_turns and self._limits.turns == 1:
            return ()
        turn, reading, played = self.environment.turns[place], self._reading, plan.played
        before = self.states.states[number]
        reading.world, reading.last_turn = played[world], turn
        reached, outcome = self._outcome(loop, state, turn, played, "", world)
        found = [outcome]
        if self._leaves and is_decision(turn, loop.offered):
            # That the user has left matters at the next end of turn alone, so it is tried at each.
            gone = self._outcome(loop, _replace(state, user_gone=True), turn, played, "leaves", world)[1]
            found.append(_replace(gone, loop=-1))
        if self._counters(reached) == self._counters(before):
            return tuple(found)
        for name, cap in self._caps:
            if getattr(reached, name) > getattr(before, name):
                full = _replace(before, **{name: cap})
                if plan.calls:
                    full = self._after_tools(loop, full, place, played, world)
                found.append(self._outcome(loop, full, turn, played, name, world)[1])
        return tuple(found)

    def _after_tools(self, loop: Loop, state: State, place: int, played: MoveEffects, world: int) -> State:
        """A state taken through a turn that asks for tools, to where they have run."""
        reading = self._reading
        reading.world = self._play(place, ())[world]
        reached, _, _ = self._on_turn(loop, state, self.environment.turns[place], reading)
        reading.world = played[world]
        return self._on_results(loop, reached, played.answers(world))

    def _at_limit(self, loop: Loop, state: State, place: int, plan: _Plan, world: int) -> Outcome:
        """The step at which the limit is reached; a run that goes on after it is endless."""
        turn, limits, reading = self.environment.turns[place], self._limits, self._reading
        reading.world, reading.last_turn = plan.played[world], turn
        if not self._sets_turns:
            if limits.tokens is not None:
                reading.tokens = limits.tokens
            else:
                reading.usd = limits.usd or 0.0
        outcome = self._outcome(loop, state, turn, plan.played, "limit", world)[1]
        reading.tokens, reading.usd = 0, 0.0
        if outcome.ending is None:
            return msgspec.structs.replace(outcome, broken=outcome.broken | ENDLESS)
        return outcome

    def _outcome(
        self, loop: Loop, state: State, turn: Turn, played: MoveEffects, fires: str, world: int
    ) -> tuple[State, Outcome]:
        reached, action, _ = self._on_turn(loop, state, turn, self._reading)
        self.told.add(turn_and_action(turn, action))
        ran = played.ran if not played.varies else played.answers(world)
        if type(action) is End:
            report = action.ending.report.outstanding if self._reports else None
            reported = None if report is None else self.environment.task.items_of(report)
            # The user may write once more, unless a limit is what ended the run.
            goes_on = self.after_end and fires != "limit"
            after = self.states.number(reached, over=True) if goes_on else -1
            kind = action.ending.kind
            return reached, Outcome(fires, action, after, kind, reported, played.broken, ran, played)
        broken = played.broken | played.rules(action)
        return reached, Outcome(fires, action, self.states.number(reached), None, None, broken, ran, played)
