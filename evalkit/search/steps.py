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
from evalkit.search.properties import CUT_OFF, DUPLICATE, ENDLESS, RULES, Needs, has_limit, stretch_caps
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
KEPT = 2_000_000


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
    """A finite condition that is asked once for each thing it can read, however many moves lead there.

    ``asked`` are the moments it was asked at since that set was emptied, ``worldly`` says whether an answer
    depended on the world. What it reads of the instruments is not counted as read by whoever asks it.
    """

    def __init__(self, inner: Condition) -> None:
        self._inner = inner
        self.offers, self.folds = inner.offers, inner.folds
        self.random, self.finite = inner.random, inner.finite
        self._turn = reads_turn(inner)
        self._verdicts: dict[Hashable, Verdict | None] = {}
        self._equal: dict[Verdict, Verdict] = {}
        self.asked: set[Hashable] = set()
        self.worldly = False

    def __call__(self, view: View) -> Verdict:
        reading: Any = view.instruments
        key: Hashable = tuple(view.memory.values())
        if self._turn:
            key = (key, id(view.turn))  # the turns of a ground live as long as it does
        self.asked.add(key)
        verdicts = self._verdicts
        if key in verdicts:
            known = verdicts[key]
            if known is not None:
                return known
            self.worldly = True
            known = verdicts.get((key, reading.world))
            if known is not None:
                return known
        before, reading.read = reading.read, False
        verdict = self._inner(view)
        verdict = self._equal.setdefault(verdict, verdict)
        if len(verdicts) > KEPT:
            verdicts.clear()
        if reading.read:
            self.worldly = True
            verdicts[key] = None
            verdicts[key, reading.world] = verdict
        else:
            verdicts[key] = verdict
        reading.read = before
        return verdict

    def known(self, key: Hashable, world: int) -> Verdict | None:
        """What it says at a moment in a world, if it was asked; equal verdicts are one object."""
        return self._verdicts.get((key, world))


class _Plan:
    """A move from a loop state: what it needs no world for, and its outcomes as far as they are known.

    ``state`` is the loop's once the calls have run, None where that depends on the world. ``outcomes`` are
    those that no world changes. Where the world changes them through ``done_when`` alone, asked at the moment
    ``key``, ``by_verdict`` has them for each verdict.
    """

    __slots__ = ("by_verdict", "calls", "key", "outcomes", "played", "state")

    def __init__(self, played: Played, calls: bool, state: State | None) -> None:
        self.played = played
        self.calls = calls
        self.state = state
        self.outcomes: tuple[Outcome, ...] | None = None
        self.key: Hashable = None
        self.by_verdict: dict[int, tuple[Outcome, ...]] | None = None


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
        self._remembered: _Remembered | None = None
        if strategy.done_when.finite and not strategy.random:
            self._remembered = _Remembered(strategy.done_when)
            strategy = strategy.but(done_when=self._remembered)
        self._loops = [Loop(strategy, msgspec.structs.replace(task, seed=seed)) for seed in seeds]
        self.loop = self._loops[0]
        self.states = LoopStates(strategy, task, keep)
        self._reading = Reading(ground)
        self._caps = self._caps_of()
        self._limits = self.loop.limits
        self._tries_limit = has_limit(self.loop) and "turns" not in keep
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
        if plan is None:
            if len(self._plans) > KEPT:
                self._plans.clear()
            plan, found = self._first(number, place, world)
            self._plans[key] = plan
            return found
        if plan.outcomes is not None:
            return plan.outcomes
        if plan.by_verdict is None:
            return self._taken(self.loop, plan, number, place, world)
        remembered = self._remembered
        assert remembered is not None
        verdict = remembered.known(plan.key, plan.played[world])
        if verdict is not None:
            known = plan.by_verdict.get(id(verdict))
            if known is not None:
                return known
        found = self._taken(self.loop, plan, number, place, world)
        verdict = remembered.known(plan.key, plan.played[world])
        if verdict is not None:
            plan.by_verdict[id(verdict)] = found
        return found

    def _first(self, number: int, place: int, world: int) -> tuple[_Plan, tuple[Outcome, ...]]:
        """A step taken for the first time, and what it says of other worlds."""
        reading, remembered = self._reading, self._remembered
        reading.read = False
        if remembered is not None:
            remembered.asked.clear()
            remembered.worldly = False
        plan = self._planned(self.loop, number, place, world)
        found = self._taken(self.loop, plan, number, place, world)
        if reading.read or plan.state is None:
            return plan, found
        if remembered is None or not remembered.worldly:
            plan.outcomes = found
        elif len(remembered.asked) == 1:
            (plan.key,) = remembered.asked
            verdict = remembered.known(plan.key, plan.played[world])
            plan.by_verdict = {} if verdict is None else {id(verdict): found}
        return plan, found

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
        if not self._tries_limit or limits.turns != 1:
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
        if limits.turns is not None:
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
