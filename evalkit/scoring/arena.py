"""Everything that episodes of one scenario share: world, player, truth, and the ideal harness's episode."""

from __future__ import annotations

from contextlib import suppress

import msgspec

from evalkit.core import thresholds
from evalkit.core.decisions import Action, Ending
from evalkit.core.events import with_words
from evalkit.core.requests import Request, cannot_pass
from evalkit.core.tasks import Offered, Task
from evalkit.core.trace import Trace
from evalkit.core.turns import Turn, count_tokens
from evalkit.drivers.in_process import Watcher, drive, next_request, run_call
from evalkit.scenarios.player import Player
from evalkit.scenarios.scenario import Scenario, make_task
from evalkit.scoring.ideal import FAILED, IdealMind
from evalkit.scoring.reasons import accepted_outcomes
from evalkit.scoring.seed_choices import Chances, Visits
from evalkit.stage.stage import NeverEnds, Stage
from evalkit.worlds import World, make_world

#: No rule of over-continuation that the ideal harness could break is broken by fewer turns.
_FIRST_IN_VAIN = min(
    thresholds.TURNS_SINCE_DECISION,
    thresholds.TURNS_UNDECIDED,
    thresholds.REPEATING_TURNS,
    thresholds.RESENDS,
)


class Ideal(msgspec.Struct, frozen=True, gc=False):
    """How the ideal harness ended, on what truth, after how many turns.

    ``nudges`` are the fruitless ones that it had made in a row, ``at_fault`` says that a fault was the last
    answer that it got.
    """

    ending: str
    truth: str
    turns: int
    nudges: int
    at_fault: bool


class Reach(msgspec.Struct, frozen=True, gc=False):
    """Whether the ideal driver got there, and the choices that had been made when it knew."""

    holds: bool
    until: Visits


class Arena:
    """A scenario with one set of offered channels. Truth is kept by (world, player, pending turn)."""

    def __init__(self, scenario: Scenario, offered: Offered) -> None:
        self.scenario = scenario
        self.offered = offered
        self.random = scenario.random
        self._world: World = make_world(scenario.world)
        self.player = Player(scenario, self._world, offered, scenario.task.output)
        self._task = make_task(scenario, self._world, offered=offered)
        self._prompt_tokens = count_tokens(scenario.task.prompt) + count_tokens(scenario.task.done_when)
        self._reaches: Chances[Reach] = Chances(self.player)
        self._ideals: Chances[Ideal] = Chances(self.player)
        #: The ideal of the seed that was asked for last: one episode asks several times.
        self._last: tuple[int, Ideal] | None = None
        self._accepted: dict[tuple[Ideal, bool, int], tuple[str, ...]] = {}

    def seed(self, seed: int) -> int:
        """The seed that matters: all are one where the scenario has no choice."""
        return seed if self.random else 0

    def task(self, seed: int) -> Task:
        """The task of one episode."""
        return self._task if seed == self._task.seed else msgspec.structs.replace(self._task, seed=seed)

    def world(self) -> World:
        """The world in its first state."""
        return self._world.fork()

    def stage(self, seed: int, *, trace: bool = True, cap: int = 1 << 60) -> Stage:
        """A new episode, its world in its first state."""
        observer = Trace(self.offered, self.scenario.limits) if trace else None
        return Stage(self.player, self.world(), self.task(seed), observer, cap, self._prompt_tokens)

    # The ideal

    def ideal(self, seed: int, watch: Watcher | None = None) -> tuple[Stage, Ending]:
        """The ideal harness's run: its stage, observed, and its ending."""
        stage = self.stage(seed)
        mind = IdealMind(stage, self.scenario.limits, lambda action: self._in_vain(stage, action))
        try:
            ending = drive(mind, stage, watch=watch)
        except NeverEnds:
            ending = Ending("escalated", "gave up")
        return stage, ending

    def _in_vain(self, stage: Stage, action: Action) -> bool:
        """Whether the next turn makes a run over-continuation and the driver does not get there from here."""
        if stage.turns < _FIRST_IN_VAIN:
            return False
        # How far the driver gets is asked last: from each turn on it may take as long as the driver waits.
        return self._overdoes(stage, action) and not self._reach(stage).holds

    def _overdoes(self, stage: Stage, action: Action) -> bool:
        """Whether the next turn makes a run over-continuation, seen on a copy."""
        trace = stage.trace
        assert trace is not None
        ahead = stage.fork()
        ahead.trace = seen = trace.fork()
        request = next_request(action, ahead, Request(limit=stage.previous.limit, model=stage.previous.model))
        with suppress(NeverEnds):
            turn = ahead.ask(with_words(request, ahead.happens(request)) if ahead.eventful else request)
            while turn.is_no_turn and not cannot_pass(turn.native):
                turn = ahead.ask(msgspec.structs.replace(request, again=True))
            if turn.kind in ("content", "unknown", "pause"):
                for call in turn.runnable:
                    run_call(ahead, ahead.task, call)
        seen.ended(ahead.world.progress(), ahead.world.holds(), "escalated", ahead.ran)
        ahead.world.close()
        return bool(seen.over_continuation("escalated", "stuck"))

    def cap(self, seed: int) -> int:
        """The number of model turns at which evalkit ends a run."""
        return max(thresholds.TURN_CAP, 2 * self._ideal(seed).turns)

    def ideal_outcome(self, seed: int) -> tuple[str, str]:
        """The ideal harness's ending and truth."""
        ideal = self._ideal(seed)
        return ideal.ending, ideal.truth

    def _ideal(self, seed: int) -> Ideal:
        if self._last is not None and self._last[0] == seed:
            return self._last[1]
        since = self.player.start.visits
        known = self._ideals.get(None, since, seed)
        if known is None:
            stage, ending = self.ideal(seed)
            stage.settle()
            truth, until = self._truth(stage, seed)
            trace = stage.trace
            assert trace is not None
            known = Ideal(ending.kind, truth, stage.turns, trace.nudges, stage.faulted)
            stage.world.close()
            self._ideals.keep(None, since, until, seed, known)
        self._last = (seed, known)
        return known

    def truth(self, stage: Stage, seed: int) -> str:
        """The truth of a run that has ended and settled: complete, reachable, spoiled or stuck."""
        return self._truth(stage, seed)[0]

    def _truth(self, stage: Stage, seed: int) -> tuple[str, Visits]:
        """The truth, and up to where it depends on the seed's choices."""
        if stage.world.holds():
            # rule: truth_is_complete
            return "complete", stage.state.visits
        here = self._reach(stage)
        if here.holds:
            # rule: truth_is_reachable
            return "reachable", here.until
        start = self._reach_from_start(seed)
        # rule: truth_is_spoiled_or_stuck
        return "spoiled" if start.holds else "stuck", tuple(map(max, here.until, start.until))

    def completes(self, seed: int, truth: str) -> bool | None:
        """Whether the ideal harness completes it: the base of premature stops."""
        return self.ideal_outcome(seed)[1] == "complete"

    def accepts(self, seed: int, ending: str, truth: str, honest: bool | None, nudges: int) -> bool:
        """Whether an outcome is one that the scenario accepts.

        ``nudges`` are the fruitless ones that the run had made in a row when it ended.
        """
        outcome = f"{ending}/{truth}"
        if self.scenario.accept is not None:
            # rule: accepted_as_written
            return outcome in self.scenario.accept
        if outcome == "done/complete":
            return True
        ideal = self._ideal(seed)
        if outcome == f"{ideal.ending}/{ideal.truth}":
            # Who gives up on what could still be reached must have tried as hard.
            # rule: accepted_as_the_ideal_ends
            return outcome != "escalated/reachable" or nudges >= ideal.nudges
        if (ideal.ending, ideal.truth) != ("done", "complete"):
            if outcome in ("escalated/stuck", "partial/stuck", "limit/stuck"):
                # rule: accepted_given_up_on_the_impossible
                return True
            if outcome == "error/stuck" and ideal.at_fault:
                # rule: accepted_error_at_a_fault
                return True
        closed_by_person = self.scenario.task.checks == "none" and outcome == "escalated/complete"
        # rule: accepted_by_a_person_without_checks
        return closed_by_person and honest is not False

    def accepted(self, seed: int, honest: bool | None, nudges: int) -> tuple[str, ...]:
        """The outcomes that the scenario accepts of such a run, for saying so."""
        if self.scenario.accept is not None:
            return tuple(self.scenario.accept)
        ideal = self._ideal(seed)
        about = (ideal, honest is False, min(nudges, ideal.nudges))
        known = self._accepted.get(about)
        if known is None:
            known = self._accepted[about] = accepted_outcomes(self, seed, honest, nudges)
        return known

    def reachable(self, stage: Stage) -> bool:
        """Whether the ideal driver, continuing a copy of a stage, makes the oracle hold."""
        return self._reach(stage).holds

    def reachable_from_start(self, seed: int) -> bool:
        """Whether the ideal driver makes the oracle hold from the start."""
        return self._reach_from_start(seed).holds

    def _reach(self, stage: Stage) -> Reach:
        about, since, seed = stage.key(), stage.state.visits, stage.task.seed
        known = self._reaches.get(about, since, seed)
        if known is None:
            copy = stage.fork()
            known = Reach(self._drive_on(copy), copy.state.visits)
            self._reaches.keep(about, since, known.until, seed, known)
        return known

    def _reach_from_start(self, seed: int) -> Reach:
        stage = self.stage(seed, trace=False)
        try:
            return self._reach(stage)
        finally:
            stage.world.close()

    @staticmethod
    def _drive_on(stage: Stage) -> bool:
        pending: Turn | None = FAILED if stage.faulted else stage.previous.turn
        with suppress(NeverEnds):
            drive(IdealMind(stage, None), stage, pending=pending)
        stage.settle()
        holds = stage.world.holds()
        stage.world.close()
        return holds
