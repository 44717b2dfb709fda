"""One step of an exploration: a turn put to the real loop functions, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import msgspec

from evalkit.core.decisions import Action, End, RunTools, Verdict
from evalkit.core.turns import Call, Turn
from evalkit.harnesses import loop as reference
from evalkit.harnesses.driver import StrategyFailed
from evalkit.harnesses.loop import Loop, State
from evalkit.search.ground import Ground, Reading
from evalkit.search.memory import ACTED, COUNTERS, REPORTED, LoopStates, reads_turn
from evalkit.search.properties import CUT_OFF, DUPLICATE, ENDLESS, RULES, Needs, stretch_caps
from evalkit.strategies.conditions import Condition
from evalkit.strategies.folds import Ran
from evalkit.strategies.view import Instruments, View

#: What has to be kept of the loop's state for each group of properties, beyond folds and loop guard.
KEEPS: dict[Needs, frozenset[str]] = {
    "safety": frozenset(),
    "reports": REPORTED,
    "nudges": ACTED | {"nudges", "nudged"},
    "stretches": frozenset({"resends", "cut_offs", "refusals"}),
}
EVERYTHING = COUNTERS | REPORTED | ACTED

_replace = msgspec.structs.replace
#: So many remembered steps and verdicts are kept; then they are forgotten and worked out again.
KEPT = 500_000


class Rules(msgspec.Struct, frozen=True):
    """The two functions of a loop; the reference loop's own, or changed ones."""

    on_turn: Callable[[Loop, State, Turn, Instruments], tuple[State, Action, Verdict | None]] = (
        reference.on_turn
    )
    on_results: Callable[[Loop, State, tuple[Ran, ...]], State] = reference.on_results


REFERENCE = Rules()


class Played(dict[int, int]):
    """A move with these of its calls run: what it makes of each world, worked out when it is asked.

    ``broken`` are the properties that running the calls breaks. ``varies`` says that the answers to them
    depend on the world; ``ran`` are the answers in the first world.
    """

    def __init__(self, ground: Ground, place: int, calls: tuple[Call, ...]) -> None:
        super().__init__()
        self._ground, self._place, self.calls = ground, place, calls
        first, last = ground.play(place, 0, calls), ground.play(place, ground.all, calls)
        self.ran = first.ran
        self.varies = first.ran != last.ran
        self.broken = CUT_OFF * first.cut_off | DUPLICATE * (first.surplus or last.surplus)
        self._rules: dict[Action, int] = {}

    def __missing__(self, world: int) -> int:
        after = self[world] = self._ground.play(self._place, world, self.calls).world
        return after

    def answers(self, world: int) -> tuple[Ran, ...]:
        """The calls that were run in a world."""
        return self._ground.play(self._place, world, self.calls).ran if self.varies else self.ran

    def rules(self, action: Action) -> int:
        """The bit of broken request rules where the request that carries out an action breaks one."""
        known = self._rules.get(action)
        if known is None:
            known = RULES * self._ground.breaks_rules(self._place, action, self.calls)
            self._rules[action] = known
        return known


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """What a move leads to from a state of the loop.

    ``fires`` names the limit or cap that was let fire. ``ending`` is the kind of the ending, None where the
    run goes on in loop state ``loop``; ``reported`` the items that its report names, None without a report.
    ``broken`` are the properties that the step itself breaks, ``worlds`` what becomes of the world.
    """

    fires: str
    action: Action
    loop: int
    ending: str | None
    reported: int | None
    broken: int
    ran: tuple[Ran, ...]
    worlds: Played


class _Remembered(Condition):
    """A finite condition that is asked once for each thing it can read, however many moves lead there."""

    def __init__(self, inner: Condition) -> None:
        self._inner = inner
        self.offers, self.folds = inner.offers, inner.folds
        self.random, self.finite = inner.random, inner.finite
        self._turn = reads_turn(inner)
        self._verdicts: dict[Hashable, Verdict | None] = {}

    def __call__(self, view: View) -> Verdict:
        reading: Any = view.instruments
        key: Hashable = tuple(view.memory.values())
        if self._turn:
            key = (key, id(view.turn))  # the turns of a ground live as long as it does
        verdicts = self._verdicts
        if key in verdicts:
            known = verdicts[key]
            if known is not None:
                return known
            reading.read = True
            known = verdicts.get((key, reading.world))
            if known is not None:
                return known
        before, reading.read = reading.read, False
        verdict = self._inner(view)
        if len(verdicts) > KEPT:
            verdicts.clear()
        if reading.read:
            verdicts[key] = None
            verdicts[key, reading.world] = verdict
        else:
            verdicts[key] = verdict
        reading.read = reading.read or before
        return verdict


class _Plan(msgspec.Struct, frozen=True, gc=False):
    """A move from a loop state: its calls, the state once they ran, and outcomes that no world changes.

    ``state`` is None where the answers depend on the world.
    """

    played: Played
    calls: bool
    state: State | None
    outcomes: tuple[Outcome, ...] | None = None


class Stepper:
    """Steps of one ground under one loop, kept where they do not depend on the world.

    ``keep`` are fields of the loop's state beyond folds and guard. Counters that are not kept start at zero
    in every step, and where a step moves one the step is taken again with the counter at its cap; the limit
    is tried everywhere unless ``turns`` is kept. ``seeds`` stand for all that a seeded error may do.
    """

    def __init__(
        self,
        ground: Ground,
        rules: Rules = REFERENCE,
        keep: frozenset[str] = frozenset(),
        seeds: tuple[int, ...] = (0,),
    ) -> None:
        strategy, task = ground.strategy, ground.task
        if strategy.loop_guard:
            keep |= ACTED
        self.ground = ground
        self.keep = keep
        self._on_turn, self._on_results = rules.on_turn, rules.on_results
        if strategy.done_when.finite and not strategy.random:
            strategy = strategy.but(done_when=_Remembered(strategy.done_when))
        self._loops = [Loop(strategy, msgspec.structs.replace(task, seed=seed)) for seed in seeds]
        self.loop = self._loops[0]
        self.states = LoopStates(strategy, task, keep)
        self._reading = Reading(ground)
        self._caps = self._caps_of()
        self._limits = self.loop.limits
        # Where turns are counted exactly their limit comes by itself; tokens and money never are.
        self._sets_turns = self._limits.turns is not None and "turns" not in keep
        costs = self._limits.tokens is not None or self._limits.usd is not None
        self._tries_limit = self._sets_turns or costs
        self._moves = len(ground.moves)
        self._plans: dict[int, _Plan] = {}
        self._played: dict[tuple[int, tuple[Call, ...]], Played] = {}

    def _caps_of(self) -> tuple[tuple[str, int], ...]:
        """Counters that are not kept, with their caps."""
        strategy = self.loop.strategy
        caps = stretch_caps(self.loop)
        counters = {
            "nudges": strategy.nudges,
            "nudged": strategy.nudge_budget,
            "resends": caps.get("pause"),
            "cut_offs": caps.get("cut_off"),
            "refusals": caps.get("refusal"),
        }
        return tuple((name, cap) for name, cap in counters.items() if cap and name not in self.keep)

    def outcomes(self, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        """All that a move can lead to from a loop state in a world; StrategyFailed if a condition raises."""
        try:
            return self._outcomes(number, place, world)
        except Exception as error:
            move = self.ground.moves[place].name
            raise StrategyFailed(f"when the model {move}: {type(error).__name__}: {error}") from error

    def _outcomes(self, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        if len(self._loops) > 1:
            return tuple(
                outcome
                for loop in self._loops
                for outcome in self._taken(
                    loop, self._planned(loop, number, place, world), number, place, world
                )
            )
        key = number * self._moves + place
        plan = self._plans.get(key)
        if plan is not None:
            return plan.outcomes or self._taken(self.loop, plan, number, place, world)
        if len(self._plans) > KEPT:
            self._plans.clear()
        self._reading.read = False
        plan = self._planned(self.loop, number, place, world)
        found = self._taken(self.loop, plan, number, place, world)
        if not self._reading.read and plan.state is not None:
            plan = msgspec.structs.replace(plan, outcomes=found)
        self._plans[key] = plan
        return found

    # Taking a step

    def _play(self, place: int, calls: tuple[Call, ...]) -> Played:
        key = (place, calls)
        played = self._played.get(key)
        if played is None:
            played = self._played[key] = Played(self.ground, place, calls)
        return played

    def _planned(self, loop: Loop, number: int, place: int, world: int) -> _Plan:
        """The part of a step that needs no world, if it asks for tools."""
        turn, reading = self.ground.turns[place], self._reading
        played = self._play(place, ())
        reading.world, reading.last_turn = played[world], turn
        state = self.states.states[number]
        reached, action, _ = self._on_turn(loop, state, turn, reading)
        if type(action) is not RunTools:
            return _Plan(played, False, state)
        played = self._play(place, action.calls)
        if played.varies:
            return _Plan(played, True, None)
        return _Plan(played, True, self._on_results(loop, reached, played.ran))

    def _taken(self, loop: Loop, plan: _Plan, number: int, place: int, world: int) -> tuple[Outcome, ...]:
        turn, reading, played = self.ground.turns[place], self._reading, plan.played
        before = self.states.states[number]
        after, limits = played[world], self._limits
        state = plan.state
        if state is None:
            state = self._after_tools(loop, before, place, played, world)
        reading.world, reading.last_turn = after, turn
        found: list[Outcome] = []
        if not self._sets_turns or limits.turns != 1:
            reached, outcome = self._outcome(loop, state, turn, played, "", world)
            found.append(outcome)
            for name, cap in self._caps:
                if getattr(reached, name) > getattr(before, name):
                    full = _replace(before, **{name: cap})
                    if plan.calls:
                        full = self._after_tools(loop, full, place, played, world)
                    found.append(self._outcome(loop, full, turn, played, name, world)[1])
        if self._tries_limit:
            found.append(self._at_limit(loop, state, turn, plan, world))
        return tuple(found)

    def _after_tools(self, loop: Loop, state: State, place: int, played: Played, world: int) -> State:
        """A state taken through a turn that asks for tools, to where they have run."""
        reading = self._reading
        reading.world = self._play(place, ())[world]
        reached, _, _ = self._on_turn(loop, state, self.ground.turns[place], reading)
        reading.world = played[world]
        return self._on_results(loop, reached, played.answers(world))

    def _at_limit(self, loop: Loop, state: State, turn: Turn, plan: _Plan, world: int) -> Outcome:
        """The step at which the limit is reached; a run that goes on after it is endless."""
        limits, reading = self._limits, self._reading
        if self._sets_turns and limits.turns is not None:
            # Once tools have run the turn is counted already.
            turns = limits.turns if plan.calls else limits.turns - 1
            state = _replace(state, turns=turns)
        elif limits.tokens is not None:
            reading.tokens = limits.tokens
        else:
            reading.usd = limits.usd or 0.0
        outcome = self._outcome(loop, state, turn, plan.played, "limit", world)[1]
        reading.tokens, reading.usd = 0, 0.0
        if outcome.ending is None:
            return msgspec.structs.replace(outcome, broken=outcome.broken | ENDLESS)
        return outcome

    def _outcome(
        self, loop: Loop, state: State, turn: Turn, played: Played, fires: str, world: int
    ) -> tuple[State, Outcome]:
        reached, action, _ = self._on_turn(loop, state, turn, self._reading)
        if type(action) is End:
            report = action.ending.report.outstanding
            reported = None if report is None else self.ground.task.items_of(report)
            return reached, Outcome(fires, action, 0, action.ending.kind, reported, played.broken, (), played)
        ran = played.ran if not played.varies else played.answers(world)
        broken = played.broken | played.rules(action)
        return reached, Outcome(fires, action, self.states.number(reached), None, None, broken, ran, played)
